//! The past is read from the store a page at a time.

use super::{
    past::{Told, at, write},
    replay::route,
    support::{Place, judged},
};
use chrono::TimeDelta;
use delivery_canary::domain::{
    route::{Channel, RouteName},
    verdict::Verdict,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_past_of_many_pages_is_read_whole_and_in_order() {
    let place = Place::sqlite().await;
    let store = place.open().await;
    // Canaries of three locations share each slot, so that readings end in the middle of a slot.
    let past: Vec<Told> = (0..600)
        .flat_map(|minute| ["east", "north", "west"].map(|name| Told::good(at(60 * minute), 5).at(name)))
        .collect();
    let mut wanted = write(&*store, &past).await;
    let (mut seen, mut from, mut after) = (Vec::new(), at(0), None);
    loop {
        let page = store.past(&route(), from, after, 100).await.expect("reads");
        let Some(last) = page.last() else { break };
        (from, after) = (last.slot, Some(last.canary_id));
        assert!(page.windows(2).all(|pair| pair[0].slot <= pair[1].slot));
        seen.extend(page.iter().map(|past| past.canary_id));
    }
    let first = &store.past(&route(), at(0), None, 1).await.expect("reads")[0];
    assert_eq!(first.arrived_after, Some(TimeDelta::milliseconds(5)));
    assert_eq!(first.judgements, [judged(Verdict::OnTime, at(0) + TimeDelta::milliseconds(5))]);
    seen.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(seen, wanted, "each once");
    assert!(
        store
            .past(&RouteName::new(Channel::Sms, "receipts"), at(0), None, 9)
            .await
            .expect("reads")
            .is_empty()
    );
}
