//! The log: one line an event, JSON for machines or text for people, on standard error or wherever a test wants it.

use crate::config::model::{Log, LogFormat, LogLevel};
use tracing::{Subscriber, level_filters::LevelFilter};
use tracing_subscriber::{
    Layer, Registry, filter::Targets, fmt::MakeWriter, layer::SubscriberExt, util::SubscriberInitExt,
};

/// Why the log could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum LogsError {
    /// It was set up before.
    #[error("the log is set up already: it can be set up once in a process")]
    AlreadySetUp,
}

/// Sets up the process's log, on standard error.
///
/// # Errors
/// When it was set up before.
pub fn init(log: &Log) -> Result<(), LogsError> {
    subscriber(log, std::io::stderr).try_init().map_err(|_| LogsError::AlreadySetUp)
}

/// A log of this level and form that writes where it is told.
pub fn subscriber<W>(log: &Log, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let form = tracing_subscriber::fmt::layer().with_writer(writer);
    let form: Box<dyn Layer<Registry> + Send + Sync> = match log.format {
        LogFormat::Json => Box::new(
            form.json().flatten_event(true).with_current_span(false).with_span_list(false).with_ansi(false),
        ),
        LogFormat::Text => Box::new(form.with_ansi(false)),
    };
    tracing_subscriber::registry().with(form.with_filter(filter(log.level)))
}

/// Our own events from the configured level on. Other crates' below `warn` are left out: at `debug` and `trace` they show what
/// goes over the wire, and bodies and recipients stay out of the log.
fn filter(level: LogLevel) -> Targets {
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    Targets::new().with_default(level.min(LevelFilter::WARN)).with_target("delivery_canary", level)
}
