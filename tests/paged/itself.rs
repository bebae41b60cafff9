//! What happens to the monitor itself, and to what it looks with: two replicas, one store, one thing after the other.

use super::{
    bounds::{Bounds, INTERVAL, OVERDUE, evidence, good_again, paged, sum, ticketed},
    clock::s,
    gate::Gate,
    installation::{Installation, Process, Shape},
    postgres::Postgres,
    receivers::{OWNERS, PAGE, TICKET},
    stage::Stage,
    table::{
        Expected,
        Over::{After, Not},
        Row,
        When::{Began, Ended},
    },
    world::process::{Monitor, signal},
};
use delivery_canary::simulator::{Fault, FaultOrder};
use std::time::Duration;

const ROWS: [Row; 7] = [
    ("receiver down", "the public address of the webhooks refuses all, for fifteen minutes"),
    ("one replica of two killed", "`kill -9`, for eight minutes; nothing else is wrong"),
    ("ledger down", "nobody can read the ledger, for ten minutes"),
    ("outage, seen by two replicas", "the provider says delivered, and sends nothing, for half an hour"),
    ("restart in mid-incident", "both are stopped and started while the page is out"),
    ("monitor killed", "`kill -9` of both, for ten minutes"),
    ("monitor hung", "`kill -STOP` of both, for ten minutes"),
];

const ROUTES: [&str; 2] = ["healthy", "drop"];

const BLIND: &str = "MonitorBlind";

const MINUTE: Duration = s(60);
/// `for` of `MonitorBlind`, where a process or a ledger is not seen.
const TWO_MINUTES: Duration = s(120);
/// `for` of `MonitorBlind`, where a receiver is not seen.
const FIVE_MINUTES: Duration = s(300);
const AT_ONCE: Duration = Duration::ZERO;

/// How old what loops and ledgers show may be, and still counts as seen: it was new at most a look before.
const STALE: Bounds = (s(160), s(200));
/// A receiver is down when a message to ourselves is missing for so long.
const UNHEARD: Bounds = (AT_ONCE, s(60));
/// From its start until a monitor has looked at everything.
const STARTED: Bounds = (AT_ONCE, s(120));

fn expected() -> Vec<Expected> {
    let of = |row, receiver, alert, about: &str, after, comes, over| Expected {
        row,
        receiver,
        alert,
        about: about.into(),
        after,
        comes,
        over,
    };
    let blind = |row, about, stale, hold, back| {
        let over = After(Ended(row), paged(back, AT_ONCE));
        of(row, OWNERS, BLIND, about, Began(row), paged(stale, hold), over)
    };
    let outage = "outage, seen by two replicas";
    // What nobody looks at any more is not known: tickets end there, and come again.
    let unseen = |row| After(Began(row), ticketed(STALE, AT_ONCE));
    let missed = |row, route, over| {
        of(row, OWNERS, "SlotsMissed", route, Ended(row), ticketed(STARTED, AT_ONCE), over)
    };
    let disagreement = |row, comes, over| {
        let about = "webhook/drop delivered_without_receipt";
        of(row, TICKET, "EvidenceDisagreement", about, Ended(row), comes, over)
    };
    vec![
        of(
            outage,
            PAGE,
            "CanaryDeliveryFailing",
            "webhook/drop",
            Began(outage),
            paged(evidence(OVERDUE), MINUTE),
            After(Ended(outage), paged(good_again(), AT_ONCE)),
        ),
        // The page keeps it quiet while it lasts.
        disagreement(outage, ticketed(good_again(), AT_ONCE), unseen("monitor killed")),
        blind("ledger down", "ledger attempts", STALE, TWO_MINUTES, (AT_ONCE, s(40))),
        blind("receiver down", "observer here receiver/sink", UNHEARD, FIVE_MINUTES, (AT_ONCE, s(60))),
        blind("monitor killed", "runner here", STALE, TWO_MINUTES, STARTED),
        missed("monitor killed", "webhook/healthy", unseen("monitor hung")),
        missed("monitor killed", "webhook/drop", unseen("monitor hung")),
        blind("monitor hung", "runner here", STALE, TWO_MINUTES, sum(STARTED, (AT_ONCE, INTERVAL))),
        missed("monitor hung", "webhook/healthy", Not),
        missed("monitor hung", "webhook/drop", Not),
        disagreement("monitor hung", ticketed(STARTED, s(600)), Not),
    ]
}

/// A replica, and the way to its listener.
struct Replica {
    process: Process,
    gate: Gate,
    monitor: Option<Monitor>,
}

impl Replica {
    async fn new(here: &Installation, name: &str, store: &str) -> Self {
        let (gate, listener) = Gate::new().await;
        let process = here.process(name, Some(gate.address), &[("STORE_URL", store)]);
        gate.lead(listener, process.place.receipts);
        Self { process, gate, monitor: None }
    }

