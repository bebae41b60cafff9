//! What must be true of rules and of the Alertmanager's configuration, ours or one that ours was merged into.
//!
//! Nothing acts on Pods; no page can be kept quiet; no alert is lost; every metric exists; every alert has an owner and a runbook.

mod receivers;
mod rules;

use crate::config::tree::{self, Content, Mark, Node};
use std::{collections::BTreeSet, fmt};

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file.
    pub file: String,
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: &'static str,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}; {}", self.file, self.line, self.column, self.message, self.hint)
    }
}

/// Where findings go.
struct Findings<'a> {
    file: &'a str,
    all: BTreeSet<Finding>,
}

impl Findings<'_> {
    fn add(&mut self, mark: Mark, message: impl Into<String>, hint: &'static str) {
        let Mark { line, column } = mark;
        self.all.insert(Finding { file: self.file.to_owned(), line, column, message: message.into(), hint });
    }
}

/// Looks at one file. `target_hosts` are the hosts of the monitored service.
pub fn lint(file: &str, text: &str, target_hosts: &BTreeSet<String>) -> Vec<Finding> {
    let mut findings = Findings { file, all: BTreeSet::new() };
    let (root, complaints) = tree::parse(text);
    for complaint in complaints {
        findings.add(complaint.mark, complaint.message, complaint.hint);
    }
    if let Some(root) = root {
        let groups = get(&root, "groups").or_else(|| get(get(&root, "spec")?, "groups"));
        if let Some(groups) = groups {
            rules::check(groups, &mut findings);
        } else if get(&root, "route").is_some() {
            receivers::check(&root, target_hosts, &mut findings);
        } else {
            findings.add(
                root.mark,
                "this is neither a rule file nor an Alertmanager's configuration",
                "give a file with `groups` or with `route`",
            );
        }
        actuators(&root, &mut findings);
    }
    findings.all.into_iter().collect()
}

/// Words of what acts on Pods, and of tools that do.
const ACTUATORS: [&str; 24] = [
    "kubectl",
    "evict",
    "eviction",
    "restart",
    "rollout",
    "drain",
    "cordon",
    "uncordon",
    "scale",
    "autoscale",
    "reboot",
    "terminate",
    "kill",
    "remediate",
    "remediation",
    "robusta",
    "stackstorm",
    "rundeck",
    "ansible",
    "awx",
    "argocd",
    "keda",
    "kured",
    "shoreline",
];

/// Addresses of the cluster's own interface.
const CLUSTER: [&str; 4] = ["kubernetes.default", "/api/v1/namespaces", "/apis/apps", ":6443"];

fn actuators(node: &Node, findings: &mut Findings<'_>) {
    match &node.content {
        Content::Scalar(scalar) => {
            let text = scalar.text.to_ascii_lowercase();
            // Both whole and in its parts, as in `pod_restart`; names of ours, which describe, are left out.
            let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let mut words = words
                .filter(|word| !word.starts_with("delivery_"))
                .flat_map(|word| std::iter::once(word).chain(word.split('_')));
            if let Some(word) = words.find(|word| ACTUATORS.contains(word)) {
                findings.add(
                    node.mark,
                    format!("`{word}` is a word of what acts on Pods"),
                    "an alert tells a person, and no machine acts on it",
                );
            }
            if let Some(part) = CLUSTER.iter().find(|part| text.contains(**part)) {
                findings.add(
                    node.mark,
                    format!("`{part}` is an address of the cluster's own interface"),
                    "an alert tells a person, and no machine acts on it",
                );
            }
        }
        Content::List(items) => items.iter().for_each(|item| actuators(item, findings)),
        Content::Map(entries) => entries.iter().for_each(|(_, value)| actuators(value, findings)),
    }
}

/// The value of a key.
fn get<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    match &node.content {
        Content::Map(entries) => entries.iter().find(|(known, _)| known.text == key).map(|(_, value)| value),
        _ => None,
    }
}

/// The text of a scalar.
fn text(node: &Node) -> Option<&str> {
    match &node.content {
        Content::Scalar(scalar) => Some(&scalar.text),
        _ => None,
    }
}

/// The text of a key's scalar.
fn text_of<'n>(node: &'n Node, key: &str) -> Option<&'n str> {
    get(node, key).and_then(text)
}

/// The items of a sequence.
fn items(node: &Node) -> &[Node] {
    match &node.content {
        Content::List(items) => items,
        _ => &[],
    }
}
