//! What several tests start, ask and wait for.

#![allow(dead_code, reason = "each test program uses a part of it")]

pub mod http;
pub mod mariadb;
pub mod page_bench;
pub mod postgres;
pub mod process;
pub mod prometheus;
pub mod queries;
pub mod scrape;
pub mod switch;
pub mod world;
