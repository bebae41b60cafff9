//! What a scalar is: null, a flag, a number or text, by the core schema of YAML 1.2.

use super::tree::{Content, Node, Scalar};
use serde_json::{Map, Number, Value};

/// What a scalar is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Nothing.
    Null,
    /// `true` or `false`.
    Flag(bool),
    /// A whole number.
    Integer(i128),
    /// Another finite number.
    Number(f64),
    /// Text.
    Text,
}

impl Kind {
    /// What it is, in words; none for text.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Null => Some("nothing"),
            Self::Flag(_) => Some("a flag"),
            Self::Integer(_) | Self::Number(_) => Some("a number"),
            Self::Text => None,
        }
    }
}

/// The kind of a scalar. In quotes it is text, but for a variable: `"${CAP}"` may be a number.
pub fn kind(scalar: &Scalar) -> Kind {
    if !scalar.plain && !scalar.interpolated {
        return Kind::Text;
    }
    match scalar.text.as_str() {
        "" | "~" | "null" | "Null" | "NULL" if !scalar.interpolated => Kind::Null,
        "true" | "True" | "TRUE" => Kind::Flag(true),
        "false" | "False" | "FALSE" => Kind::Flag(false),
        text => integer(text).map(Kind::Integer).or_else(|| number(text)).unwrap_or(Kind::Text),
    }
}

fn integer(text: &str) -> Option<i128> {
    let radix = |digits: &str, radix| {
        Some(digits)
            .filter(|d| d.bytes().all(|b| b.is_ascii_alphanumeric()))
            .and_then(|d| i128::from_str_radix(d, radix).ok())
    };
    if let Some(digits) = text.strip_prefix("0x") {
        radix(digits, 16)
    } else if let Some(digits) = text.strip_prefix("0o") {
        radix(digits, 8)
    } else {
        text.parse().ok()
    }
}

fn number(text: &str) -> Option<Kind> {
    let looks = text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b))
        && text.bytes().any(|b| b.is_ascii_digit());
    let number: f64 = text.parse().ok().filter(|_| looks)?;
    number.is_finite().then_some(Kind::Number(number))
}

/// The JSON of a scalar.
pub fn scalar(scalar: &Scalar) -> Value {
    match kind(scalar) {
        Kind::Null => Value::Null,
        Kind::Flag(flag) => flag.into(),
        Kind::Integer(whole) => match i64::try_from(whole) {
            Ok(whole) => whole.into(),
            Err(_) => scalar.text.clone().into(),
        },
        Kind::Number(number) => Number::from_f64(number).map_or(Value::Null, Value::Number),
        Kind::Text => scalar.text.clone().into(),
    }
}

/// The JSON of a whole tree.
pub fn any(node: &Node) -> Value {
    match &node.content {
        Content::Scalar(text) => scalar(text),
        Content::List(items) => Value::Array(items.iter().map(any).collect()),
        Content::Map(entries) => {
            let entries = entries.iter().map(|(key, value)| (key.text.clone(), any(value)));
            Value::Object(entries.collect::<Map<_, _>>())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_are_read_by_the_core_schema() {
        let plain = |text: &str| {
            let text = text.to_owned();
            kind(&Scalar { written: text.clone(), text, plain: true, interpolated: false })
        };
        assert_eq!(plain("+15005550006"), Kind::Integer(15_005_550_006));
        assert_eq!(plain("0x1F"), Kind::Integer(31));
        assert_eq!(plain("1.50"), Kind::Number(1.5));
        assert_eq!(plain("1e3"), Kind::Number(1000.0));
        for text in ["yes", "1.2.3", "infinity", "nan", "e", "1h", "0x", "+-1", "2026-01-01", "0x-1", "."] {
            assert_eq!(plain(text), Kind::Text, "{text}");
        }
        assert_eq!((plain(""), plain("~"), plain("True")), (Kind::Null, Kind::Null, Kind::Flag(true)));
    }
}
