//! A message that arrived, and the places in it that a configuration can name.

use crate::config::receipt::Place;
use hyper::header::{HeaderMap, HeaderName};
use serde_json::Value;
use std::{borrow::Cow, cell::OnceCell};
use thiserror::Error;

/// A message that arrived. It lives only while it is judged; nothing of it is kept.
#[derive(Debug)]
pub struct Message<'a> {
    /// Its headers.
    pub headers: &'a HeaderMap,
    /// Its whole body.
    pub body: &'a [u8],
    json: OnceCell<Option<Value>>,
}

/// A place in a message, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spot {
    /// A header.
    Header(HeaderName),
    /// A JSON pointer into the body.
    Pointer(String),
    /// The whole body.
    Body,
}

/// Why a place can't be looked at.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlaceError {
    /// No header can have this name.
    #[error("`{name}` is not the name of a header: use letters, digits and hyphens")]
    Header {
        /// What was given.
        name: String,
    },
    /// It is no JSON pointer.
    #[error(
        "`{pointer}` is not a JSON pointer: start with `/`, and write `~` as `~0` and `/` in a key as `~1`"
    )]
    Pointer {
        /// What was given.
        pointer: String,
    },
}

impl Spot {
    /// The spot of a configured place.
    pub fn compile(place: &Place) -> Result<Self, PlaceError> {
        match place {
            Place::Header(name) => header(name).map(Self::Header),
            Place::Pointer(pointer) => Ok(Self::Pointer(checked_pointer(pointer)?.to_owned())),
            Place::Body(_) => Ok(Self::Body),
        }
    }
}

/// The header of this name.
pub fn header(name: &str) -> Result<HeaderName, PlaceError> {
    name.parse().map_err(|_| PlaceError::Header { name: name.to_owned() })
}

/// The same pointer, if it is one. The empty one, which is the whole document, isn't taken: that is `body: whole`.
pub fn checked_pointer(pointer: &str) -> Result<&str, PlaceError> {
    let escapes_hold = pointer.split('~').skip(1).all(|after| after.starts_with(['0', '1']));
    if pointer.starts_with('/') && escapes_hold {
        Ok(pointer)
    } else {
        Err(PlaceError::Pointer { pointer: pointer.to_owned() })
    }
}

impl<'a> Message<'a> {
    /// Of these headers and this body.
    pub fn new(headers: &'a HeaderMap, body: &'a [u8]) -> Self {
        Self { headers, body, json: OnceCell::new() }
    }

    /// The text at a spot, or nothing where there is no text: no such header or key, a body that is not JSON or not UTF-8.
    ///
    /// A header that comes several times is joined by `, `. A JSON string is its content; any other JSON value is its
    /// shortest JSON text (`100.10` reads `100.1`).
    pub fn text_at(&self, spot: &Spot) -> Option<Cow<'_, str>> {
        match spot {
            Spot::Header(name) => self.header(name),
            Spot::Pointer(pointer) => self.value_at(pointer),
            Spot::Body => std::str::from_utf8(self.body).ok().map(Cow::Borrowed),
        }
    }

    /// The text of a header.
    pub fn header(&self, name: &HeaderName) -> Option<Cow<'_, str>> {
        let mut texts = self.headers.get_all(name).iter().map(|v| std::str::from_utf8(v.as_bytes()).ok());
        let first = texts.next()??;
        texts.try_fold(Cow::Borrowed(first), |joined, next| Some(Cow::Owned(format!("{joined}, {}", next?))))
    }

    /// The text at a JSON pointer of the body.
    pub fn value_at(&self, pointer: &str) -> Option<Cow<'_, str>> {
        let json = self.json.get_or_init(|| serde_json::from_slice(self.body).ok()).as_ref()?;
        Some(match json.pointer(pointer)? {
            Value::String(text) => Cow::Borrowed(text.as_str()),
            other => Cow::Owned(other.to_string()),
        })
    }
}
