//! Every command that a runbook or an alert names is one that can be run with its configuration, as it stands there.

use super::{example, generate, variants};
use clap::Parser;
use delivery_canary::{alerts::RULES, cli::Cli};

const PROGRAM: &str = "delivery-canary ";

/// What a person puts in.
const PUT_IN: [(&str, &str); 10] = [
    ("FILE", "canary.yaml"),
    ("ROUTE", "webhook/receipts"),
    ("{{ $labels.route }}", "webhook/receipts"),
    ("LEDGER", "service"),
    ("{{ $labels.ledger }}", "service"),
    ("ID", "0192f1c2-7f4e-7abc-8def-0123456789ab"),
    ("FROM", "2026-01-31T10:00:00Z"),
    ("TO", "2026-01-31T11:00:00Z"),
    ("NAME", "somebody"),
    ("DIR", "alerts"),
];

/// The commands of ours in a page, which stand as code in a list.
fn commands(page: &str) -> Vec<&str> {
    let lines = page.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    lines.filter_map(|line| line.split('`').nth(1)).filter(|code| code.starts_with(PROGRAM)).collect()
}

/// The first commands that alerts carry.
fn annotated(rules: &str) -> Vec<&str> {
    let lines = rules.lines().filter_map(|line| line.trim().strip_prefix("first: "));
    lines.map(|text| text.trim_matches(['\'', '"'])).filter(|text| text.starts_with(PROGRAM)).collect()
}

fn can_be_run(what: &str, command: &str) {
    let put_in = PUT_IN.iter().fold(command.to_owned(), |text, (word, value)| {
        let parts: Vec<&str> = text.split(' ').map(|part| if part == *word { value } else { part }).collect();
        // A template has blanks in it.
        parts.join(" ").replace(word, if word.starts_with('{') { value } else { word })
    });
    assert!(
        put_in.contains(" --config canary.yaml"),
        "{what}: `{command}` doesn't say of which configuration"
    );
    if let Err(error) = Cli::try_parse_from(put_in.split(' ')) {
        panic!("{what}: `{command}`: {error}");
    }
}

#[test]
fn each_command_of_runbooks_and_alerts_is_whole_and_ours() {
    let whole = ("all of the example", example(), Vec::new());
    for (what, text, _) in variants().into_iter().chain([whole]) {
        let files = generate(&text, false).files;
        let pages = files.iter().filter(|(name, _)| name.starts_with("runbooks/"));
        let (mut checked, mut counts_exactly) = (0, 0);
        for (name, page) in pages {
            let found = commands(page);
            for command in &found {
                can_be_run(&format!("{what}, {name}"), command);
                checked += 1;
                counts_exactly += u32::from(command.contains("ledger reconcile"));
            }
            assert_eq!(
                found.iter().any(|c| c.contains(" FILE")),
                page.contains("`FILE` is "),
                "{what}, {name}"
            );
            assert!(page.matches("`FILE` is ").count() <= 1, "{what}, {name} explains it twice");
        }
        assert!(checked > 60, "{what}: {checked} commands");
        let annotated = annotated(&files[RULES]);
        assert!(!annotated.is_empty(), "{what}: {}", files[RULES]);
        annotated.iter().for_each(|command| can_be_run(what, command));
        let in_rules = annotated.iter().any(|command| command.contains("ledger reconcile"));
        // Without a `partition` query there is nothing to reconcile with.
        assert_eq!(
            (counts_exactly > 0, in_rules),
            (text.contains("partition:"), text.contains("partition:")),
            "{what}"
        );
    }
}

#[test]
fn the_page_of_contradictions_begins_with_those_that_contradict() {
    let page = &generate(&example(), false).files["runbooks/EvidenceDisagreement.md"];
    assert!(
        commands(page)[0].contains("canary list") && commands(page)[0].contains("--contradiction"),
        "{page}"
    );
}
