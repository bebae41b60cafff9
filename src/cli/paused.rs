//! What is paused, by whom, until when and why: the same words wherever a command meets a pause.

use super::{ConfigFile, paste};
use crate::{domain::route::RouteName, store::Pause};
use chrono::{DateTime, SecondsFormat, Utc};

/// A time as people write it: RFC 3339, in UTC, without parts of a second.
pub fn whole_seconds(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// In a shell, the name of whoever runs a command.
const ME: &str = "\"$(id -un)\"";

/// How a pause is ended by whoever runs a command, on the configuration that it was given.
#[derive(Clone, Copy, Debug)]
pub struct Ending<'a> {
    /// Who runs it; nothing where that is not known.
    pub owner: Option<&'a str>,
    /// The configuration.
    pub config: &'a ConfigFile,
}

impl Ending<'_> {
    /// The whole command that ends the pause of a route, or of all routes, to be pasted.
    pub fn command(&self, route: Option<&RouteName>) -> String {
        let route = route.map_or_else(String::new, |route| format!(" {}", paste::word(route.as_str())));
        let location = self.config.location.as_deref();
        let location = location.map_or_else(String::new, |name| format!(" --location {}", paste::word(name)));
        let path = paste::word(&self.config.path.display().to_string());
        // Who pastes it is who ends the pause: the shell knows by what name.
        let owner = self.owner.map_or_else(|| ME.to_owned(), paste::word);
        format!("delivery-canary resume{route} --owner {owner} --config {path}{location}")
    }
}

/// Who is in the way, and how that ends, as in `all routes are paused by ops until 2026-11-30T12:00:00Z (migration): ...`.
pub fn told(pause: &Pause, already: &str, ending: &Ending<'_>) -> String {
    let subject =
        pause.route.as_ref().map_or_else(|| "all routes are".to_owned(), |route| format!("{route} is"));
    let already = if already.is_empty() { String::new() } else { format!("{already} ") };
    format!(
        "{subject} {already}paused by {} until {} ({}): `{}` ends that",
        pause.owner,
        whole_seconds(pause.until),
        pause.reason,
        ending.command(pause.route.as_ref())
    )
}

/// The pauses that hold a route back: its own, and that of all routes.
pub fn holding<'a>(pauses: &'a [Pause], route: &RouteName) -> impl Iterator<Item = &'a Pause> {
    pauses.iter().filter(move |pause| pause.route.as_ref().is_none_or(|paused| paused == route))
}

/// Why nothing is sent on a route. All pauses are named: each of them has to end.
pub fn in_the_way(pauses: &[Pause], route: &RouteName, ending: &Ending<'_>) -> String {
    let all: Vec<String> = holding(pauses, route).map(|pause| told(pause, "", ending)).collect();
    if all.is_empty() {
        return format!("{route} was paused until this moment: send again");
    }
    all.join("; and ")
}

/// What came of `resume`, a line each: whether a pause was ended, and which are left in force.
pub fn after_resume(
    route: Option<&RouteName>,
    has_ended: bool,
    left: &[Pause],
    ending: &Ending<'_>,
) -> Vec<String> {
    let still = if has_ended { "still" } else { "" };
    let left: Vec<&Pause> = match route {
        Some(route) => holding(left, route).collect(),
        None => left.iter().filter(|pause| pause.route.is_some()).collect(),
    };
    let first = match (route, has_ended, left.is_empty()) {
        (Some(route), true, true) => format!("{route} is resumed"),
        (Some(route), true, false) => format!("the pause of {route} is ended"),
        (Some(route), false, true) => format!("{route} is not paused"),
        (Some(route), false, false) => format!("{route} has no pause of its own"),
        (None, true, true) => "all routes are resumed".to_owned(),
        (None, true, false) => "the pause of all routes is ended".to_owned(),
        (None, false, _) => "there is no pause of all routes".to_owned(),
    };
    [first].into_iter().chain(left.into_iter().map(|pause| told(pause, still, ending))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::route::Channel;

    fn name(name: &str) -> RouteName {
        RouteName::new(Channel::Webhook, name)
    }

    fn pause(route: Option<&str>) -> Pause {
        Pause {
            route: route.map(name),
            owner: "ops".into(),
            reason: "migration".into(),
            until: DateTime::from_timestamp(1_790_000_000, 123_456_789).expect("a time"),
        }
    }

    const ALL: &str = "paused by ops until 2026-09-21T14:13:20Z (migration): `delivery-canary resume --owner 'on call' \
                       --config /etc/monitor.yaml --location zurich` ends that";
    const OWN: &str = "paused by ops until 2026-09-21T14:13:20Z (migration): `delivery-canary resume webhook/r1 --owner 'on call' \
                       --config /etc/monitor.yaml --location zurich` ends that";

    fn config() -> ConfigFile {
        ConfigFile { path: "/etc/monitor.yaml".into(), location: Some("zurich".into()) }
    }

    #[test]
    fn each_pause_in_the_way_is_named_with_who_until_when_and_why() {
        let (all, own, other) = (pause(None), pause(Some("r1")), pause(Some("r2")));
        let config = config();
        let ending = Ending { owner: Some("on call"), config: &config };
        let said = |pauses: &[Pause]| in_the_way(pauses, &name("r1"), &ending);
        assert_eq!(said(std::slice::from_ref(&all)), format!("all routes are {ALL}"));
        assert_eq!(said(&[other.clone(), own.clone()]), format!("webhook/r1 is {OWN}"));
        assert_eq!(said(&[all, own]), format!("all routes are {ALL}; and webhook/r1 is {OWN}"));
        assert_eq!(said(&[other]), "webhook/r1 was paused until this moment: send again");
    }

    #[test]
    fn whoever_did_not_say_who_he_is_ends_a_pause_by_his_own_name() {
        let config = config();
        let ending = Ending { owner: None, config: &config };
        let said = told(&pause(None), "", &ending);
        assert!(said.contains("paused by ops until"), "{said}");
        assert!(said.contains("`delivery-canary resume --owner \"$(id -un)\" --config"), "{said}");
    }

    #[test]
    fn a_resume_says_what_is_still_paused() {
        let (all, own, other) = (pause(None), pause(Some("r1")), pause(Some("r2")));
        let route = name("r1");
        let config = config();
        let ending = Ending { owner: Some("on call"), config: &config };
        let said =
            |route, has_ended, left: &[Pause]| after_resume(route, has_ended, left, &ending).join("\n");
        let one = Some(&route);
        assert_eq!(said(one, true, &[]), "webhook/r1 is resumed");
        assert_eq!(said(one, true, std::slice::from_ref(&other)), "webhook/r1 is resumed");
        assert_eq!(said(one, false, std::slice::from_ref(&other)), "webhook/r1 is not paused");
        let both = format!("the pause of webhook/r1 is ended\nall routes are still {ALL}");
        assert_eq!(said(one, true, &[all.clone(), other.clone()]), both);
        let only_all = format!("webhook/r1 has no pause of its own\nall routes are {ALL}");
        assert_eq!(said(one, false, &[all]), only_all);
        assert_eq!(said(None, true, &[]), "all routes are resumed");
        let left = format!("the pause of all routes is ended\nwebhook/r1 is still {OWN}");
        assert_eq!(said(None, true, std::slice::from_ref(&own)), left);
        assert_eq!(
            said(None, false, &[own]),
            format!("there is no pause of all routes\nwebhook/r1 is {OWN}")
        );
        assert_eq!(said(None, false, &[]), "there is no pause of all routes");
    }
}
