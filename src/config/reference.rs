//! The reference of a configuration's keys, written from the same schema that every configuration is held against.

use super::shape::{Field, Form, Shape, Word};
use std::{collections::BTreeSet, fmt::Write as _};

const HEAD: &str = "\
# Configuration

<!-- Generated from the types by `UPDATE_GENERATED=1 cargo nextest run --test pure config::`. Do not edit. -->

A configuration is one YAML document. `config/minimal.yaml` is the least that works; `config/example.yaml` is a page for your
own service; `config/schema.json` lets an editor complete and check. `delivery-canary check --config F` says all that is wrong
with one, each fault with its line and column, and what it will do.

- Unknown and repeated keys are refused. So are tags, merge keys (`<<`) and a second document. Anchors and aliases are read.
- `${NAME}` takes a variable of the environment, `${NAME:-default}` has a default for an unset or empty one, and `$${` is a
  literal `${`. They are put into values after parsing, so that a value can't change the structure. In `[...]` and `{...}` a
  value that holds `${NAME}` needs quotes, as YAML demands.
- A *secret* is text, best `${NAME}`, or `{ file: PATH }`. One line feed at the end of the file is dropped. Secrets are never
  printed. Secrets' files are watched as the configuration is.
- Relative paths count from the configuration's folder.
- A *duration* is numbers with the units `w`, `d`, `h`, `m`, `s`, `ms`, largest first: `90s`, `1h30m`.
- A file may have 4 MiB, 150,000 values with its aliases written out, and 24 levels.
- A changed file, and SIGHUP, load it again; a bad one changes nothing and is reported. `location`, `listeners`, `store`, `log`
  and the receivers' names, addresses and connection limits can't change while the process runs: a file in which one of them is another is
  refused whole, and is taken at the next start.
";

/// The reference, as Markdown.
pub fn markdown(root: &Shape) -> String {
    let mut writer = Writer { out: HEAD.to_owned(), done: BTreeSet::new() };
    writer.section(root, "the file itself");
    writer.out
}

struct Writer {
    out: String,
    done: BTreeSet<String>,
}

impl Writer {
    /// Writes the section of a shape, if it has one and it wasn't written yet, and those of all that it leads to.
    fn section(&mut self, shape: &Shape, place: &str) {
        let (name, help, words, fields, record): (_, _, &[Word], _, _) = match shape {
            Shape::Record { name, help, fields } => (name, help, &[], fields, true),
            Shape::Choice { name, help, words, kinds } if !kinds.is_empty() => {
                (name, help, words, kinds, false)
            }
            Shape::Table(inner) => return self.section(inner, &format!("{place}.NAME")),
            Shape::List { item, .. } => return self.section(item, &format!("{place}[]")),
            Shape::Optional(inner) | Shape::TextOr(inner) => return self.section(inner, place),
            _ => return,
        };
        if !self.done.insert(name.clone()) {
            return;
        }
        // Writing to a String can't fail.
        let _ = write!(self.out, "\n## {name}\n\n{help} First used in `{place}`.\n\n");
        self.table(words, fields, record);
        let place = if place == "the file itself" { String::new() } else { format!("{place}.") };
        for field in fields {
            self.section(&field.shape, &format!("{place}{}", field.name));
        }
    }

    fn table(&mut self, words: &[Word], fields: &[Field], record: bool) {
        let head =
            if record { "| key | type | default | meaning |" } else { "| one of | type | | meaning |" };
        let _ = writeln!(self.out, "{head}\n|---|---|---|---|");
        for word in words {
            let _ = writeln!(self.out, "| `{}` | word | | {} |", word.word, cell(&word.help));
        }
        for field in fields {
            let default = match (&field.default, field.required, record) {
                (_, _, false) => String::new(),
                (_, true, _) => "required".into(),
                (Some(value), ..) if !value.is_null() => format!("`{}`", cell(&value.to_string())),
                _ => "none".into(),
            };
            let row =
                [field.name.as_str(), &kind(&field.shape), &default, &cell(&field.help)].map(str::to_owned);
            let _ = writeln!(self.out, "| `{}` | {} | {} | {} |", row[0], row[1], row[2], row[3]);
        }
    }
}

/// A shape in a few words, with a link where it has a section.
fn kind(shape: &Shape) -> String {
    let link = |name: &str| format!("[{name}](#{})", name.to_lowercase());
    match shape {
        Shape::Any => "any value".into(),
        Shape::Text(Form::Free) => "text".into(),
        Shape::Text(Form::Duration) => "duration".into(),
        Shape::Text(Form::Time) => "RFC 3339 time".into(),
        Shape::Text(Form::Socket) => "address:port".into(),
        Shape::Integer { .. } => "whole number".into(),
        Shape::Number => "number".into(),
        Shape::Flag => "`true` or `false`".into(),
        Shape::Record { name, .. } => link(name),
        Shape::Choice { words, kinds, .. } if kinds.is_empty() => {
            let words: Vec<String> = words.iter().map(|word| format!("`{}`", word.word)).collect();
            words.join(", ")
        }
        Shape::Choice { name, .. } => link(name),
        Shape::Table(inner) => format!("by name: {}", kind(inner)),
        Shape::List { item, .. } => format!("list: {}", kind(item)),
        Shape::TextOr(record) => format!("text, or {}", kind(record)),
        Shape::Secret => "secret".into(),
        Shape::Optional(inner) => kind(inner),
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
