//! Monitors as processes of their own, and waiting for what they show.

use super::scrape::Scrape;
use std::{
    fs,
    io::Write as _,
    net::SocketAddr,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// The program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_delivery-canary");

/// Where one monitor is configured and can be reached.
#[derive(Clone)]
pub struct Place {
    /// Its configuration.
    pub config: PathBuf,
    /// Its log.
    pub log: PathBuf,
    /// `/metrics`.
    pub metrics: SocketAddr,
    /// Its own probes.
    pub health: SocketAddr,
    /// Its webhook listener.
    pub receipts: SocketAddr,
}

impl Place {
    /// Starts the monitor.
    pub fn serve(&self) -> Monitor {
        self.serve_with(&[])
    }

    /// Starts the monitor with these variables in its environment.
    pub fn serve_with(&self, environment: &[(&str, &str)]) -> Monitor {
        let log = fs::OpenOptions::new().create(true).append(true).open(&self.log).expect("the log opens");
        let child = Command::new(PROGRAM)
            .arg("serve")
            .arg("--config")
            .arg(&self.config)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("the log opens twice"))
            .stderr(log)
            .spawn()
            .expect("the monitor starts");
        Monitor { child, place: self.clone() }
    }

    /// Runs a command of the program on this configuration.
    pub fn command(&self, arguments: &[&str]) -> std::process::Output {
        let mut command = Command::new(PROGRAM);
        command.args(arguments).arg("--config").arg(&self.config).stdin(Stdio::null());
        command.output().expect("the program runs")
    }

    /// A scrape, if the monitor answers.
    pub fn scrape(&self) -> Option<Scrape> {
        let page = get(self.metrics, "/metrics")?;
        Some(
            Scrape::read(&page.1)
                .unwrap_or_else(|fault| panic!("the page can't be read: {fault}\n{}", page.1)),
        )
    }

    /// The status of a probe, if it answers.
    pub fn probe(&self, path: &str) -> Option<u16> {
        get(self.health, path).map(|(status, _)| status)
    }

    /// The value of a series of the first route, or of what has no route.
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        self.scrape()?.value(name, labels)
    }

    /// The log so far.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

/// A GET: the status and the body, if there is an answer.
pub fn get(address: SocketAddr, path: &str) -> Option<(u16, String)> {
    use std::io::Read as _;
    let mut stream = std::net::TcpStream::connect_timeout(&address, Duration::from_secs(2)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let body = if head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        unchunked(body)
    } else {
        body.into()
    };
    Some((status, body))
}

fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        if size == 0 {
            break;
        }
        whole.push_str(&rest[..size]);
        body = rest[size..].trim_start_matches("\r\n");
    }
    whole
}

/// A monitor that runs. It is killed when this is dropped.
pub struct Monitor {
    child: Child,
    /// Where it is.
    pub place: Place,
}

impl Monitor {
    /// Kills it as `kill -9` does.
    pub fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }

    /// Asks it to stop, and waits; gives its exit code.
    pub fn terminate(&mut self) -> Option<i32> {
        signal(self.child.id(), "TERM");
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("it can be asked") {
                return status.code();
            }
            assert!(
                began.elapsed() < Duration::from_secs(30),
                "it did not stop in 30s; log:\n{}",
                self.place.log()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("it can be asked").is_some()
    }

    /// Its exit code, once it has ended by itself.
    pub fn exit_code(&mut self) -> Option<i32> {
        self.child.try_wait().expect("it can be asked").and_then(|status| status.code())
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal to a process, by its id.
pub fn signal(process: u32, name: &str) {
    let status = Command::new("kill").args([format!("-{name}"), process.to_string()]).status();
    assert!(status.is_ok_and(|s| s.success()), "kill -{name} {process}");
}

/// Waits until something holds, at most so many seconds, and says the last state seen when it never does.
pub fn until(what: &str, seconds: u64, mut state: impl FnMut() -> Result<(), String>) {
    let began = Instant::now();
    loop {
        match state() {
            Ok(()) => return,
            Err(seen) => assert!(
                began.elapsed() < Duration::from_secs(seconds),
                "waited {seconds}s for {what}; last seen: {seen}"
            ),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
