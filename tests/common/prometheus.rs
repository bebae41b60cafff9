//! A throw-away Prometheus for tests: real, on loopback, with a past that is given to it, or a target.

use super::world::{free_address, until};
use std::{
    fs,
    net::SocketAddr,
    process::{Child, Command, Stdio},
};
use tempfile::TempDir;

/// A running server. It is killed, and its files are removed, when this is dropped.
pub struct Prometheus {
    child: Child,
    address: SocketAddr,
    folder: TempDir,
}

impl Prometheus {
    /// Starts a server that knows these samples, in OpenMetrics with a time on each line. It scrapes nothing.
    pub fn with_past(openmetrics: &str) -> Self {
        let folder = folder();
        let samples = folder.path().join("past.txt");
        fs::write(&samples, openmetrics).expect("the samples are written");
        run(Command::new("promtool")
            .args(["tsdb", "create-blocks-from", "openmetrics"])
            .arg(&samples)
            .arg(folder.path().join("data")));
        Self::start(folder, "global: { scrape_interval: 1m }\n")
    }

    /// Starts a server that scrapes this address each second.
    pub fn scraping(target: SocketAddr) -> Self {
        let config = format!(
            "global: {{ scrape_interval: 1s }}\nscrape_configs:\n- job_name: canary\n  static_configs: [{{ targets: ['{target}'] }}]\n"
        );
        Self::start(folder(), &config)
    }

    fn start(folder: TempDir, text: &str) -> Self {
        let (config, data) = (folder.path().join("prometheus.yml"), folder.path().join("data"));
        fs::write(&config, text).expect("the configuration is written");
        let address = free_address();
        let log = fs::File::create(folder.path().join("log")).expect("the log opens");
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", data.display()))
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| {
                panic!("prometheus can't be run ({error}): install the package `prometheus`")
            });
        let server = Self { child, address, folder };
        until("the Prometheus to be ready", 60, || match super::world::process::get(address, "/-/ready") {
            Some((200, _)) => Ok(()),
            seen => Err(format!("{seen:?}; log:\n{}", server.log())),
        });
        server
    }

    /// Its address.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its address, as a URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn folder() -> TempDir {
    tempfile::Builder::new().prefix("delivery-canary-prometheus-").tempdir().expect("a temporary folder")
}

fn run(command: &mut Command) {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?} ({error}): install the package `prometheus`"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
