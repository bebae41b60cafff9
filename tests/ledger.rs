//! Ledgers, read from real databases: every kind of id, time and status, and everything that can be in the way.

#[path = "ledger/audit.rs"]
mod audit;
#[path = "ledger/backlog.rs"]
mod backlog;
#[path = "ledger/check.rs"]
mod check;
#[path = "ledger/following.rs"]
mod following;
#[path = "ledger/guide.rs"]
mod guide;
#[path = "ledger/in_the_way.rs"]
mod in_the_way;
#[path = "ledger/lag.rs"]
mod lag;
#[path = "ledger/lookups.rs"]
mod lookups;
#[path = "common/mariadb.rs"]
mod mariadb;
#[path = "ledger/mariadb_types.rs"]
mod mariadb_types;
#[path = "ledger/mariadb_ways.rs"]
mod mariadb_ways;
#[path = "ledger/pages.rs"]
mod pages;
#[path = "common/postgres.rs"]
mod postgres;
#[path = "ledger/sqlite_files.rs"]
mod sqlite_files;
#[path = "ledger/support.rs"]
mod support;
#[path = "ledger/truths.rs"]
mod truths;
