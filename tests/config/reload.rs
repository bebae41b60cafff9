//! A changed file is noticed, however it changed; a bad one is reported once.

use super::{base, edit, environment};
use delivery_canary::config::{
    Config,
    watch::{Source, changes_needing_restart},
};
use std::{fs, os::unix::fs::symlink, path::Path};

fn source(path: &Path) -> Source {
    Source::new(path, None)
}

#[test]
fn a_change_is_loaded_once_and_a_bad_file_is_reported_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("monitor.yaml");
    fs::write(&path, base()).unwrap();
    let mut source = source(&path);
    let first = source.reload_if_changed(&environment).expect("never read").expect("sound");
    assert!(source.reload_if_changed(&environment).is_none());

    fs::write(&path, edit(&base(), "hourly_cap: 6", "hourly_cap: 7")).unwrap();
    let second = source.reload_if_changed(&environment).expect("changed").expect("sound");
    assert_eq!(second.config.routes[1].hourly_cap, 7);
    assert_ne!(first.hash, second.hash);

    fs::write(&path, "routes: [").unwrap();
    assert!(source.reload_if_changed(&environment).expect("changed").is_err());
    assert!(source.reload_if_changed(&environment).is_none());
    assert!(source.reload(&environment).is_err(), "a signal loads it whatever was seen");

    fs::remove_file(&path).unwrap();
    assert!(source.reload_if_changed(&environment).expect("gone").is_err());
    assert!(source.reload_if_changed(&environment).is_none());
    fs::write(&path, base()).unwrap();
    let back = source.reload_if_changed(&environment).expect("it is back").expect("sound");
    assert_eq!(back.hash, first.hash);
}

#[test]
fn a_mounted_configuration_that_is_swapped_by_a_link_is_noticed_with_its_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let text = edit(&base(), "- ${TOKEN_SECRET}", "- { file: token }");
    for (version, secret) in [("v1", "the-first-secret-of-two"), ("v2", "the-second-secret-of-two")] {
        fs::create_dir(at(version)).unwrap();
        fs::write(at(version).join("monitor.yaml"), &text).unwrap();
        fs::write(at(version).join("token"), format!("{secret}\n")).unwrap();
    }
    symlink("v1", at("..data")).unwrap();
    symlink("..data/monitor.yaml", at("monitor.yaml")).unwrap();
    symlink("..data/token", at("token")).unwrap();
    let secret = |config: &Config| {
        let delivery_canary::config::receipt::Receiver::Webhook(hook) = &config.receivers["hook"];
        hook.token_secrets[0].expose().to_owned()
    };
    let mut source = source(&at("monitor.yaml"));
    let first = source.reload(&environment).unwrap();
    assert_eq!(secret(&first.config), "the-first-secret-of-two");
    assert!(!source.is_changed());

    symlink("v2", at("..new")).unwrap();
    fs::rename(at("..new"), at("..data")).unwrap();
    let second = source.reload_if_changed(&environment).expect("swapped").unwrap();
    assert_eq!(secret(&second.config), "the-second-secret-of-two");
    assert_eq!(first.hash, second.hash, "the hash that is shown does not depend on secrets");
}

#[test]
fn a_secret_is_watched_while_the_configuration_is_broken() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("monitor.yaml"), edit(&base(), "- ${TOKEN_SECRET}", "- { file: token }")).unwrap();
    let mut source = source(&at("monitor.yaml"));
    let faults = source.reload(&environment).unwrap_err();
    assert!(faults.to_string().contains("can't be read"), "{faults}");
    assert!(source.reload_if_changed(&environment).is_none());
    fs::write(at("token"), "a-secret-that-comes-later").unwrap();
    source.reload_if_changed(&environment).expect("the secret came").unwrap();
}

#[test]
fn what_can_not_change_at_run_time_is_named() {
    let load = |text: &str| super::load_text(text).unwrap_or_else(|faults| panic!("{faults}")).config;
    let mut old = load(&base());
    let same = |text: &str, old: &mut Config| {
        // Paths count from the folder, which differs between two temporary ones.
        let mut new = load(text);
        new.store = old.store.clone();
        changes_needing_restart(old, &new)
    };
    assert_eq!(same(&base(), &mut old), [""; 0]);
    assert_eq!(same(&edit(&base(), "hourly_cap: 6", "hourly_cap: 7"), &mut old), [""; 0]);
    let changed = edit(&edit(&base(), "location: here", "location: there"), ":9464", ":9470");
    assert_eq!(same(&edit(&changed, ":9466", ":9477"), &mut old).len(), 3);
    assert_eq!(changes_needing_restart(&old, &load(&base())), ["store"]);
}

#[test]
fn a_location_from_outside_wins_and_is_judged() {
    let path = Path::new("tests/data/config/base.yaml");
    let of = |location| delivery_canary::config::load_at(path, Some(location), &environment);
    let there = of("there").unwrap();
    assert_eq!(there.config.location, "there");
    assert_eq!(there.hash, of("here").unwrap().hash, "rules are the same for all locations");
    assert!(of("elsewhere").unwrap_err().to_string().contains("not in `locations`"));
}

/// Rules that were made from the file elsewhere carry the hash that the monitor has.
#[test]
fn the_same_file_has_the_same_hash_wherever_it_lies() {
    let load = || super::load_text(&base()).unwrap_or_else(|faults| panic!("{faults}"));
    let (here, there) = (load(), load());
    assert_ne!(here.config.store, there.config.store, "its paths count from its folder");
    assert_eq!(here.hash, there.hash);
}

/// Replicas and locations listen elsewhere, are reached elsewhere and keep their state elsewhere: the same rules serve them all.
#[test]
fn what_each_process_has_of_its_own_leaves_the_hash_alone() {
    let hash = |text: &str| super::load_text(text).unwrap_or_else(|faults| panic!("{faults}")).hash;
    let base = base();
    for (from, to) in [
        (":9464", ":9470"),
        (":9465", ":9471"),
        (":9466", ":9477"),
        ("path: canary.sqlite", "path: other.sqlite"),
        ("public_url: https://", "public_url: https://us-east."),
    ] {
        assert_eq!(hash(&edit(&base, from, to)), hash(&base), "{to}");
    }
    assert_ne!(hash(&edit(&base, "hourly_cap: 6", "hourly_cap: 7")), hash(&base));
}
