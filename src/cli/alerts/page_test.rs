//! `delivery-canary alerts page-test`: one page along the real way, that is a test and says so.

use crate::cli::out::say;
use crate::{
    alerts::{
        alertmanager::GROUP_WAIT,
        catalog::Severity,
        page_test::{NAME, PageTest, Seen},
    },
    cli::{
        ConfigFile, Outcome, WrongUsage,
        paused::whole_seconds,
        send::NotNow,
        wiring::{self, ConfigurationAtFault},
    },
    clock,
    config::{Config, acceptance::Acceptance, alerts::Alerts, scalar::Span},
    trust,
};
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use reqwest::{Client, Url};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Longest wait for one answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// Longest wait for the alert to be routed. It takes a moment.
const ROUTING_LIMIT: Duration = Duration::from_secs(30);

const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// As long as a page may last that is only a test.
const LONGEST: Span = Span::seconds(3_600);

#[derive(Debug, Args)]
pub(super) struct PageTestArgs {
    /// How urgent it is
    #[arg(long, value_enum, default_value_t = SeverityArg::Page)]
    severity: SeverityArg,
    /// The Alertmanager, instead of the configuration's `alerts.alertmanager`
    #[arg(long, value_name = "URL")]
    alertmanager: Option<String>,
    /// Who starts it: it stands in the page
    #[arg(long, default_value = "operator")]
    owner: String,
    /// When it ends by itself
    #[arg(long = "for", value_name = "DURATION", default_value = "5m")]
    lasts: Span,
    #[command(flatten)]
    config: ConfigFile,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SeverityArg {
    /// As what wakes somebody
    Page,
    /// As what can wait for office hours
    Ticket,
}

/// Posts the page, and tells whom the Alertmanager tells.
pub(super) async fn run(args: PageTestArgs) -> Result<Outcome> {
    if args.lasts.get().is_zero() || args.lasts > LONGEST {
        let wrong = format!("--for {} is out of range; write more than 0s and at most {LONGEST}", args.lasts);
        return Err(WrongUsage(wrong).into());
    }
    let owner = args.owner.trim();
    if owner.is_empty() || owner.len() > 100 || owner.chars().any(char::is_control) {
        return Err(
            WrongUsage("--owner is who starts the test; write 1 to 100 characters on a line".into()).into()
        );
    }
    let config = wiring::load(&(&args.config).into())?.config;
    let Some(alerts) = &config.alerts else {
        let reason =
            "there is no block `alerts` in the configuration: the service's name stands there".to_owned();
        return Err(ConfigurationAtFault(reason).into());
    };
    let alertmanager = address(&args, alerts, &config)?;
    let begins = clock::now();
    let test = PageTest {
        service: alerts.service.clone(),
        severity: match args.severity {
            SeverityArg::Page => Severity::Page,
            SeverityArg::Ticket => Severity::Ticket,
        },
        owner: owner.to_owned(),
        id: uuid::Uuid::new_v4().to_string(),
        begins,
        ends: begins + args.lasts.delta(),
    };
    let seen = send(&alertmanager, &test).await?;
    Ok(tell(&alertmanager, &test, &seen, alerts))
}

/// Where the Alertmanager is. It must not be where the monitored service is: what it shall tell of would keep it from telling.
fn address(args: &PageTestArgs, alerts: &Alerts, config: &Config) -> Result<Url> {
    let given = args.alertmanager.as_ref().map(|url| (url, true));
    let Some((text, is_given)) = given.or_else(|| alerts.alertmanager.as_ref().map(|url| (url, false)))
    else {
        let wrong = "no Alertmanager is known: write --alertmanager URL, or `alerts.alertmanager` in the configuration";
        return Err(WrongUsage(wrong.into()).into());
    };
    let refused = |reason: String| -> anyhow::Error {
        if is_given { WrongUsage(reason).into() } else { ConfigurationAtFault(reason).into() }
    };
    let is_plain = |url: &Url| {
        matches!(url.scheme(), "http" | "https")
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
    };
    let url = Url::parse(text).ok().filter(is_plain).filter(Url::has_host).ok_or_else(|| {
        refused("the Alertmanager's address can't be used; write `https://host:9093`, without credentials or a query".into())
    })?;
    if is_of_target(&url, config) {
        let host = url.host_str().unwrap_or_default();
        return Err(refused(format!(
            "`{host}` is a host of the monitored service, and while it doesn't work nobody would be told; nothing was sent"
        )));
    }
    Ok(url)
}

/// Whether the monitored service is reached there. On loopback everything has the same host, and the port tells.
fn is_of_target(url: &Url, config: &Config) -> bool {
    let is_same = |other: &Url| {
        let is_here = matches!(url.host_str(), Some("127.0.0.1" | "[::1]" | "localhost"));
        url.host_str() == other.host_str()
            && (!is_here || url.port_or_known_default() == other.port_or_known_default())
    };
    // The address is a template; its host hardly ever is.
    let mut targets =
        config.acceptances.values().filter_map(|Acceptance::Http(http)| Url::parse(&http.url).ok());
    targets.any(|target| is_same(&target))
}

/// The address of its alerts, below whatever prefix it has.
fn api(alertmanager: &Url) -> Url {
    let mut url = alertmanager.clone();
    let path = format!("{}/api/v2/alerts", url.path().trim_end_matches('/'));
    url.set_path(&path);
    url
}

/// Posts it, and waits until it is routed.
async fn send(alertmanager: &Url, test: &PageTest) -> Result<Seen> {
    wiring::install_tls();
    let client = Client::builder()
        .tls_backend_preconfigured(trust::client_config(None)?)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(ANSWER_LIMIT)
        .build()?;
    let url = api(alertmanager);
    let unreachable = |error: reqwest::Error| {
        let why = if error.is_connect() {
            "no connection came to be, and nothing was sent"
        } else {
            "no whole answer came, so nobody knows whether the test was taken"
        };
        NotNow(format!("the Alertmanager at {alertmanager} can't be used: {why}"))
    };
    let answer = client.post(url.clone()).json(&test.body()).send().await.map_err(unreachable)?;
    let status = answer.status();
    if !status.is_success() {
        bail!(NotNow(format!("the Alertmanager at {alertmanager} refused the test with status {status}")));
    }
    let mut asked = url;
    asked.query_pairs_mut().extend_pairs(test.filters().map(|filter| ("filter", filter)));
    let begun = Instant::now();
    loop {
        let answer = client.get(asked.clone()).send().await.map_err(unreachable)?;
        let status = answer.status();
        let listed: Value = answer.json().await.map_err(unreachable)?;
        if let Some(seen) = test.seen(&listed) {
            return Ok(seen);
        }
        if begun.elapsed() > ROUTING_LIMIT {
            let limit = Span(ROUTING_LIMIT);
            bail!(NotNow(format!(
                "the Alertmanager took the test, and within {limit} did not show where it goes (its last answer: status {status})"
            )));
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// Says where it goes, and what to look for there.
fn tell(alertmanager: &Url, test: &PageTest, seen: &Seen, alerts: &Alerts) -> Outcome {
    let to = if seen.receivers.is_empty() { "nobody".to_owned() } else { seen.receivers.join(", ") };
    let severity = test.severity.word();
    say!("the Alertmanager at {alertmanager} has {NAME} as a {severity}; it goes to: {to}");
    let mut is_well = !seen.receivers.is_empty();
    for quiet in &seen.quiet {
        say!("nobody is told: it is {quiet}");
        is_well = false;
    }
    let wanted = alerts.receivers.as_ref().map(|receivers| match test.severity {
        Severity::Page => &receivers.page.name,
        Severity::Ticket | Severity::None => &receivers.ticket.name,
    });
    if let Some(wanted) = wanted.filter(|wanted| !seen.receivers.contains(wanted)) {
        say!(
            "the configuration names `{wanted}` for a {severity}: merge the tree that `alerts generate` makes"
        );
        is_well = false;
    }
    if is_well {
        say!(
            "look there within {GROUP_WAIT}, or the `group_wait` of your tree, for {NAME} of the service {}, started by {}, test {}",
            test.service,
            test.owner,
            test.id
        );
        if test.severity == Severity::Ticket {
            say!(
                "tickets keep office hours: outside of them it does not come, since it ends before they begin"
            );
        }
    }
    say!(
        "it ends by itself at {}; where resolved alerts are sent, that comes with the next `group_interval`",
        whole_seconds(test.ends)
    );
    if is_well { Outcome::Done } else { Outcome::Found }
}
