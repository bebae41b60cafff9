//! The commands that take a reader from a schema to a checked configuration: `ledger init`, `ledger grants` and `ledger check`, as
//! processes of their own, against real databases.

mod check;
mod grants;
mod grants_of_counts;
mod init;
mod init_columns;
mod partitions;
mod plans;
mod run;

use crate::{
    common::{mariadb, postgres},
    shapes::{bed, plain, watch},
};
