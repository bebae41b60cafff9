//! The commands that take a reader from a schema to a checked configuration: `ledger init`, `ledger grants` and `ledger check`, as
//! processes of their own, against real databases.

#[path = "shapes/bed.rs"]
mod bed;
#[path = "ledger_commands/check.rs"]
mod check;
#[path = "ledger_commands/grants.rs"]
mod grants;
#[path = "ledger_commands/grants_of_counts.rs"]
mod grants_of_counts;
#[path = "ledger_commands/init.rs"]
mod init;
#[path = "common/mariadb.rs"]
mod mariadb;
#[path = "ledger_commands/partitions.rs"]
mod partitions;
#[path = "shapes/plain.rs"]
mod plain;
#[path = "ledger_commands/plans.rs"]
mod plans;
#[path = "common/postgres.rs"]
mod postgres;
#[path = "ledger_commands/run.rs"]
mod run;
#[path = "shapes/watch.rs"]
mod watch;
