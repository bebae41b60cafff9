//! A real Prometheus and a real Alertmanager, on loopback, with the clock of this suite.

use super::{
    clock::{Clock, s},
    world::{free_address, process::get, until},
};
use delivery_canary::config::scalar::Span;
use serde_json::{Value, json};
use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

/// How often targets are scraped.
pub const SCRAPE: Duration = s(20);
/// How long a sample counts as the newest; what Prometheus does unless told.
const LOOKBACK: Duration = s(300);
/// How often an alert that fires is sent again; what Prometheus does unless told.
const RESEND: Duration = s(60);

/// Holds a server: it is killed when standard input ends, which it does however this process ends.
const HOLD: &str = r#""$@" & pid=$!; read -r _; kill -KILL "$pid" 2>/dev/null; wait "$pid" 2>/dev/null"#;

/// A server. It is killed when this is dropped.
struct Server {
    holder: Child,
    log: PathBuf,
}

impl Server {
    fn start(program: &str, package: &str, arguments: &[String], log: PathBuf) -> Self {
        let known = Command::new(program).arg("--version").output();
        assert!(known.is_ok(), "{program} can't be run: install the package `{package}`");
        let file = fs::File::create(&log).expect("the log opens");
        let holder = Command::new("sh")
            .args(["-c", HOLD, "hold", program])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(file)
            .spawn()
            .unwrap_or_else(|error| panic!("sh can't hold {program} ({error})"));
        Self { holder, log }
    }

    fn until_ready(&self, what: &str, address: SocketAddr) {
        until(&format!("{what} to be ready"), 60, || match get(address, "/-/ready") {
            Some((200, _)) => Ok(()),
            seen => Err(format!("{seen:?}; log:\n{}", fs::read_to_string(&self.log).unwrap_or_default())),
        });
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        // It may have ended already.
        let _ = self.holder.wait();
    }
}

/// A Prometheus with its Alertmanager.
pub struct Servers {
    // Dropped first: what it sends then goes nowhere.
    _prometheus: Server,
    _alertmanager: Server,
    /// Where the Prometheus answers.
    pub address: SocketAddr,
}

impl Servers {
    /// Starts both: these rules over these targets, and this tree. Their files are below the folder.
    pub fn start(folder: &Path, clock: Clock, rules: &Value, tree: &Value, targets: &[SocketAddr]) -> Self {
        let span = |real| Span(clock.short(real)).to_string();
        let write = |name: &str, value: &Value| {
            fs::write(folder.join(name), value.to_string()).expect("it is written");
            folder.join(name)
        };
        let at = free_address();
        let arguments = [
            format!("--config.file={}", write("alertmanager.json", tree).display()),
            format!("--storage.path={}", folder.join("alertmanager").display()),
            format!("--web.listen-address={at}"),
            "--cluster.listen-address=".into(),
        ];
        let log = folder.join("alertmanager.log");
        let alertmanager =
            Server::start("prometheus-alertmanager", "prometheus-alertmanager", &arguments, log);
        alertmanager.until_ready("the Alertmanager", at);
        let address = free_address();
        let targets: Vec<String> = targets.iter().map(ToString::to_string).collect();
        let config = json!({
            "global": {"scrape_interval": span(SCRAPE)},
            "rule_files": [write("rules.json", rules)],
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": [at.to_string()]}]}]},
            "scrape_configs": [{"job_name": "canary", "static_configs": [{"targets": targets}]}],
        });
        let arguments = [
            format!("--config.file={}", write("prometheus.json", &config).display()),
            format!("--storage.tsdb.path={}", folder.join("prometheus").display()),
            format!("--web.listen-address={address}"),
            format!("--query.lookback-delta={}", span(LOOKBACK)),
            format!("--rules.alert.resend-delay={}", span(RESEND)),
        ];
        let log = folder.join("prometheus.log");
        let prometheus = Server::start("prometheus", "prometheus", &arguments, log);
        prometheus.until_ready("the Prometheus", address);
        Self { _prometheus: prometheus, _alertmanager: alertmanager, address }
    }

    /// How many series an expression gives now.
    pub fn count(&self, expr: &str) -> Result<usize, String> {
        let url = reqwest::Url::parse_with_params("http://prometheus/api/v1/query", [("query", expr)]);
        let url = url.expect("it is a URL");
        let path = format!("{}?{}", url.path(), url.query().unwrap_or_default());
        let (status, body) = get(self.address, &path).ok_or("no answer")?;
        let answer: Value = serde_json::from_str(&body).map_err(|error| format!("{status}: {error}"))?;
        answer["data"]["result"].as_array().map(Vec::len).ok_or_else(|| format!("{status}: {body}"))
    }
}
