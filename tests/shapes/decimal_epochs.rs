//! Decimal seconds since 1970, in two databases of one service.

use super::{
    bed::{Database, load, run},
    jobs::{EAST, WEST},
    postgres::Postgres,
    watch::Watch,
};

const NOW: &str = "extract(epoch from clock_timestamp())";

#[tokio::test(flavor = "multi_thread")]
async fn decimal_seconds_in_two_databases() {
    let server = Postgres::start();
    let (east, east_reader) = Database::on(&server, "decimal_epochs").await;
    let (west, west_reader) = Database::on(&server, "decimal_epochs").await;
    let addresses = [("LEDGER_EAST_URL", east_reader.as_str()), ("LEDGER_WEST_URL", west_reader.as_str())];
    let loaded = load("decimal_epochs", &addresses).await;
    let mut of_east = Watch::new(&loaded, "east").await;
    let mut of_west = Watch::new(&loaded, "west").await;
    of_east.until_agreed("the history of the one", &east, &EAST).await;
    of_west.until_agreed("the history of the other", &west, &WEST).await;
    of_east.restart();
    of_east.until_agreed("the history after a restart", &east, &EAST).await;

    // Two jobs of one microsecond, and one whose transaction is still open.
    let mut late = east.connect().await;
    run(
        &mut late,
        &format!("begin; insert into jobs (ref, queue, created) values ('late', 'alerts', {NOW})"),
    )
    .await;
    east.execute(&format!(
        "insert into jobs (ref, queue, created) select 'twin' || g, 'receipts', now from (select {NOW} as now) as n, generate_series(1, 2) as g"
    ))
    .await;
    of_east.until_agreed("new jobs", &east, &EAST).await;
    run(&mut late, "commit").await;
    of_east.until_agreed("the job of the late commit", &east, &EAST).await;

    // In the other database other things happen to jobs of the same numbers: runs end that were under way for days.
    west.execute(&format!(
        "update runs set code = case when id % 2 = 0 then 0 else 3 end, ended = {NOW} where code is null;
         insert into runs (job, code, begun, ended)
           select job, case when job % 4 = 0 then 1 else 0 end, {NOW} - 1, {NOW} from runs where code = 9"
    ))
    .await;
    of_west.until_agreed("the end of long runs", &west, &WEST).await;
    of_east.until_agreed("and nothing of it in the other", &east, &EAST).await;
    of_west.restart();
    of_west.until_agreed("all of it after a restart", &west, &WEST).await;
}
