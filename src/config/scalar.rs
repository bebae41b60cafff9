//! The scalars that a configuration is made of: durations, secrets, ratios and names.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{borrow::Cow, fmt, str::FromStr, time::Duration};

/// A duration written as people write it: `250ms`, `90s`, `5m`, `1h30m`, `14d`.
///
/// Units are `ms`, `s`, `m`, `h`, `d` and `w`, from the largest to the smallest, each at most once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub Duration);

const UNITS: [(&str, u64); 6] =
    [("w", 604_800_000), ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

impl Span {
    /// A span of whole seconds.
    pub const fn seconds(n: u64) -> Self {
        Self(Duration::from_secs(n))
    }

    /// The span as a standard duration.
    pub const fn get(self) -> Duration {
        self.0
    }

    /// The span as a signed duration, for arithmetic on instants.
    pub fn delta(self) -> chrono::TimeDelta {
        chrono::TimeDelta::from_std(self.0).unwrap_or(chrono::TimeDelta::MAX)
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fault = || {
            format!(
                "`{text}` is not a duration: write numbers with the units w, d, h, m, s, ms, largest first, \
                 such as `90s` or `1h30m`"
            )
        };
        let (mut rest, mut total, mut unit_from) = (text, 0u64, 0usize);
        if rest.is_empty() {
            return Err(fault());
        }
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let letters = rest[digits..].bytes().take_while(u8::is_ascii_alphabetic).count();
            let (number, unit) = (&rest[..digits], &rest[digits..digits + letters]);
            let place = UNITS.iter().position(|(name, _)| *name == unit).ok_or_else(fault)?;
            if place < unit_from {
                return Err(fault());
            }
            let amount: u64 = number.parse().map_err(|_| fault())?;
            let part = amount.checked_mul(UNITS[place].1).ok_or_else(fault)?;
            total = total.checked_add(part).ok_or_else(fault)?;
            unit_from = place + 1;
            rest = &rest[digits + letters..];
        }
        Ok(Self(Duration::from_millis(total)))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        if left == 0 {
            return f.write_str("0s");
        }
        for (name, size) in UNITS {
            // Weeks are read but not written: `14d` is what people expect to see again.
            if name != "w" && left >= size {
                write!(f, "{}{name}", left / size)?;
                left %= size;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Span {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A duration: numbers with the units w, d, h, m, s, ms, largest first, such as `90s` or `1h30m`.",
            "pattern": "^([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$",
            "minLength": 2,
        })
    }
}

/// A secret: a string, best written as `${NAME}` of the environment, or `{ file: PATH }`.
///
/// By the time a configuration is loaded the file has been read. A secret never prints itself.
#[derive(Clone)]
pub struct Secret(SecretString);

impl Secret {
    /// Wraps a secret value.
    pub fn new(value: impl Into<String>) -> Self {
        Self(SecretString::from(value.into()))
    }

    /// The secret itself. Every caller hands it to a peer or a hash, and to nothing that is kept or printed.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        use subtle::ConstantTimeEq;
        self.expose().as_bytes().ct_eq(other.expose().as_bytes()).into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::new(String::deserialize(deserializer)?))
    }
}

impl Serialize for Secret {
    /// Never the secret: what is written out is for a reference or a hash that others may see.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("[secret]")
    }
}

impl JsonSchema for Secret {
    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A secret: a string such as `${NAME}`, read from the environment, or `{ file: PATH }`.",
            "x-secret": true,
            "oneOf": [
                { "type": "string", "minLength": 1 },
                {
                    "type": "object",
                    "properties": { "file": { "type": "string", "minLength": 1 } },
                    "required": ["file"],
                    "additionalProperties": false,
                },
            ],
        })
    }
}
