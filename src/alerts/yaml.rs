//! YAML, as far as rules and the Alertmanager's configuration need it: block style, keys in the order given.

use std::fmt::Write as _;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Yaml {
    /// Text, a number or a flag. It is quoted where plain text would be read as something else.
    Text(String),
    /// A number or a flag, as it is written.
    Plain(String),
    /// A sequence.
    List(Vec<Self>),
    /// A mapping. Each entry may have lines of comment before it.
    Map(Vec<(String, Self)>),
    /// A value with lines of comment before it; in a sequence only.
    Noted(Vec<String>, Box<Self>),
}

impl Yaml {
    /// Text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A mapping.
    pub fn map<K: Into<String>>(entries: impl IntoIterator<Item = (K, Self)>) -> Self {
        Self::Map(entries.into_iter().map(|(key, value)| (key.into(), value)).collect())
    }

    /// A sequence of texts.
    pub fn texts<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Self {
        Self::List(texts.into_iter().map(Self::text).collect())
    }

    /// The document, with lines of comment at its head.
    pub fn document(&self, head: &[String]) -> String {
        let mut out = String::new();
        comments(&mut out, head, 0);
        self.write(&mut out, 0);
        out
    }

    /// Writes it as lines that are indented so far. Writing to a string can't fail.
    fn write(&self, out: &mut String, indent: usize) {
        match self {
            Self::Map(entries) => {
                for (key, value) in entries {
                    let _ = write!(out, "{:indent$}{}:", "", scalar(key));
                    value.write_value(out, indent);
                }
            }
            Self::List(items) => {
                for item in items {
                    let item = match item {
                        Self::Noted(notes, inner) => {
                            comments(out, notes, indent);
                            inner
                        }
                        other => other,
                    };
                    let mut inner = String::new();
                    match item {
                        Self::Map(entries) if !entries.is_empty() => item.write(&mut inner, indent + 2),
                        _ => {
                            let _ = write!(inner, "{:1$}", "", indent + 1);
                            item.write_value(&mut inner, indent);
                        }
                    }
                    let _ = write!(out, "{:indent$}-", "");
                    out.push_str(&inner[indent + 1..]);
                }
            }
            Self::Text(_) | Self::Plain(_) | Self::Noted(..) => {
                let _ = write!(out, "{:indent$}", "");
                self.write_value(out, indent);
            }
        }
    }

    /// Writes it behind a key or a dash.
    fn write_value(&self, out: &mut String, indent: usize) {
        match self {
            Self::Map(entries) if entries.is_empty() => out.push_str(" {}\n"),
            Self::List(items) if items.is_empty() => out.push_str(" []\n"),
            Self::Map(_) | Self::List(_) => {
                out.push('\n');
                self.write(out, indent + 2);
            }
            Self::Plain(text) => {
                let _ = writeln!(out, " {text}");
            }
            Self::Text(text) if text.contains('\n') => {
                out.push_str(" |-\n");
                for line in text.lines() {
                    let _ = writeln!(out, "{:1$}{line}", "", indent + 2);
                }
            }
            Self::Text(text) => {
                let _ = writeln!(out, " {}", scalar(text));
            }
            Self::Noted(_, inner) => inner.write_value(out, indent),
        }
    }
}

fn comments(out: &mut String, lines: &[String], indent: usize) {
    for line in lines {
        let _ = writeln!(out, "{:indent$}# {line}", "");
    }
}

/// Text on one line, quoted unless it can be nothing but text.
fn scalar(text: &str) -> String {
    let starts_well = text.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_word = matches!(
        text.to_ascii_lowercase().as_str(),
        "true" | "false" | "null" | "yes" | "no" | "on" | "off" | "y" | "n"
    );
    let is_safe = |c: char| c.is_ascii_alphanumeric() || " _-./()<>=+*;".contains(c);
    if starts_well && !is_word && !text.ends_with(' ') && text.chars().all(is_safe) {
        return text.to_owned();
    }
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(c);
            }
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_has_its_order_its_quotes_and_its_notes() {
        let document = Yaml::map([
            ("first", Yaml::text("yes")),
            ("second", Yaml::text("a: b # \"c\"\\")),
            ("lines", Yaml::text("x > 1\nand y")),
            ("empty", Yaml::List(Vec::new())),
            (
                "list",
                Yaml::List(vec![
                    Yaml::map([("k", Yaml::Plain("1".into())), ("m", Yaml::map([("n", Yaml::text("5m"))]))]),
                    Yaml::Noted(vec!["why".into()], Box::new(Yaml::text("plain text"))),
                ]),
            ),
        ]);
        let wanted = "# head\nfirst: \"yes\"\nsecond: \"a: b # \\\"c\\\"\\\\\"\nlines: |-\n  x > 1\n  and y\nempty: []\nlist:\n  - k: 1\n    m:\n      \"n\": \"5m\"\n  # why\n  - plain text\n";
        assert_eq!(document.document(&["head".into()]), wanted);
    }
}
