//! Ledgers, read from real databases: every kind of id, time and status, and everything that can be in the way.

#[macro_use]
mod audit;
mod audit_elsewhere;
mod backlog;
mod check;
mod check_types;
mod following;
mod guide;
mod in_the_way;
mod lag;
mod lookups;
mod mariadb_results;
mod mariadb_types;
mod mariadb_ways;
mod pages;
mod sqlite_files;
mod statuses;
mod support;
mod truths;

use crate::common::{mariadb, postgres};
