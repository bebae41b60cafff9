//! A reader of the text exposition format that finds what `promtool check metrics` doesn't: duplicates, falling buckets, a
//! missing or wrong last bucket, samples of no family.

#![allow(dead_code, reason = "each program that has it uses a part of it")]

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
    process::{Command, Stdio},
};

pub type Labels = BTreeMap<String, String>;

/// One page, read.
#[derive(Debug, Default)]
pub struct Scrape {
    /// Kind by family.
    pub kinds: BTreeMap<String, String>,
    /// Samples by name and labels.
    pub samples: BTreeMap<(String, Labels), f64>,
}

impl Scrape {
    /// Reads a page; what is wrong with it is the error.
    pub fn read(page: &str) -> Result<Self, String> {
        let mut scrape = Self::default();
        let mut seen_in_order = Vec::<String>::new();
        for line in page.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').ok_or("a TYPE without a kind")?;
                if scrape.kinds.insert(name.into(), kind.into()).is_some() {
                    return Err(format!("{name} is there twice"));
                }
                seen_in_order.push(name.into());
            } else if !line.starts_with('#') && !line.is_empty() {
                let (name, labels, value) = sample(line)?;
                let family = family_of(&scrape.kinds, &name).ok_or(format!("{name} has no family"))?;
                if seen_in_order.last() != Some(&family) {
                    return Err(format!("{name} stands outside of its family"));
                }
                if !value.is_finite() {
                    return Err(format!("{line} is no finite number"));
                }
                if scrape.samples.insert((name, labels), value).is_some() {
                    return Err(format!("a duplicate: {line}"));
                }
            }
        }
        scrape.check_histograms()?;
        Ok(scrape)
    }

    fn check_histograms(&self) -> Result<(), String> {
        for name in self.kinds.iter().filter(|(_, kind)| *kind == "histogram").map(|(name, _)| name) {
            let mut series: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
            for ((sample, labels), value) in &self.samples {
                if *sample == format!("{name}_bucket") {
                    let mut labels = labels.clone();
                    let bound = labels.remove("le").ok_or(format!("a bucket of {name} without le"))?;
                    let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().unwrap() };
                    series.entry(labels).or_default().push((bound, *value));
                }
            }
            for (labels, mut buckets) in series {
                buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
                if !buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1) {
                    return Err(format!("buckets of {name} {labels:?} fall: {buckets:?}"));
                }
                let count = self.samples.get(&(format!("{name}_count"), labels.clone()));
                let last = buckets.last().filter(|(bound, _)| bound.is_infinite()).map(|(_, value)| value);
                if count.is_none() || count != last {
                    return Err(format!("{name} {labels:?}: count {count:?}, last bucket {last:?}"));
                }
                if !self.samples.contains_key(&(format!("{name}_sum"), labels.clone())) {
                    return Err(format!("{name} {labels:?} has no sum"));
                }
            }
        }
        Ok(())
    }

    /// The value of a sample whose labels are exactly these.
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let labels = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        self.samples.get(&(name.to_owned(), labels)).copied()
    }

    /// The family of a sample.
    pub fn family_of(&self, sample: &str) -> String {
        family_of(&self.kinds, sample).expect("checked when it was read")
    }

    /// How many series there are with this value of a label.
    pub fn with_label(&self, label: &str, value: &str) -> usize {
        self.samples.keys().filter(|(_, labels)| labels.get(label).is_some_and(|v| v == value)).count()
    }

    /// The label sets of a family's samples, without `le`.
    pub fn label_sets(&self, family: &str) -> BTreeSet<Labels> {
        let of_family = self.samples.keys().filter(|(name, _)| self.family_of(name) == family);
        of_family.map(|(_, labels)| labels.clone().into_iter().filter(|(k, _)| k != "le").collect()).collect()
    }
}

fn family_of(kinds: &BTreeMap<String, String>, sample: &str) -> Option<String> {
    if kinds.get(sample).is_some_and(|kind| kind != "histogram") {
        return Some(sample.to_owned());
    }
    ["_bucket", "_sum", "_count"].iter().find_map(|suffix| {
        let family = sample.strip_suffix(suffix)?;
        (kinds.get(family)? == "histogram").then(|| family.to_owned())
    })
}

fn sample(line: &str) -> Result<(String, Labels, f64), String> {
    let fault = |what: &str| format!("{what}: {line}");
    let name_end = line.find(['{', ' ']).ok_or(fault("no value"))?;
    let (name, mut rest) = line.split_at(name_end);
    let mut labels = Labels::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            let (label, after) = rest.split_once("=\"").ok_or(fault("a label without a value"))?;
            let (mut value, mut end, mut escaped) = (String::new(), None, false);
            for (place, c) in after.char_indices() {
                match (escaped, c) {
                    (true, 'n') => value.push('\n'),
                    (true, '\\' | '"') => value.push(c),
                    (true, _) => return Err(fault("an unknown escape")),
                    (false, '\\') => {}
                    (false, '"') => {
                        end = Some(place);
                        break;
                    }
                    (false, c) => value.push(c),
                }
                escaped = !escaped && c == '\\';
            }
            rest = &after[end.ok_or(fault("a label without an end"))? + 1..];
            rest = rest.strip_prefix(',').unwrap_or(rest);
            if labels.insert(label.to_owned(), value).is_some() {
                return Err(fault("a label twice"));
            }
        }
        rest = &rest[1..];
    }
    let value = rest.trim().parse().map_err(|_| fault("no number"))?;
    Ok((name.to_owned(), labels, value))
}

/// Fails unless `promtool check metrics` accepts the page without a remark.
pub fn promtool_accepts(page: &str) {
    let mut child = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("promtool can't be run ({e}): install the package `prometheus`"));
    child.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
    let out = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && said.trim().is_empty(), "promtool says: {said}");
}
