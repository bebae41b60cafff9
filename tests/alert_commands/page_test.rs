//! `alerts page-test`: a real Alertmanager with the tree that is made here, and a webhook that takes what it sends.

use super::{
    run::{Configured, configure, edit, run},
    support::Place,
};
use axum::{Json, Router, extract::State, routing::post};
use delivery_canary::{
    alerts::{self, ALERTMANAGER, Format, RULES},
    config,
};
use serde_json::{Value, json};
use std::{
    fs,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// What came, by receiver: the webhook's path and its message.
type Came = Arc<Mutex<Vec<(String, Value)>>>;

/// Takes what the Alertmanager sends.
async fn webhook() -> (SocketAddr, Came) {
    let came = Came::default();
    let take = |State((name, came)): State<(&'static str, Came)>, Json(message): Json<Value>| async move {
        came.lock().expect("nobody panicked").push((name.to_owned(), message));
    };
    let mut app = Router::new();
    for name in ["pager", "tickets", "owners", "dead-man"] {
        app =
            app.merge(Router::new().route(&format!("/{name}"), post(take)).with_state((name, came.clone())));
    }
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port is free");
    let address = listener.local_addr().expect("it has an address");
    tokio::spawn(async move { axum::serve(listener, app).await });
    (address, came)
}

fn block(hook: SocketAddr, more: &str) -> String {
    let receiver = |name: &str| format!("{{ name: {name}, url: \"http://{hook}/{name}\" }}");
    format!(
        "alerts:\n  service: notifications\n  runbooks: https://runbooks.example.com\n{more}  receivers:\n    page: {}\n    \
         ticket: {}\n    owners: {}\n    watchdog: {{ receiver: {} }}\n  office_hours: {{ days: [\"sunday:saturday\"], from: \"00:00\", until: \"24:00\" }}\n",
        receiver("pager"),
        receiver("tickets"),
        receiver("owners"),
        receiver("dead-man"),
    )
}

/// The files that `alerts generate` makes.
fn generated(config: &Configured) -> std::collections::BTreeMap<String, String> {
    let secret = |_: &str| Some("0123456789abcdef0123456789abcdef".to_owned());
    let loaded = config::load(&config.file, &secret).unwrap_or_else(|faults| panic!("{faults}"));
    alerts::generate(&loaded.config, loaded.hash, false, Format::Prometheus).expect("rules are made").files
}

/// A running Alertmanager. It is killed when this is dropped.
struct Alertmanager {
    child: Child,
    address: SocketAddr,
    folder: TempDir,
}

impl Alertmanager {
    /// Starts one with this tree, whose waits are cut short.
    async fn start(tree: &str) -> Self {
        let tree = edit(tree, "group_wait: \"45s\"", "group_wait: 1s");
        let tree = edit(&tree, "group_interval: \"5m\"", "group_interval: 1s");
        let tree = tree.replace("group_interval: \"1m\"", "group_interval: 1s");
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("alertmanager.yaml");
        fs::write(&file, tree).expect("it is written");
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
        let address = free.expect("a port is free");
        let log = fs::File::create(folder.path().join("log")).expect("the log opens");
        let child = Command::new("prometheus-alertmanager")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.path={}", folder.path().join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .arg("--cluster.listen-address=")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| {
                panic!("prometheus-alertmanager can't be run ({error}): install the package `prometheus-alertmanager`")
            });
        let server = Self { child, address, folder };
        until("the Alertmanager to take connections", || {
            let log = || fs::read_to_string(server.folder.path().join("log")).unwrap_or_default();
            std::net::TcpStream::connect(address)
                .map(drop)
                .map_err(|error| format!("{error}; log:\n{}", log()))
        })
        .await;
        server
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Alertmanager {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until something holds, and says the last state seen when it never does.
async fn until(what: &str, mut state: impl FnMut() -> Result<(), String>) {
    let begun = Instant::now();
    loop {
        match state() {
            Ok(()) => return,
            Err(seen) => {
                assert!(
                    begun.elapsed() < Duration::from_secs(60),
                    "waited 60s for {what}; last seen: {seen}"
                );
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Runs the program while this process goes on answering.
async fn page_test(config: &Configured, more: &[&str]) -> super::run::Ran {
    let arguments = [&["alerts", "page-test"], more].concat();
    tokio::task::block_in_place(|| run(config, &arguments))
}

fn came_to(came: &Came, receiver: &str, status: &str) -> Result<Value, String> {
    let came = came.lock().map_err(|error| error.to_string())?;
    let found = came.iter().find(|(name, message)| name == receiver && message["status"] == status);
    found.map(|(_, message)| message.clone()).ok_or_else(|| format!("{came:?}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_page_and_a_ticket_reach_their_receivers_and_are_resolved() {
    let place = Place::sqlite().await;
    let (hook, came) = webhook().await;
    let config = configure(&place, "", &block(hook, ""));
    let server = Alertmanager::start(&generated(&config)[ALERTMANAGER]).await;
    let url = server.url();
    let said =
        page_test(&config, &["--alertmanager", &url, "--for", "4s", "--owner", "the on-call"]).await.ended(0);
    assert!(said.contains("CanaryPageTest as a page; it goes to: pager\n"), "{said}");
    assert!(
        said.contains("started by the on-call, test ") && said.contains("it ends by itself at "),
        "{said}"
    );
    until("the page to come", || came_to(&came, "pager", "firing").map(drop)).await;
    let page = came_to(&came, "pager", "firing").expect("it came");
    let alert = &page["alerts"][0];
    assert_eq!(alert["labels"]["alertname"], "CanaryPageTest");
    for (label, value) in [("service", "notifications"), ("severity", "page"), ("audience", "service")] {
        assert_eq!(alert["labels"][label], value, "{alert:#}");
    }
    let annotations = &alert["annotations"];
    assert_eq!(annotations["started_by"], "the on-call");
    let test = annotations["test"].as_str().expect("it has a name");
    assert!(said.contains(test), "{said}");
    assert!(
        annotations["summary"]
            .as_str()
            .is_some_and(|text| text.contains("test") && text.contains("Nothing is wrong"))
    );
    until("it to be resolved", || came_to(&came, "pager", "resolved").map(drop)).await;
    // A ticket takes the other way, and with its configured address the command needs none.
    let config = configure(&place, "", &block(hook, &format!("  alertmanager: {url}\n")));
    let said = page_test(&config, &["--severity", "ticket", "--for", "10s"]).await.ended(0);
    assert!(said.contains("it goes to: tickets\n") && said.contains("office hours"), "{said}");
    until("the ticket to come", || came_to(&came, "tickets", "firing").map(drop)).await;
    let came = came.lock().expect("nobody panicked");
    assert!(came.iter().all(|(name, message)| {
        let alerts = message["alerts"].as_array().expect("a list");
        ["pager", "tickets"].contains(&name.as_str())
            && alerts.iter().all(|alert| alert["labels"]["alertname"] == "CanaryPageTest")
    }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_page_that_goes_elsewhere_or_is_silenced_is_found() {
    let place = Place::sqlite().await;
    let (hook, came) = webhook().await;
    let config = configure(&place, "", &block(hook, ""));
    let tree = generated(&config)[ALERTMANAGER].replace("receiver: pager", "receiver: tickets");
    let server = Alertmanager::start(&tree).await;
    let url = server.url();
    let said = page_test(&config, &["--alertmanager", &url, "--for", "10s"]).await.ended(1);
    assert!(
        said.contains("goes to: tickets\n") && said.contains("the configuration names `pager` for a page"),
        "{said}"
    );
    let silence = json!({
        "matchers": [{ "name": "alertname", "value": "CanaryPageTest", "isRegex": false, "isEqual": true }],
        "startsAt": "2000-01-01T00:00:00Z", "endsAt": "2999-01-01T00:00:00Z", "createdBy": "a test", "comment": "quiet",
    });
    delivery_canary::cli::wiring::install_tls();
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let answer =
        client.post(format!("{url}/api/v2/silences")).json(&silence).send().await.expect("it answers");
    assert!(answer.status().is_success(), "{answer:?}");
    let said = page_test(&config, &["--alertmanager", &url, "--for", "10s"]).await.ended(1);
    assert!(said.contains("nobody is told: it is silenced by "), "{said}");
    drop(came);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_sent_through_the_monitored_service_nor_without_an_address() {
    let place = Place::sqlite().await;
    let (hook, came) = webhook().await;
    let config = configure(&place, "", &block(hook, ""));
    assert!(page_test(&config, &[]).await.refused(2).contains("--alertmanager URL"));
    // In `config/minimal.yaml` the service is there.
    let said = page_test(&config, &["--alertmanager", "http://127.0.0.1:9471/alertmanager"]).await.refused(2);
    assert!(said.contains("a host of the monitored service") && said.contains("nothing was sent"), "{said}");
    let there = configure(&place, "", &block(hook, "  alertmanager: http://127.0.0.1:9471\n"));
    assert!(page_test(&there, &[]).await.refused(78).contains("a host of the monitored service"));
    for address in
        ["not an address", "ftp://127.0.0.1", "http://user:hunter2@127.0.0.1:1", "http://127.0.0.1:1?x=1"]
    {
        let said = page_test(&config, &["--alertmanager", address]).await.refused(2);
        assert!(said.contains("can't be used") && !said.contains("hunter2"), "{said}");
    }
    let said = page_test(&config, &["--alertmanager", "http://127.0.0.1:1"]).await.refused(75);
    assert!(said.contains("nothing was sent"), "{said}");
    let said = page_test(&config, &["--alertmanager", &format!("http://{hook}")]).await.refused(75);
    assert!(said.contains("refused the test with status 404"), "{said}");
    for (more, wanted) in
        [(&["--for", "2d"][..], "--for 2d"), (&["--for", "0s"], "--for 0s"), (&["--owner", " "], "--owner")]
    {
        let said =
            page_test(&config, &[&["--alertmanager", "http://127.0.0.1:1"], more].concat()).await.refused(2);
        assert!(said.contains(wanted), "{said}");
    }
    let without = configure(&place, "", "");
    let said = page_test(&without, &["--alertmanager", "http://127.0.0.1:1"]).await.refused(78);
    assert!(said.contains("there is no block `alerts`"), "{said}");
    assert!(came.lock().expect("nobody panicked").is_empty(), "nothing was sent");
    let rules = &generated(&config)[RULES];
    assert!(!rules.contains("CanaryPageTest"), "it is no rule");
}
