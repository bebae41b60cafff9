//! Holds a tree against the shape of a configuration: finds every fault of form, and gives the values.

use super::{
    fault::shown,
    near,
    report::{At, Report, open, secret},
    scalar::Span,
    shape::{Field, Form, Shape, Word},
    tree::{Content, Key, Mark, Node, Scalar},
    value::{self, Kind},
};
use chrono::DateTime;
use serde_json::{Map, Value};
use std::{collections::BTreeSet, net::SocketAddr};

/// Reads a secret's file. The error says what is wrong with it.
pub type ReadSecret<'a> = &'a mut dyn FnMut(&str) -> Result<String, String>;

/// Walks a tree.
pub struct Walker<'a> {
    /// Where faults go.
    pub report: &'a mut Report,
    /// How secret files are read.
    pub read_secret: ReadSecret<'a>,
    /// The addresses at or below which something is wrong.
    pub unsound: BTreeSet<At>,
    /// Where secrets stand whose variables could not be resolved.
    pub secrets: BTreeSet<Mark>,
}

/// The value, and whether all of it has the right form. Secrets are in it, so it has no `Debug`.
struct Shaped(Value, bool);

impl Walker<'_> {
    /// The value of the whole tree. What has the wrong form is null, and its address is unsound.
    pub fn walk(&mut self, shape: &Shape, root: &Node) -> Value {
        self.node(shape, root, &At::root()).0
    }

    fn node(&mut self, shape: &Shape, node: &Node, at: &At) -> Shaped {
        let shown = match &node.content {
            Content::Scalar(scalar) if shape.holds_secret() => secret(scalar),
            Content::Scalar(scalar) => open(scalar),
            _ => None,
        };
        self.report.place(at, node.mark, shown);
        let shaped = self.shaped(shape, node, at);
        if !shaped.1 {
            self.unsound.insert(at.clone());
        }
        shaped
    }

    fn shaped(&mut self, shape: &Shape, node: &Node, at: &At) -> Shaped {
        match (shape, &node.content) {
            // Its missing variable is reported by who put variables in; of the value nothing is known.
            (_, Content::Scalar(scalar)) if scalar.is_unresolved() => {
                if shape.is_secret() {
                    self.secrets.insert(node.mark);
                }
                Shaped(Value::Null, false)
            }
            (Shape::Optional(_), Content::Scalar(scalar)) if value::kind(scalar) == Kind::Null => {
                Shaped(Value::Null, true)
            }
            (Shape::Optional(inner), _) => self.shaped(inner, node, at),
            (Shape::Secret, _) => self.secret(node, at),
            (Shape::Any, _) => Shaped(value::any(node), true),
            (Shape::Record { fields, .. }, Content::Map(entries)) => self.record(fields, entries, at),
            (Shape::Table(inner), Content::Map(entries)) => self.table(inner, entries, at),
            (Shape::List { item, min }, Content::List(items)) => self.list(item, *min, items, at),
            (Shape::Choice { kinds, words, .. }, Content::Map(entries)) if !kinds.is_empty() => {
                self.tagged(kinds, words, entries, at)
            }
            (Shape::Choice { words, kinds, .. }, Content::Scalar(scalar)) => {
                self.word(words, kinds, scalar, at)
            }
            (Shape::TextOr(record), Content::Map(_)) => self.shaped(record, node, at),
            (Shape::Text(form), Content::Scalar(scalar)) => self.text(*form, scalar, at),
            (Shape::TextOr(_), Content::Scalar(scalar)) => self.text(Form::Free, scalar, at),
            (Shape::Integer { min, max }, Content::Scalar(scalar)) => self.integer(*min, *max, scalar, at),
            (Shape::Number, Content::Scalar(scalar)) => match value::kind(scalar) {
                Kind::Integer(_) | Kind::Number(_) => Shaped(value::scalar(scalar), true),
                _ => self.mismatch("a number", node, at),
            },
            (Shape::Flag, Content::Scalar(scalar)) => match value::kind(scalar) {
                Kind::Flag(flag) => Shaped(flag.into(), true),
                _ => self.mismatch("`true` or `false`", node, at),
            },
            _ => self.mismatch(&expected(shape), node, at),
        }
    }

    fn record(&mut self, fields: &[Field], entries: &[(Key, Node)], at: &At) -> Shaped {
        let (mut map, mut sound) = (Map::new(), true);
        for (key, node) in entries {
            match fields.iter().find(|field| field.name == key.text) {
                Some(field) => {
                    let Shaped(value, whole) = self.node(&field.shape, node, &at.key(&key.text));
                    sound &= whole;
                    map.insert(key.text.clone(), value);
                }
                // The rest of the record is still judged: its other faults are to be seen too.
                None => self.unknown_key(key, fields),
            }
        }
        for field in fields.iter().filter(|field| field.required && !map.contains_key(&field.name)) {
            self.report.fault(at, format!("the key `{}` is missing", field.name), field.help.clone());
            sound = false;
        }
        Shaped(Value::Object(map), sound)
    }

    fn unknown_key(&mut self, key: &Key, fields: &[Field]) {
        if self.report.is_full() {
            return;
        }
        let hint = match key.text.as_str() {
            "<<" => "merge keys are not read; put `&name` on a whole value and use it by `*name`".into(),
            text => near::hint(text, fields.iter().map(|field| field.name.as_str())),
        };
        self.report.fault_at(key.mark, format!("unknown key {}", shown(&key.text)), None, hint);
    }

    fn table(&mut self, shape: &Shape, entries: &[(Key, Node)], at: &At) -> Shaped {
        let (mut map, mut sound) = (Map::new(), true);
        for (key, node) in entries {
            self.report.place(&at.key(&key.text).name(), key.mark, None);
            let Shaped(value, whole) = self.node(shape, node, &at.key(&key.text));
            sound &= whole;
            map.insert(key.text.clone(), value);
        }
        Shaped(Value::Object(map), sound)
    }

    fn list(&mut self, shape: &Shape, min: u64, items: &[Node], at: &At) -> Shaped {
        let mut sound = true;
        if (items.len() as u64) < min {
            self.report.fault(at, format!("at least {min} must stand in this list"), "add one");
            sound = false;
        }
        let values = items.iter().enumerate().map(|(n, node)| {
            let Shaped(value, whole) = self.node(shape, node, &at.key(n));
            sound &= whole;
            value
        });
        let values = values.collect();
        Shaped(Value::Array(values), sound)
    }

    fn tagged(&mut self, kinds: &[Field], words: &[Word], entries: &[(Key, Node)], at: &At) -> Shaped {
        let (mut map, mut sound) = (Map::new(), entries.len() == 1);
        for (key, node) in entries {
            match kinds.iter().find(|kind| kind.name == key.text) {
                Some(kind) => {
                    let Shaped(value, whole) = self.node(&kind.shape, node, &at.key(&key.text));
                    sound &= whole;
                    map.insert(key.text.clone(), value);
                }
                None => {
                    let message = format!("unknown kind {}", shown(&key.text));
                    let names = kinds.iter().map(|kind| kind.name.as_str());
                    self.report.fault_at(key.mark, message, None, near::hint(&key.text, names));
                    sound = false;
                }
            }
        }
        if map.len() > 1 {
            self.report.fault(at, "only one of these kinds can be given", "keep one of them");
        } else if entries.is_empty() {
            self.report.fault(at, "a kind is missing", choices(words, kinds));
        }
        Shaped(Value::Object(map), sound)
    }

    fn word(&mut self, words: &[Word], kinds: &[Field], scalar: &Scalar, at: &At) -> Shaped {
        if words.iter().any(|word| word.word == scalar.text) {
            return Shaped(scalar.text.clone().into(), true);
        }
        let mut hint = choices(words, kinds);
        if let Some(near) = near::nearest(&scalar.text, words.iter().map(|word| word.word.as_str())) {
            hint = format!("did you mean `{near}`? {hint}");
        }
        let message =
            if words.is_empty() { "a mapping must stand here" } else { "this word isn't known here" };
        self.report.fault(at, message, hint);
        Shaped(Value::Null, false)
    }

    fn text(&mut self, form: Form, scalar: &Scalar, at: &At) -> Shaped {
        let text = scalar.text.as_str();
        let problem = match form {
            // Text that was put in by a variable is text, whatever it looks like.
            Form::Free if !scalar.interpolated && scalar.plain => value::kind(scalar).name().map(|name| {
                let hint =
                    if name == "nothing" { "write it, or leave the key out" } else { "put it in quotes" };
                (format!("text must stand here, and this is {name}"), hint.to_owned())
            }),
            _ => None,
        };
        let problem = problem.or_else(|| match form {
            Form::Free => None,
            Form::Duration => text.parse::<Span>().err().map(|_| {
                let hint =
                    "write numbers with the units w, d, h, m, s, ms, largest first, such as `90s` or `1h30m`";
                ("this is not a duration".to_owned(), hint.to_owned())
            }),
            Form::Time => DateTime::parse_from_rfc3339(text).err().map(|_| {
                ("this is not a time".into(), "write RFC 3339, such as `2026-12-31T22:00:00Z`".into())
            }),
            Form::Socket => text.parse::<SocketAddr>().err().map(|_| {
                let hint =
                    "write `127.0.0.1:9464`, `0.0.0.0:9464` or `[::]:9464`; a name is not resolved here";
                ("this is not an address with a port".to_owned(), hint.to_owned())
            }),
        });
        match problem {
            Some((message, hint)) => {
                self.report.fault(at, message, hint);
                Shaped(Value::Null, false)
            }
            None => Shaped(text.into(), true),
        }
    }

    fn integer(&mut self, min: i128, max: i128, scalar: &Scalar, at: &At) -> Shaped {
        match value::kind(scalar) {
            Kind::Integer(number) if (min..=max).contains(&number) => Shaped(value::scalar(scalar), true),
            Kind::Integer(_) => {
                self.report.fault(
                    at,
                    "this number is out of its range",
                    format!("write one from {min} to {max}"),
                );
                Shaped(Value::Null, false)
            }
            _ => {
                let hint = if scalar.plain { "write digits" } else { "write digits, without quotes" };
                self.report.fault(at, "a whole number must stand here", hint);
                Shaped(Value::Null, false)
            }
        }
    }

    fn secret(&mut self, node: &Node, at: &At) -> Shaped {
        let refuse = |walker: &mut Self, mark: Mark, message: String| {
            let hint = "write `${NAME}` of the environment, or `{ file: PATH }`";
            walker.report.fault_at(mark, message, None, hint);
            Shaped(Value::Null, false)
        };
        match &node.content {
            Content::Scalar(scalar) if scalar.text.is_empty() || value::kind(scalar) == Kind::Null => {
                refuse(self, node.mark, "this secret is empty".into())
            }
            Content::Scalar(scalar) => Shaped(scalar.text.clone().into(), true),
            Content::Map(entries) => match &entries[..] {
                [(Key { text, .. }, Node { content: Content::Scalar(path), .. })] if text == "file" => {
                    self.report.place(&at.key("file"), node.mark, open(path));
                    match (self.read_secret)(&path.text) {
                        Ok(secret) => Shaped(secret.into(), true),
                        Err(problem) => refuse(self, node.mark, problem),
                    }
                }
                _ => refuse(self, node.mark, "a secret is text, or a mapping with the one key `file`".into()),
            },
            Content::List(_) => refuse(self, node.mark, "a secret is text, not a list".into()),
        }
    }

    fn mismatch(&mut self, wanted: &str, node: &Node, at: &At) -> Shaped {
        let found = match &node.content {
            Content::Scalar(scalar) => value::kind(scalar).name().unwrap_or("text"),
            Content::List(_) => "a list",
            Content::Map(_) => "a mapping",
        };
        let hint =
            if found == "nothing" { "write it, or leave the key out" } else { "see docs/configuration.md" };
        self.report.fault(at, format!("{wanted} must stand here, and this is {found}"), hint);
        Shaped(Value::Null, false)
    }
}

fn expected(shape: &Shape) -> String {
    match shape {
        Shape::Record { .. } | Shape::Table(_) => "a mapping".into(),
        Shape::List { .. } => "a list".into(),
        Shape::TextOr(_) => "text or a mapping".into(),
        Shape::Choice { words, kinds, .. } if kinds.is_empty() => choices(words, kinds),
        Shape::Choice { .. } => "a mapping with one key".into(),
        Shape::Integer { .. } => "a whole number".into(),
        _ => "text".into(),
    }
}

/// What a choice can be, in words.
fn choices(words: &[Word], kinds: &[Field]) -> String {
    let words = words.iter().map(|word| format!("`{}`", word.word));
    let kinds = kinds.iter().map(|kind| format!("`{}: ...`", kind.name));
    let all: Vec<String> = words.chain(kinds).collect();
    format!("one of {}", all.join(", "))
}
