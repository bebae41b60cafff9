//! Ledgers, read from real databases: every kind of id, time and status, and everything that can be in the way.

mod audit;
mod backlog;
mod check;
mod check_types;
mod following;
mod guide;
mod in_the_way;
mod lag;
mod lookups;
mod mariadb_types;
mod mariadb_ways;
mod pages;
mod sqlite_files;
mod support;
mod truths;

use crate::common::{mariadb, postgres};
