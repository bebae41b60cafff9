//! tmp
use super::Outcome;
use clap::Args;
/// tmp
#[derive(Debug, Args)]
pub struct CheckArgs {
    #[command(flatten)]
    config: super::ConfigFile,
}
/// tmp
pub async fn run(_: CheckArgs) -> anyhow::Result<Outcome> {
    Ok(Outcome::Done)
}
