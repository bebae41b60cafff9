//! `pause` and `resume`: the kill switch.

use super::{
    ConfigFile, Outcome, WrongUsage,
    paused::{Ending, after_resume, whole_seconds},
    wiring,
};
use crate::cli::out::say;
use crate::{
    clock,
    config::scalar::Span,
    domain::route::RouteName,
    store::{Operation, Pause},
};
use anyhow::Result;
use clap::Args;

/// The longest pause. What is forgotten for longer would be a route that nobody measures.
const LONGEST: Span = Span::seconds(30 * 86_400);

/// Arguments of `pause`.
#[derive(Debug, Args)]
pub struct PauseArgs {
    /// The route, as channel/name; all routes when left out
    route: Option<String>,
    /// For how long; the pause ends by itself
    #[arg(long = "for", value_name = "DURATION")]
    duration: Span,
    /// Who answers for it
    #[arg(long)]
    owner: String,
    /// Why
    #[arg(long)]
    reason: String,
    #[command(flatten)]
    config: ConfigFile,
}

/// Arguments of `resume`.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// The route, as channel/name; the pause of all routes when left out
    route: Option<String>,
    /// Who does it
    #[arg(long)]
    owner: String,
    #[command(flatten)]
    config: ConfigFile,
}

/// Stops sending until a time.
pub async fn pause(args: PauseArgs) -> Result<Outcome> {
    bounds(&args).map_err(WrongUsage)?;
    let opened = wiring::open_store(&args.config).await?;
    let route = args.route.as_deref().map(|name| opened.route(name)).transpose()?;
    let now = clock::now();
    let pause = Pause { route, owner: args.owner, reason: args.reason, until: now + args.duration.delta() };
    opened.store.pause(&pause, &operation(&pause.owner, "pause", pause.route.as_ref())).await?;
    let command = Ending { owner: Some(&pause.owner), config: &args.config }.command(pause.route.as_ref());
    say!(
        "{} paused until {}; `{command}` ends that sooner",
        subject(pause.route.as_ref()),
        whole_seconds(pause.until)
    );
    Ok(Outcome::Done)
}

/// What is asked for, held against what a pause may be. The error says what to write.
fn bounds(args: &PauseArgs) -> Result<(), String> {
    if args.owner.trim().is_empty() || args.reason.trim().is_empty() {
        return Err("a pause needs an owner and a reason: --owner NAME --reason TEXT".into());
    }
    if args.duration.get().is_zero() {
        return Err("--for 0s pauses nothing; write how long, such as 30m".into());
    }
    if args.duration > LONGEST {
        return Err(format!(
            "--for {} is longer than {LONGEST}; a pause that is needed for longer is a change of the configuration",
            args.duration
        ));
    }
    Ok(())
}

/// Sends again.
pub async fn resume(args: ResumeArgs) -> Result<Outcome> {
    let opened = wiring::open_store(&args.config).await?;
    let route = args.route.as_deref().map(|name| opened.route(name)).transpose()?;
    let has_ended =
        opened.store.resume(route.as_ref(), &operation(&args.owner, "resume", route.as_ref())).await?;
    let left = opened.store.pauses(clock::now()).await?;
    let ending = Ending { owner: Some(&args.owner), config: &args.config };
    for line in after_resume(route.as_ref(), has_ended, &left, &ending) {
        say!("{line}");
    }
    Ok(if has_ended { Outcome::Done } else { Outcome::NotFound })
}

fn subject(route: Option<&RouteName>) -> String {
    route.map_or_else(|| "all routes are".to_owned(), |route| format!("{route} is"))
}

fn operation(who: &str, what: &str, route: Option<&RouteName>) -> Operation {
    let on = route.map_or_else(|| "all routes".to_owned(), ToString::to_string);
    Operation { at: clock::now(), who: who.to_owned(), what: what.to_owned(), on }
}