    fn start(&mut self) {
        self.monitor = Some(self.process.start());
    }

    fn running(&mut self) -> &mut Monitor {
        self.monitor.as_mut().expect("it runs")
    }
}

/// Waits until what a receiver was told last of an alert is that it fires, or that it is over.
async fn until_told(stage: &Stage, alert: &str, about: &str, fires: bool) {
    stage
        .until(&format!("{alert} {about} to fire: {fires}"), s(1_200), || {
            let episodes = stage.here.receivers.episodes();
            let last = episodes.iter().rev().find(|one| one.alert == alert && one.about == about);
            if last.is_some_and(|one| one.went.is_none()) == fires {
                Ok(())
            } else {
                Err(format!("{last:?}"))
            }
        })
        .await;
}

/// Waits until nothing is held against the route that is to fail. A receiver that comes back may have taken one canary for late, and with that
/// an outage is known sooner than by itself.
async fn until_forgotten(stage: &Stage, process: &Process) {
    let value = |question| {
        let labels = [("route", "webhook/drop"), ("location", "here"), ("question", question)];
        process.place.value("delivery_canary_failure_evidence", &labels)
    };
    stage
        .until("all to be well on the route", s(2_400), || match ["arrives", "in_time"].map(value) {
            [Some(0.0), Some(0.0)] => Ok(()),
            seen => Err(format!("evidence {seen:?}")),
        })
        .await;
}

/// Something about the monitor itself is wrong, until its owners were told and some more; then it is over, and they are told so.
async fn blind(stage: &Stage, row: &'static str, about: &str, real: Duration) {
    stage.mark(Began(row));
    stage.pass(real).await;
    until_told(stage, BLIND, about, true).await;
}

/// The whole of it.
pub async fn run() {
    let server = Postgres::start();
    let store = server.fresh_database().await;
    let here = Installation::new(|options| {
        options.backoff_base = Duration::from_millis(500);
        options.backoff_most = Duration::from_secs(3);
    })
    .await;
    let mut replicas =
        [Replica::new(&here, "first", &store).await, Replica::new(&here, "second", &store).await];
    let shape = Shape {
        routes: ROUTES.to_vec(),
        slow_pages: Vec::new(),
        maintenance: None,
        store: "postgres: { url: \"${STORE_URL}\" }",
    };
    let processes = replicas.each_ref().map(|replica| &replica.process);
    let servers = here.serve(&shape, &processes);
    let stage = Stage::new(here, servers);
    replicas.iter_mut().for_each(Replica::start);
    stage.until_watched(ROUTES.len()).await;
    let [first, second] = &mut replicas;

    let row = "receiver down";
    first.gate.shut();
    second.gate.shut();
    blind(&stage, row, "observer here receiver/sink", s(900)).await;
    first.gate.open();
    second.gate.open();
    stage.mark(Ended(row));
    until_told(&stage, BLIND, "observer here receiver/sink", false).await;

    first.running().kill();
    stage.pass(s(480)).await;
    first.start();

    let row = "ledger down";
    stage.switch(FaultOrder::on(Fault::LedgerUnreachable)).await;
    blind(&stage, row, "ledger attempts", s(600)).await;
    stage.switch(FaultOrder::off(Fault::LedgerUnreachable)).await;
    stage.mark(Ended(row));
    until_told(&stage, BLIND, "ledger attempts", false).await;

    until_forgotten(&stage, &second.process).await;
    let row = "outage, seen by two replicas";
    let drop = FaultOrder::on(Fault::SilentDrop).on_route("drop");
    let off = FaultOrder::off(Fault::SilentDrop).on_route("drop");
    stage.switch(drop).await;
    stage.mark(Began(row));
    until_told(&stage, "CanaryDeliveryFailing", "webhook/drop", true).await;
    for replica in [&mut *first, &mut *second] {
        replica.running().terminate();
    }
    first.start();
    second.start();
    stage.pass(s(600)).await;
    stage.switch(off).await;
    stage.mark(Ended(row));
    until_told(&stage, "CanaryDeliveryFailing", "webhook/drop", false).await;

    let row = "monitor killed";
    first.running().kill();
    second.running().kill();
    blind(&stage, row, "runner here", s(600)).await;
    first.start();
    second.start();
    stage.mark(Ended(row));
    until_told(&stage, BLIND, "runner here", false).await;

    let row = "monitor hung";
    let hung = [first.running().id(), second.running().id()];
    hung.iter().for_each(|id| signal(*id, "STOP"));
    blind(&stage, row, "runner here", s(600)).await;
    hung.iter().for_each(|id| signal(*id, "CONT"));
    stage.mark(Ended(row));
    stage.close(&ROWS, &expected()).await;
}
