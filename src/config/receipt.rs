//! How a canary is received and what its content must be, as configuration.

use super::scalar::{Secret, Span};
use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{net::SocketAddr, path::PathBuf};

/// Room for one compiled regular expression, in bytes: what is larger is refused, here and where it is compiled to be used.
pub const REGEX_BYTES: usize = 256 * 1024;

/// Least bytes of a key that signs by Standard Webhooks.
pub const LEAST_KEY_BYTES: usize = 16;

/// Some senders leave the padding out; the bytes are the same.
pub const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The key that is written as `whsec_` and base64, or as base64 alone; nothing where it is neither, or shorter than [`LEAST_KEY_BYTES`].
pub fn standard_key(secret: &str) -> Option<Vec<u8>> {
    let key = BASE64.decode(secret.strip_prefix("whsec_").unwrap_or(secret)).ok()?;
    (key.len() >= LEAST_KEY_BYTES).then_some(key)
}

/// A sink of canaries. Exactly one kind is given.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Receiver {
    /// An HTTP listener of ours to which the service delivers webhooks.
    Webhook(Box<WebhookReceiver>),
}

/// An HTTP listener of ours.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebhookReceiver {
    /// The address it listens on, such as `0.0.0.0:9466`: a port of its own.
    #[schemars(extend("format" = "socket-address"))]
    pub listen: SocketAddr,
    /// The address by which the service reaches it, such as `https://canary.example.com/receipts`. `{{callback_url}}` in a request body is this, plus the token.
    /// Signed messages that we send to ourselves go through it too: while none arrives, a missing receipt proves nothing.
    pub public_url: String,
    /// Secrets that sign tokens, as in `token_secrets: ["${TOKEN_SECRET}"]`. The first signs; all verify. At least 16 bytes each. To rotate: add the new one
    /// last on all replicas, then move it first, and after `follow_for` take the old one away.
    pub token_secrets: Vec<Secret>,
    /// How the sender proves itself, where it can.
    #[serde(default)]
    pub sender: Sender,
    /// The header with the sender's own id of a message. A repeat with the same id is the same message.
    #[serde(default = "message_id_header")]
    pub message_id_header: String,
    /// How often the self-receipt is sent through the public address.
    #[serde(default = "fifteen_seconds")]
    pub self_receipt_every: Span,
    /// Largest body that is read, in bytes.
    #[serde(default = "body_limit")]
    pub max_body_bytes: usize,
    /// Most connections at a time. When all are taken, the one that has been reading the longest gives way to the next.
    #[serde(default = "connection_limit")]
    pub max_connections: usize,
    /// Limit on reading one whole request.
    #[serde(default = "ten_seconds")]
    pub request_timeout: Span,
    /// A file of PEM certificates to trust, besides the system's, when the self-receipt goes through the public address.
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
}

/// How the sender of a webhook proves itself.
#[derive(Clone, Debug, PartialEq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Sender {
    /// Only by the token that the canary carries.
    #[default]
    Token,
    /// By a header with a shared secret.
    SharedSecret(SharedSecret),
    /// By Standard Webhooks signatures (`webhook-id`, `webhook-timestamp`, `webhook-signature`).
    StandardWebhooks(StandardWebhooks),
}

/// A header that carries a shared secret.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SharedSecret {
    /// The header that carries it, such as `X-Webhook-Secret`.
    pub header: String,
    /// The secrets of which one must match, as in `secrets: ["${WEBHOOK_SECRET}"]`.
    pub secrets: Vec<Secret>,
}

/// Standard Webhooks verification.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StandardWebhooks {
    /// The secrets of which one must have signed (`whsec_...` or base64), as in `secrets: ["${WEBHOOK_SECRET}"]`.
    pub secrets: Vec<Secret>,
    /// How far the signed timestamp may be from our clock.
    #[serde(default = "five_minutes")]
    pub tolerance: Span,
}

/// Where and how a route's canaries arrive.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouteReceipt {
    /// The receiver at which its canaries arrive: a name of `receivers`, such as `sink`.
    pub receiver: String,
    /// Where the token stands in what arrives.
    #[serde(default)]
    pub token_in: TokenIn,
    /// What the content must be. Each has a name of its own, which is all that is kept of a failure.
    #[serde(default)]
    pub expect: Vec<Expectation>,
    /// Whether the sink should carry the `traceparent` that went out with the canary: `{ header: traceparent }` or `{ pointer: /trace }`.
    #[serde(default)]
    pub correlation: Option<Place>,
}

/// Where the token stands.
#[derive(Clone, Debug, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum TokenIn {
    /// The last segment of the path, as `{{callback_url}}` has it.
    #[default]
    Path,
    /// In this header.
    Header(String),
    /// At this JSON pointer of the body.
    Pointer(String),
}

/// A place in a webhook.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Place {
    /// A header, by name.
    Header(String),
    /// A JSON pointer into the body.
    Pointer(String),
    /// The whole body as text.
    Body(Whole),
}

/// The word `whole`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Whole {
    /// All of it.
    Whole,
}

/// One expectation of the content. All that is given must hold; at least one thing is.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// Its name, such as `amount`: lower case letters, digits and hyphens, at most 40.
    pub name: String,
    /// Where to look, as in `at: { pointer: /text }`, `at: { header: subject }` or `at: { body: whole }`.
    pub at: Place,
    /// A regular expression that must match.
    #[serde(default)]
    pub matches: Option<String>,
    /// A regular expression that must not match.
    #[serde(default)]
    pub must_not_match: Option<String>,
    /// The exact value. `{{canary_id}}` and `{{traceparent}}` in it are those of the canary.
    #[serde(default)]
    pub equals: Option<String>,
    /// Least length in characters.
    #[serde(default)]
    pub min_length: Option<usize>,
    /// Greatest length in characters.
    #[serde(default)]
    pub max_length: Option<usize>,
}

fn message_id_header() -> String {
    "webhook-id".into()
}
fn fifteen_seconds() -> Span {
    Span::seconds(15)
}
fn ten_seconds() -> Span {
    Span::seconds(10)
}
fn five_minutes() -> Span {
    Span::seconds(300)
}
fn body_limit() -> usize {
    65_536
}
fn connection_limit() -> usize {
    256
}
