//! A PgBouncer of the test's own, in transaction mode: on loopback, on a free port, gone with the test.

use super::world::free_address;
use std::{
    fs::{self, File},
    io::Read,
    net::TcpStream,
    os::unix::{
        fs::{MetadataExt, chown},
        process::CommandExt,
    },
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// How long it may take to be ready, or to be gone.
const WITHIN: Duration = Duration::from_secs(30);

/// Holds the pooler: when the test's process ends, however it ends, standard input closes and the pooler is ended by its process id.
const HOLD: &str = r#""$@" & pid=$!; read -r _; kill -INT "$pid"; wait "$pid""#;

/// A running pooler.
pub struct PgBouncer {
    shell: Child,
    folder: TempDir,
    /// Host and port, as they stand in a URL.
    pub address: String,
}

impl PgBouncer {
    /// Starts a pooler before the server at this address, for these users.
    pub fn start(server: &str, users: &[&str]) -> Self {
        let program = program();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (settings, list) = (folder.path().join("pgbouncer.ini"), folder.path().join("users.txt"));
        let address = free_address();
        let (host, port) = server.split_once(':').expect("host and port");
        let text = format!(
            "[databases]\n* = host={host} port={port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {}\nunix_socket_dir =\n\
             auth_type = trust\nauth_file = {}\npool_mode = transaction\nserver_reset_query_always = 0\nlog_connections = 0\nlog_disconnections = 0\n",
            address.port(),
            list.display()
        );
        let users: String = users.iter().map(|user| format!("\"{user}\" \"\"\n")).collect();
        fs::write(&settings, text).expect("the settings can be written");
        fs::write(&list, users).expect("the users can be written");
        let log = File::create(folder.path().join("log")).expect("the log can be written");
        let mut command = Command::new("/bin/sh");
        command.args(["-c", HOLD, "hold", &program]).arg(&settings).current_dir("/");
        command.stdin(Stdio::piped()).stdout(log.try_clone().expect("a log")).stderr(log);
        if let Some((user, group)) = other_user() {
            for path in [folder.path(), &settings, &list] {
                chown(path, Some(user), Some(group)).expect("root can give a file away");
            }
            command.uid(user).gid(group);
        }
        let shell = command.spawn().expect("/bin/sh can be started");
        let pooler = Self { shell, folder, address: address.to_string() };
        let began = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(began.elapsed() < WITHIN, "PgBouncer was not ready in {WITHIN:?}: {}", pooler.log());
            thread::sleep(Duration::from_millis(20));
        }
        pooler
    }

    /// What it said so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        // The shell sees its input close, and ends the pooler.
        drop(self.shell.stdin.take());
        let began = Instant::now();
        while let Ok(None) = self.shell.try_wait() {
            if began.elapsed() > WITHIN {
                eprintln!("PgBouncer at {} did not end in {WITHIN:?}", self.address);
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

fn program() -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    let folders = path.split(':').chain(["/usr/sbin", "/usr/bin"]);
    let found =
        folders.map(|folder| format!("{folder}/pgbouncer")).find(|program| Path::new(program).is_file());
    found.expect("this test needs PgBouncer: install the pgbouncer package")
}

/// The user and group that it runs as when we are root, which it refuses to run as.
fn other_user() -> Option<(u32, u32)> {
    if fs::metadata("/proc/self").map(|process| process.uid()).unwrap_or(1) != 0 {
        return None;
    }
    let mut users = String::new();
    File::open("/etc/passwd")
        .and_then(|mut file| file.read_to_string(&mut users))
        .expect("users can be read");
    let mut fields = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let user =
        fields.find(|fields| fields[0] == "postgres").expect("as root this test needs a user `postgres`");
    Some((user[2].parse().expect("a user id"), user[3].parse().expect("a group id")))
}
