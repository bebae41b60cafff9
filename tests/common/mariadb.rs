//! A throw-away MariaDB server for tests: real, on loopback, on a free port, gone with the test.
//!
//! The system tables are made once for each version and machine, under a file lock; a server starts on a copy of them.
//! A small shell holds the server: when the test's process ends, however it ends, the shell sees its standard input close,
//! stops the server by its process id and removes its files. As root the server runs as the user `mysql`.

use sqlx::{AssertSqlSafe, Connection, MySqlConnection};
use std::{
    fs::{self, File},
    io::Write,
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
    until [ -e "$home/ended" ]; do kill -TERM "$(cat "$home/pid")" 2>/dev/null; sleep 0.02; done
    wait
else
    : >"$home/ended"
    read -r word
fi
[ "$word" = keep ] || rm -rf "$home"
"#;

/// Small files, for the template and for the servers alike.
const SMALL: [&str; 5] = [
    "--innodb-log-file-size=4M",
    "--innodb-data-file-path=ibdata1:5M:autoextend",
    "--innodb-autoextend-increment=1",
    "--innodb-undo-tablespaces=0",
    "--innodb-use-native-aio=0",
];

/// A running server. It is stopped, and its files are removed, when this is dropped.
pub struct Mariadb {
    template: PathBuf,
    home: PathBuf,
    port: u16,
    shell: Option<Child>,
    databases: AtomicU32,
}

impl Mariadb {
    /// Starts a server. Panics with what to do when there is none to start.
    pub fn start() -> Self {
        let template = template();
        let home = tempfile::Builder::new()
            .prefix("delivery-canary-mariadb-")
            .tempdir()
            .expect("a temporary folder can be made")
            .keep();
        give_to_server(&home);
        let mut server = Self { template, home, port: 0, shell: None, databases: AtomicU32::new(0) };
        server.run_on_a_free_port();
        server
    }

    /// Host and port, as they stand in a URL.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Makes an empty database and gives its URL. The user may do everything.
    pub async fn fresh_database(&self) -> String {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.execute("mysql", &format!("create database {name} character set utf8mb4")).await;
        self.url(&name)
    }

    /// Makes a user that can log in and do nothing, and gives the URL by which it reaches this database.
    pub async fn role(&self, name: &str, database_url: &str) -> String {
        self.execute("mysql", &format!("create user {name}@'127.0.0.1'")).await;
        database_url.replacen("mysql://root@", &format!("mysql://{name}@"), 1)
    }

    /// The URL of a database for the user that may do everything.
    pub fn url(&self, database: &str) -> String {
        format!("mysql://root@{}/{database}", self.address())
    }

    /// Runs statements in a database.
    pub async fn execute(&self, database: &str, sql: &str) {
        let url = self.url(database);
        let mut connection = MySqlConnection::connect(&url).await.expect("the test server takes connections");
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
            panic!("MariaDB did not start again on port {}: {log}", self.port);
        }
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
        panic!("MariaDB did not start on ten free ports; the last log: {last}");
    }

    /// Runs the server until it is ready; the error is its log.
    fn run(&mut self) -> Result<(), String> {
        let (ended, log) = (self.home.join("ended"), self.home.join("log"));
        let _ = fs::remove_file(&ended);
        let _ = fs::remove_file(self.home.join("pid"));
        let log_file = File::create(&log).expect("the log can be written");
        let of_home = |option: &str, file: &str| format!("--{option}={}", self.home.join(file).display());
        let mut shell = as_server("/bin/sh");
        shell.args(["-c", HOLD, "hold"]).arg(&self.template).arg(&self.home);
        shell.arg(binary("mariadbd")).args(["--no-defaults", "--bind-address=127.0.0.1"]);
        shell.args([
            of_home("datadir", "data"),
            of_home("socket", "socket"),
            of_home("pid-file", "server.pid"),
            format!("--port={}", self.port),
        ]);
        shell.args(SMALL).args([
            "--innodb-buffer-pool-size=16M",
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-doublewrite=0",
            "--skip-name-resolve",
            "--performance-schema=off",
            // The server's own zone must never matter.
            "--default-time-zone=+09:00",
        ]);
        shell.stdin(Stdio::piped()).stdout(log_file.try_clone().expect("a log")).stderr(log_file);
        self.shell = Some(shell.spawn().expect("/bin/sh can be started"));
        let log_text = || fs::read_to_string(&log).unwrap_or_default();
        let began = Instant::now();
        loop {
            if ended.exists() {
                self.end("keep\n");
                return Err(log_text());
            }
            if log_text().contains("ready for connections") {
                return Ok(());
            }
            assert!(began.elapsed() < WITHIN, "MariaDB was not ready in {WITHIN:?}; its log: {}", log_text());
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
                eprintln!("MariaDB on port {} did not end in {WITHIN:?}", self.port);
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Mariadb {
    fn drop(&mut self) {
        if self.shell.is_none() {
            let _ = fs::remove_dir_all(&self.home);
        }
        self.end("");
    }
}

/// The folder with the system tables, for everybody to copy.
fn template() -> PathBuf {
    let version = output(Command::new(binary("mariadbd")).args(["--no-defaults", "--version"]));
    // "/usr/sbin/mariadbd  Ver 10.11.6-MariaDB for ...": the word after `Ver`.
    let version = version.split_whitespace().skip_while(|word| *word != "Ver").nth(1).unwrap_or("unknown");
    let owner =
        server_user().map_or_else(|| output(Command::new("id").arg("-u")), |(uid, _)| uid.to_string());
    let name = format!("delivery-canary-mariadb-template-{version}-{}", owner.trim());
    let base = std::env::temp_dir().join(&name);
    let (lock, made) = (std::env::temp_dir().join(format!("{name}.lock")), base.join("data"));
    let lock =
        File::options().create(true).append(true).open(&lock).expect("the template's lock can be opened");
    lock.lock().expect("the template's lock can be had");
    if base.join("complete").exists() {
        return made;
    }
    let _ = fs::remove_dir_all(&base);
    fs::create_dir(&base).expect("the template's folder can be made");
    give_to_server(&base);
    let mut install = as_server(binary("mariadb-install-db").as_os_str());
    install.args([
        "--no-defaults",
        "--auth-root-authentication-method=normal",
        "--skip-test-db",
        "--skip-name-resolve",
    ]);
    let done = install.args(SMALL).arg(format!("--datadir={}", made.display())).output();
    let done = done.expect("mariadb-install-db can be started");
    let said = [done.stdout, done.stderr].concat();
    assert!(done.status.success(), "mariadb-install-db failed: {}", String::from_utf8_lossy(&said));
    fs::write(base.join("complete"), "").expect("the template can be marked as complete");
    made
}

/// A program of MariaDB: from the usual folders, or else from the path.
fn binary(name: &str) -> PathBuf {
    let mut folders = vec![PathBuf::from("/usr/sbin"), PathBuf::from("/usr/bin")];
    folders.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    folders.into_iter().map(|folder| folder.join(name)).find(|path| path.is_file()).unwrap_or_else(|| {
        panic!("this test needs MariaDB: `{name}` is neither in /usr/sbin nor on PATH; install the mariadb-server package")
    })
}

/// The user and group that the server runs as, when we are root, which MariaDB refuses to run as.
fn server_user() -> Option<(u32, u32)> {
    let us = fs::metadata("/proc/self").map(|process| process.uid()).unwrap_or(1);
    if us != 0 {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").expect("/etc/passwd can be read");
    let user = users.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|user| user[0] == "mysql");
    let user = user.expect("as root this test needs a user `mysql`, as the mariadb-server package makes it");
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
