//! Following a ledger does it no harm, and whatever is in the way ends by itself: behind a pooler, in a failover, under a lock.
//!
//! What single readings do when something is in their way is tried in `ledger/in_the_way.rs` and `ledger/pages.rs`, what a check says of
//! rights in `ledger/check.rs`, and the canaries' side in `trials.rs`. Here it is the follower, and the whole program.

mod follower;
mod pgbouncer;
mod program;

use crate::{
    common::{postgres, switch, world},
    shapes::{bed, jobs, watch},
};
