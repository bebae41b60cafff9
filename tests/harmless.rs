//! Following a ledger does it no harm, and whatever is in the way ends by itself: behind a pooler, in a failover, under a lock.
//!
//! What single readings do when something is in their way is tried in `ledger/in_the_way.rs` and `ledger/pages.rs`, what a check says of
//! rights in `ledger/check.rs`, and the canaries' side in `trials.rs`. Here it is the follower, and the whole program.

#[path = "shapes/bed.rs"]
mod bed;
#[path = "harmless/follower.rs"]
mod follower;
#[path = "shapes/jobs.rs"]
mod jobs;
#[path = "harmless/pgbouncer.rs"]
mod pgbouncer;
#[path = "shapes/plain.rs"]
mod plain;
#[path = "common/postgres.rs"]
mod postgres;
#[path = "harmless/program.rs"]
mod program;
#[path = "common/scrape.rs"]
mod scrape;
#[path = "harmless/switch.rs"]
mod switch;
#[path = "shapes/watch.rs"]
mod watch;
#[path = "common/world.rs"]
mod world;
