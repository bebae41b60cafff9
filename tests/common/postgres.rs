//! A throw-away PostgreSQL server for tests: real, on loopback, on a free port, gone with the test.
//!
//! `initdb` runs once for each PostgreSQL version and machine, under a file lock; a server starts on a copy of what it made.
//! A small shell holds the server: when the test's process ends, however it ends, the shell sees its standard input close,
//! stops the server by its process id and removes its files. As root the server runs as the user `postgres`.

#![allow(dead_code, reason = "each program that has it uses a part of it")]

use sqlx::{AssertSqlSafe, Connection, PgConnection};
use std::{
    fs::{self, File},
    io::{Read, Write},
    net::TcpListener,
    os::unix::{
        fs::{MetadataExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

/// How long a server may take to be ready, or to be gone. A busy machine is slow.
const WITHIN: Duration = Duration::from_secs(60);

/// Holds the server: arguments are the template, the server's home and the server's command. A line `keep` on standard
/// input stops the server and keeps its files; the end of standard input removes them too. The signal is repeated, since a
/// server that has only just been started does not hear it yet.
const HOLD: &str = r#"
template=$1; home=$2; shift 2
if [ -e "$home/data" ] || cp -a --reflink=auto "$template" "$home/data"; then
    { "$@" & echo $! >"$home/pid"; wait $!; : >"$home/ended"; } &
    read -r word
    until [ -e "$home/ended" ]; do kill -INT "$(cat "$home/pid")" 2>/dev/null; sleep 0.02; done
    wait
else
    : >"$home/ended"
    read -r word
fi
[ "$word" = keep ] || rm -rf "$home"
"#;

/// A running server. It is stopped, and its files are removed, when this is dropped.
pub struct Postgres {
    template: PathBuf,
    home: PathBuf,
    port: u16,
    shell: Option<Child>,
    databases: AtomicU32,
    /// Settings beside those of every test server; the last of a name holds.
    settings: Vec<String>,
}

impl Postgres {
    /// Starts a server. Panics with what to do when there is none to start.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server with these settings, such as `shared_buffers=1GB`, beside those of every test server.
    pub fn start_with(settings: &[&str]) -> Self {
        let template = template();
        let home = tempfile::Builder::new()
            .prefix("delivery-canary-postgres-")
            .tempdir()
            .expect("a temporary folder can be made")
            .keep();
        give_to_server(&home);
        let settings = settings.iter().map(ToString::to_string).collect();
        let databases = AtomicU32::new(0);
        let mut server = Self { template, home, port: 0, shell: None, databases, settings };
        server.run_on_a_free_port();
        server
    }

    /// Host and port, as they stand in a URL.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Makes an empty database and gives its URL. The user is a superuser.
    pub async fn fresh_database(&self) -> String {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.execute("postgres", &format!("create database {name}")).await;
        self.url(&name)
    }

    /// Makes a role that can log in and do nothing, and gives the URL by which it reaches this database.
    pub async fn role(&self, name: &str, database_url: &str) -> String {
        self.execute("postgres", &format!("create role {name} login")).await;
        database_url.replacen("postgres://postgres@", &format!("postgres://{name}@"), 1)
    }

    /// The superuser's URL of a database.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@{}/{database}", self.address())
    }

    /// Runs statements in a database as superuser.
    pub async fn execute(&self, database: &str, sql: &str) {
        let url = self.url(database);
        let mut connection = PgConnection::connect(&url).await.expect("the test server takes connections");
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
            .execute(&mut connection)
            .await
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
        connection.close().await.expect("the connection closes");
    }

    /// Stops the server and keeps its files. Open connections are broken.
    pub fn stop(&mut self) {
        self.end("keep\n");
    }

    /// Starts a stopped server again, on its port and with its data.
    pub fn start_again(&mut self) {
        assert!(self.shell.is_none(), "the server runs");
        if let Err(log) = self.run() {
            panic!("PostgreSQL did not start again on port {}: {log}", self.port);
        }
    }

    /// The same with other settings.
    pub fn start_again_with(&mut self, settings: &[&str]) {
        self.settings = settings.iter().map(ToString::to_string).collect();
        self.start_again();
    }

    /// The process id of the running server: all its processes are children of that one.
    pub fn process_id(&self) -> u32 {
        let text = fs::read_to_string(self.home.join("data/postmaster.pid")).unwrap_or_default();
        text.lines().next().and_then(|line| line.parse().ok()).expect("the server runs")
    }

    /// How much its files take, in bytes.
    pub fn disk_bytes(&self) -> u64 {
        let text = output(Command::new("du").args(["-sb"]).arg(&self.home));
        text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0)
    }

    fn run_on_a_free_port(&mut self) {
        let mut last = String::new();
        for _ in 0..10 {
            // Somebody may take the port between this and the server's start; then the next one is tried.
            let free = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
            self.port = free.expect("a port is free").port();
            match self.run() {
                Ok(()) => return,
                Err(log) => last = log,
            }
        }
        panic!("PostgreSQL did not start on ten free ports; the last log: {last}");
    }

    /// Runs the server until it is ready; the error is its log.
    fn run(&mut self) -> Result<(), String> {
        let (ended, data, log) = (self.home.join("ended"), self.home.join("data"), self.home.join("log"));
        let _ = fs::remove_file(&ended);
        let _ = fs::remove_file(self.home.join("pid"));
        let log_file = File::create(&log).expect("the log can be written");
        let settings = [
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "fsync=off",
            "synchronous_commit=off",
            "full_page_writes=off",
            "shared_buffers=16MB",
            "max_connections=100",
        ];
        let mut shell = as_server("/bin/sh");
        shell.args(["-c", HOLD, "hold"]).arg(&self.template).arg(&self.home);
        shell.arg(binary("postgres")).arg("-D").arg(&data).args(["-p", &self.port.to_string()]);
        let own = self.settings.iter().map(String::as_str);
        shell.args(settings.into_iter().chain(own).flat_map(|setting| ["-c", setting]));
        shell.stdin(Stdio::piped()).stdout(log_file.try_clone().expect("a log")).stderr(log_file);
        self.shell = Some(shell.spawn().expect("/bin/sh can be started"));
        let log_text = || fs::read_to_string(&log).unwrap_or_default();
        let ready = || {
            let pid_file = fs::read_to_string(data.join("postmaster.pid")).unwrap_or_default();
            pid_file.lines().nth(7).is_some_and(|status| status.trim() == "ready")
        };
        let began = Instant::now();
        loop {
            if ended.exists() {
                self.end("keep\n");
                return Err(log_text());
            }
            if ready() {
                return Ok(());
            }
            assert!(
                began.elapsed() < WITHIN,
                "PostgreSQL was not ready in {WITHIN:?}; its log: {}",
                log_text()
            );
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn end(&mut self, word: &str) {
        let Some(mut shell) = self.shell.take() else { return };
        if let Some(mut input) = shell.stdin.take() {
            let _ = input.write_all(word.as_bytes());
        }
        let began = Instant::now();
        while let Ok(None) = shell.try_wait() {
            if began.elapsed() > WITHIN {
                let _ = shell.kill();
                eprintln!("PostgreSQL on port {} did not end in {WITHIN:?}", self.port);
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if self.shell.is_none() {
            let _ = fs::remove_dir_all(&self.home);
        }
        self.end("");
    }
}

/// The folder that `initdb` made, for everybody to copy.
fn template() -> PathBuf {
    let version = output(Command::new(binary("postgres")).arg("--version"));
    // "postgres (PostgreSQL) 15.18 (...)": the third word.
    let version = version.split_whitespace().nth(2).unwrap_or("unknown");
    let owner =
        server_user().map_or_else(|| output(Command::new("id").arg("-u")), |(uid, _)| uid.to_string());
    let name = format!("delivery-canary-postgres-template-{version}-{}", owner.trim());
    let base = std::env::temp_dir().join(&name);
    let (lock, made) = (std::env::temp_dir().join(format!("{name}.lock")), base.join("data"));
    let lock =
        File::options().create(true).append(true).open(&lock).expect("the template's lock can be opened");
    lock.lock().expect("the template's lock can be had");
    if made.join("complete").exists() {
        return made;
    }
    let _ = fs::remove_dir_all(&base);
    fs::create_dir(&base).expect("the template's folder can be made");
    give_to_server(&base);
    let mut initdb = as_server(binary("initdb").as_os_str());
    initdb.args([
        "-U",
        "postgres",
        "-A",
        "trust",
        "-E",
        "UTF8",
        "--locale=C",
        "--no-sync",
        "--wal-segsize=1",
    ]);
    let done = initdb.arg("-D").arg(&made).output().expect("initdb can be started");
    assert!(done.status.success(), "initdb failed: {}", String::from_utf8_lossy(&done.stderr));
    fs::write(made.join("complete"), "").expect("the template can be marked as complete");
    made
}

/// A program of PostgreSQL: from the usual folders, the newest first, or else from the path.
fn binary(name: &str) -> PathBuf {
    let mut folders: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .map(|versions| versions.flatten().map(|version| version.path().join("bin")).collect())
        .unwrap_or_default();
    folders.sort_by_key(|folder| {
        let version = folder.parent().and_then(Path::file_name).and_then(|name| name.to_str());
        std::cmp::Reverse(version.and_then(|version| version.parse::<u32>().ok()))
    });
    folders.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    folders.into_iter().map(|folder| folder.join(name)).find(|path| path.is_file()).unwrap_or_else(|| {
        panic!("this test needs PostgreSQL: `{name}` is neither in /usr/lib/postgresql/*/bin nor on PATH; install the postgresql package")
    })
}

/// The user and group that the server runs as, when we are root, which PostgreSQL refuses to run as.
fn server_user() -> Option<(u32, u32)> {
    let us = fs::metadata("/proc/self").map(|process| process.uid()).unwrap_or(1);
    if us != 0 {
        return None;
    }
    let mut users = String::new();
    File::open("/etc/passwd")
        .and_then(|mut file| file.read_to_string(&mut users))
        .expect("/etc/passwd can be read");
    let user =
        users.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|user| user[0] == "postgres");
    let user = user.expect("as root this test needs a user `postgres`, as the postgresql package makes it");
    Some((user[2].parse().expect("a user id"), user[3].parse().expect("a group id")))
}

fn as_server(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir("/");
    if let Some((user, group)) = server_user() {
        command.uid(user).gid(group);
    }
    command
}

fn give_to_server(folder: &Path) {
    if let Some((user, group)) = server_user() {
        chown(folder, Some(user), Some(group)).expect("root can give a folder away");
    }
}

fn output(command: &mut Command) -> String {
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    String::from_utf8_lossy(&done.stdout).into_owned()
}
