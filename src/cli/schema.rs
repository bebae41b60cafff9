//! `delivery-canary config schema` and `config reference`: what is generated from the configuration's types.

use crate::config::{reference, shape};
use anyhow::{Context, Result, anyhow};

/// The JSON schema of a configuration, as text that ends with a line feed.
///
/// # Errors
/// When the schema can't be written as text.
pub fn schema() -> Result<String> {
    let text = serde_json::to_string_pretty(&shape::schema()).context("the schema can't be written")?;
    Ok(text + "\n")
}

/// The reference of all keys, as Markdown.
///
/// # Errors
/// When the types gave a schema of an unknown form.
pub fn reference() -> Result<String> {
    shape::root().map(reference::markdown).map_err(|error| anyhow!("the schema can't be read: {error}"))
}
