//! Processes, and what the system says of them in `/proc`.

use anyhow::{Context, Result};
use std::{
    fs,
    io::{BufRead, BufReader},
    net::SocketAddr,
    process::{Child, ChildStdin, Command, Stdio},
    time::Duration,
};

/// The unit of times in `/proc/PID/stat`: Linux shows user space a hundredth of a second on every architecture.
const TICK: Duration = Duration::from_millis(10);

/// A process that ends with this value.
pub struct Running {
    child: Child,
    _stdin: Option<ChildStdin>,
}

impl Running {
    /// Takes over a process that was started.
    pub fn new(mut child: Child) -> Self {
        let stdin = child.stdin.take();
        Self { child, _stdin: stdin }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }

    /// The processor time that it took so far, in user space and in the kernel.
    pub fn cpu(&self) -> Result<Duration> {
        cpu(&self.id().to_string())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts this program again in a role, and waits for the address that it prints.
pub fn role(name: &str) -> Result<(Running, SocketAddr)> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["--role", name])
        // It ends when this pipe does, also when the bench is stopped by hand.
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("the role {name} can't be started"))?;
    let stdout = child.stdout.take().context("it has no output")?;
    let running = Running::new(child);
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    let address = line.trim().parse().with_context(|| format!("the role {name} printed {line:?}"))?;
    Ok((running, address))
}

/// The processor time of this process so far.
pub fn own_cpu() -> Result<Duration> {
    cpu("self")
}

fn cpu(process: &str) -> Result<Duration> {
    let path = format!("/proc/{process}/stat");
    let text = fs::read_to_string(&path).with_context(|| format!("{path} can't be read"))?;
    // The name, in brackets, may hold anything; the 14th and 15th fields are counted from behind it.
    let (_, fields) = text.rsplit_once(") ").with_context(|| format!("{path} has no name"))?;
    let ticks: Vec<u32> =
        fields.split(' ').skip(11).take(2).map(str::parse).collect::<Result<_, _>>().context(path)?;
    Ok(TICK * ticks.iter().sum())
}

/// The memory of a process, in KiB.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// All that is resident.
    pub resident: u64,
    /// Of it, what is of no file: heap and stacks.
    pub anonymous: u64,
    /// Of it, what is of files: mostly the program itself.
    pub file: u64,
}

/// The memory of a process now.
pub fn memory(process: u32) -> Result<Memory> {
    let path = format!("/proc/{process}/status");
    let text = fs::read_to_string(&path).with_context(|| format!("{path} can't be read"))?;
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).context(format!("no {name}"))?;
        let number = line.trim_start_matches(':').trim().trim_end_matches(" kB");
        number.parse::<u64>().with_context(|| format!("{name}: {number}"))
    };
    Ok(Memory { resident: field("VmRSS")?, anonymous: field("RssAnon")?, file: field("RssFile")? })
}

/// How many processors this process may use.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The machine's load over one, five and fifteen minutes.
pub fn load() -> Result<String> {
    let text = fs::read_to_string("/proc/loadavg").context("/proc/loadavg can't be read")?;
    Ok(text.split(' ').take(3).collect::<Vec<_>>().join(" "))
}
