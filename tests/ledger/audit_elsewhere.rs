//! The audit of histories, where rows move to an archive, are erased or are of several destinations.

use super::{
    audit::{AGAIN, Bench, HOUR, queries},
    support::Bed,
};
use chrono::Utc;
use delivery_canary::{
    domain::{audit::compare::Change, flow::key::KeptUnder},
    store::follower::FollowedErasure,
};
use std::collections::BTreeMap;

on_each!(
    what_moves_to_an_archive_has_not_vanished,
    destinations_have_histories_of_their_own,
    what_is_erased_is_looked_at_no_more,
);

async fn what_moves_to_an_archive_has_not_vanished(bed: Bed) {
    let (time, text) = (bed.time_type(), bed.text_type());
    bed.execute(&format!(
        "create table n (id integer, k {text}, at {time}); create table a (seq integer, id integer, status {text}, at {time});
         create table archive (seq integer, id integer, status {text}, at {time})"
    ))
    .await;
    let mut queries = queries(&bed);
    let sql = queries["lookup"]["sql"].as_str().unwrap().to_owned();
    let union = "left join (select * from a union all select * from archive) a on";
    queries["lookup"]["sql"] = sql.replace("left join a on", union).into();
    let mut bench = Bench::with(bed, queries).await;
    for id in 1..=3 {
        bench.insert(id, None, &[(10 * id, "delivered", 10)]).await;
    }
    bench.follow().await;
    bench.look(0).await;
    // In between it is in neither.
    bench.bed.execute("create table between_both as select * from a; delete from a").await;
    assert_eq!(bench.look(HOUR).await, BTreeMap::new());
    bench.bed.execute("insert into archive select * from between_both").await;
    for ahead in [HOUR + AGAIN, 6 * HOUR, 24 * HOUR, 24 * HOUR + AGAIN] {
        assert_eq!(bench.look(ahead).await, BTreeMap::new());
    }
    assert_eq!(bench.sums().await.compared, 12);
}

async fn destinations_have_histories_of_their_own(bed: Bed) {
    let (time, text) = (bed.time_type(), bed.text_type());
    bed.execute(&format!(
        "create table n (id integer, k {text}, dest {text}, row_id integer, at {time});
         create table a (seq integer, id integer, dest {text}, status {text}, at {time})"
    ))
    .await;
    let mut queries = queries(&bed);
    for (query, from, to) in [
        ("lookup", "n.at, a.seq", "n.at, n.dest, a.seq"),
        ("lookup", "on a.id = n.id", "on a.id = n.id and a.dest = n.dest"),
        ("notifications", "select id, at", "select id, dest, row_id, at"),
        ("notifications", queries_cursor(&bed, "id").as_str(), queries_cursor(&bed, "row_id").as_str()),
        ("notifications", "order by at, id", "order by at, row_id"),
        ("attempts", "select seq, id", "select seq, id, dest"),
    ] {
        let sql = queries[query]["sql"].as_str().unwrap();
        assert!(sql.contains(from), "{sql} has no {from}");
        queries[query]["sql"] = sql.replace(from, to).into();
        queries[query]["columns"]["destination"] = "dest".into();
    }
    queries["notifications"]["cursor"]["id"] = "row_id".into();
    let mut bench = Bench::with(bed, queries).await;
    let at = |second| bench.time(second);
    bench
        .bed
        .execute(&format!(
            "insert into n values (1, 'k', 'x', 1, '{}'), (1, 'k', 'y', 2, '{}');
             insert into a values (1, 1, 'x', 'delivered', '{}'), (2, 1, 'y', 'failed', '{}'), (3, 1, 'y', 'delivered', '{}')",
            at(0), at(0), at(10), at(20), at(30),
        ))
        .await;
    bench.follow().await;
    assert_eq!(bench.look(0).await, BTreeMap::new(), "one destination is not after the end of another");
    bench.bed.execute(&format!("insert into a values (4, 1, 'x', 'failed', '{}')", bench.time(15))).await;
    let found = BTreeMap::from([(1, vec![(Change::AttemptAfterTerminal, 1)])]);
    assert_eq!(bench.look(HOUR).await, found);
    assert_eq!(bench.sampled().await, 1);
}

/// The condition of a stream's cursor.
fn queries_cursor(bed: &Bed, id: &str) -> String {
    bed.behind("at", id)
}

async fn what_is_erased_is_looked_at_no_more(bed: Bed) {
    let mut bench = Bench::new(bed).await;
    for id in 1..=2 {
        bench.insert(id, None, &[(10 * id, "delivered", 10)]).await;
    }
    bench.follow().await;
    bench.look(0).await;
    let KeptUnder { keys, prefixes } = KeptUnder::of("1");
    let which = FollowedErasure { notification_id: "1".into(), keys, prefixes };
    assert_eq!(bench.store.erase_followed(&which, Utc::now()).await.expect("the store answers"), 1);
    // The one that was in memory writes it once more before it takes note.
    bench.bed.execute("delete from a; delete from n").await;
    bench.look(HOUR).await;
    assert_eq!(bench.sampled().await, 2);
    bench.erased = bench.store.erased().await.expect("the store answers");
    bench.audit.reload();
    let found = BTreeMap::from([(2, vec![(Change::AttemptVanished, 1)])]);
    assert_eq!(bench.look(HOUR + AGAIN).await, found);
    assert_eq!(bench.sampled().await, 1);
}
