//! The key of a unit: one small id, with the destination joined in where there is one.

use super::rows::{LedgerId, UnitId};
use std::fmt::Write;

/// The first character of a text that holds more than an id of the ledger.
const JOINED: char = '\u{1e}';

/// A unit, as it is kept: 24 bytes, and a destination costs only where there is one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitKey(LedgerId);

/// A kept text that is no key.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "the kept key {0:?} is not one that was written by this program: remove its row, and let the ledger be read again"
)]
pub struct KeyError(pub String);

impl From<UnitId> for UnitKey {
    fn from(unit: UnitId) -> Self {
        match (unit.notification, unit.destination) {
            (LedgerId::Text(text), None) if text.starts_with(JOINED) => {
                Self(LedgerId::Text(format!("{JOINED}n{text}").into()))
            }
            (id, None) => Self(id),
            (id, Some(destination)) => Self(LedgerId::Text((joined_prefix(&id) + &destination).into())),
        }
    }
}

impl UnitKey {
    /// The key of the whole notification, where this is one destination of it.
    pub(super) fn whole_notification(&self) -> Option<Self> {
        let is_joined = matches!(&self.0, LedgerId::Text(text) if text.starts_with(JOINED));
        let unit = is_joined.then(|| self.unit()).filter(|unit| unit.destination.is_some());
        unit.map(|unit| UnitId { destination: None, ..unit }.into())
    }

    /// Whether this is one destination of a notification: its key begins with what [`Self::parts_of`] gave.
    pub(super) fn is_part_of(&self, prefix: &str) -> bool {
        matches!(&self.0, LedgerId::Text(text) if text.starts_with(prefix))
    }

    /// What the keys of all units of a notification that have a destination begin with, and the least such key.
    pub(super) fn parts_of(notification: &LedgerId) -> (String, Self) {
        let prefix = joined_prefix(notification);
        let least = Self(LedgerId::Text(prefix.as_str().into()));
        (prefix, least)
    }

    /// The unit as the ledger knows it.
    pub fn unit(&self) -> UnitId {
        if let LedgerId::Text(text) = &self.0
            && let Some(joined) = text.strip_prefix(JOINED)
            && let Some(unit) = split(joined)
        {
            return unit;
        }
        UnitId { notification: self.0.clone(), destination: None }
    }

    /// A hash that stays the same over versions and restarts. Sums of it tell which units a cell holds.
    pub fn fingerprint(&self) -> u64 {
        match &self.0 {
            LedgerId::Int(number) => mixed(number.cast_unsigned() ^ 0x1d8e_4e27_c47d_124f),
            LedgerId::Uuid(bytes) => {
                let (high, low) = bytes.split_at(8);
                mixed(mixed(word(high)) ^ word(low))
            }
            LedgerId::Text(text) => mixed(text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
            })),
        }
    }

    /// The key as a text without NUL, for a store.
    pub fn to_text(&self) -> String {
        id_to_text(&self.0)
    }

    /// # Errors
    ///
    /// Where it isn't what [`Self::to_text`] gives.
    pub fn from_text(text: &str) -> Result<Self, KeyError> {
        id_from_text(text).map(Self)
    }
}

/// What a notification can be kept under, as far as its id's text tells. A text that is a number or a UUID as a database writes it may
/// have come as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptUnder {
    /// The keys that it can have by itself.
    pub keys: Vec<String>,
    /// What the keys of all its destinations begin with.
    pub prefixes: Vec<String>,
}

impl KeptUnder {
    /// The keys of this id.
    pub fn of(id: &str) -> Self {
        let number = id.parse().ok().filter(|number: &i64| number.to_string() == id).map(LedgerId::Int);
        let uuid = uuid::Uuid::try_parse(id).ok().filter(|uuid| uuid.to_string() == id);
        let uuid = uuid.map(|uuid| LedgerId::Uuid(uuid.into_bytes()));
        let ids: Vec<_> = [Some(LedgerId::Text(id.into())), number, uuid].into_iter().flatten().collect();
        let key =
            |id: &LedgerId| UnitKey::from(UnitId { notification: id.clone(), destination: None }).to_text();
        // Without a NUL character in it, a text is kept as it is; so what it begins with is too.
        let prefix = |id: &LedgerId| UnitKey::parts_of(id).1.to_text();
        Self { keys: ids.iter().map(key).collect(), prefixes: ids.iter().map(prefix).collect() }
    }
}

/// An id of the ledger as a text without NUL, for a store.
pub fn id_to_text(id: &LedgerId) -> String {
    match id {
        LedgerId::Int(number) => format!("i{number}"),
        LedgerId::Uuid(bytes) => format!("u{}", hex::encode(bytes)),
        LedgerId::Text(text) if text.contains('\0') => format!("x{}", hex::encode(text.as_bytes())),
        LedgerId::Text(text) => format!("t{text}"),
    }
}

/// # Errors
///
/// Where it isn't what [`id_to_text`] gives.
pub fn id_from_text(text: &str) -> Result<LedgerId, KeyError> {
    let wrong = || KeyError(text.to_owned());
    let mut letters = text.chars();
    let kind = letters.next().ok_or_else(wrong)?;
    let rest = letters.as_str();
    match kind {
        'i' => rest.parse().map(LedgerId::Int).map_err(|_| wrong()),
        'u' => uuid_from_hex(rest).map(LedgerId::Uuid).ok_or_else(wrong),
        't' => Ok(LedgerId::Text(rest.into())),
        'x' => {
            let bytes = hex::decode(rest).map_err(|_| wrong())?;
            String::from_utf8(bytes).map(|text| LedgerId::Text(text.into())).map_err(|_| wrong())
        }
        _ => Err(wrong()),
    }
}

fn joined_prefix(id: &LedgerId) -> String {
    let mut prefix = String::from(JOINED);
    // Writing to a String cannot fail.
    let _ = match id {
        LedgerId::Int(number) => write!(prefix, "i{number}:"),
        LedgerId::Uuid(bytes) => write!(prefix, "u{}:", hex::encode(bytes)),
        LedgerId::Text(text) => write!(prefix, "t{}:{text}", text.len()),
    };
    prefix
}

fn split(joined: &str) -> Option<UnitId> {
    let mut letters = joined.chars();
    let kind = letters.next()?;
    let rest = letters.as_str();
    if kind == 'n' {
        return Some(UnitId { notification: LedgerId::Text(rest.into()), destination: None });
    }
    let (head, tail) = rest.split_once(':')?;
    let (notification, destination) = match kind {
        'i' => (LedgerId::Int(head.parse().ok()?), tail),
        'u' => (LedgerId::Uuid(uuid_from_hex(head)?), tail),
        't' => {
            let (id, destination) = tail.split_at_checked(head.parse().ok()?)?;
            (LedgerId::Text(id.into()), destination)
        }
        _ => return None,
    };
    Some(UnitId { notification, destination: Some(destination.into()) })
}

fn uuid_from_hex(text: &str) -> Option<[u8; 16]> {
    let mut bytes = [0; 16];
    hex::decode_to_slice(text, &mut bytes).ok().map(|()| bytes)
}

fn word(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// Spreads every bit over all bits.
fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}
