//! How a canary is submitted, as configuration.

use super::scalar::{Secret, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::PathBuf};

/// An acceptance API. Exactly one kind is given.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Acceptance {
    /// An HTTP API that answers with a stable notification id.
    Http(Box<HttpAcceptance>),
}

/// An HTTP request that asks the service to accept one notification, and how its answer is read.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpAcceptance {
    /// The HTTP method.
    #[serde(default = "post")]
    pub method: Method,
    /// The address that accepts notifications, such as `https://host/v1/notifications`. A template: `{{canary_id}}`, `{{key}}` and the route's variables may stand in it.
    pub url: String,
    /// Headers, by name. Values are templates.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Headers whose values are secrets, by name. They are no templates and are never printed.
    #[serde(default)]
    pub secret_headers: BTreeMap<String, Secret>,
    /// The body, a template. Every variable in it must exist: `canary_id`, `key`, `token`, `recipient`, `slot`,
    /// `now`, `deadline`, `callback_url`, `traceparent`, `route`, `location` and the route's variables. Inside JSON, write `{{ recipient | tojson }}`.
    #[serde(default)]
    pub body: String,
    /// The media type of the body.
    #[serde(default = "json")]
    pub content_type: String,
    /// Where the idempotency key goes. Without idempotency a submission whose fate is unknown is never repeated.
    #[serde(default)]
    pub idempotency: Idempotency,
    /// Which answers mean accepted, and where the notification id stands in them.
    #[serde(default)]
    pub accepted: Accepted,
    /// Statuses that are a definite refusal. What is in no list is ambiguous.
    #[serde(default = "refused_statuses")]
    pub refused_statuses: Vec<u16>,
    /// Statuses that say nothing by themselves: the ledger is asked (409, mostly).
    #[serde(default = "ask_ledger_statuses")]
    pub ask_ledger_statuses: Vec<u16>,
    /// Errors inside an accepted status: when any of these holds, the answer is a definite refusal.
    #[serde(default)]
    pub error_when: Vec<JsonCondition>,
    /// Limit on connecting.
    #[serde(default = "five_seconds")]
    pub connect_timeout: Span,
    /// Limit on one whole submission.
    #[serde(default = "fifteen_seconds")]
    pub total_timeout: Span,
    /// How often one key is submitted at the most, while its fate is ambiguous or no connection came to be.
    #[serde(default = "three")]
    pub max_submissions: u32,
    /// Wait before the second submission; it doubles for each further one.
    #[serde(default = "two_seconds")]
    pub resubmit_after: Span,
    /// Largest answer that is read, in bytes.
    #[serde(default = "answer_limit")]
    pub max_answer_bytes: usize,
    /// A file of PEM certificates to trust besides the system's.
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
}

/// The HTTP methods that a submission may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// `POST`
    Post,
    /// `PUT`
    Put,
}

/// Where the idempotency key goes.
#[derive(Clone, Debug, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Idempotency {
    /// The API has none: an ambiguous submission is never repeated.
    None,
    /// In the body, through the `{{key}}` variable of the template.
    Body,
    /// In this header.
    Header(String),
    /// In the `Idempotency-Key` header.
    #[default]
    Standard,
}

/// Which answers mean accepted.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Accepted {
    /// The statuses.
    #[serde(default = "accepted_statuses")]
    pub statuses: Vec<u16>,
    /// JSON pointer of the notification id, such as `/notification_id`; none when the API gives no id.
    #[serde(default)]
    pub id: Option<String>,
}

impl Default for Accepted {
    fn default() -> Self {
        Self { statuses: accepted_statuses(), id: None }
    }
}

/// A condition on the JSON of an answer.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JsonCondition {
    /// Where to look in the answer, a JSON pointer such as `/error`.
    pub pointer: String,
    /// The value that must stand there; without it, the condition holds when anything but null stands there.
    #[serde(default)]
    pub equals: Option<serde_json::Value>,
}

fn post() -> Method {
    Method::Post
}
fn json() -> String {
    "application/json".into()
}
fn accepted_statuses() -> Vec<u16> {
    vec![200, 201, 202]
}
fn refused_statuses() -> Vec<u16> {
    vec![400, 401, 403, 404, 405, 406, 410, 413, 415, 422, 429]
}
fn ask_ledger_statuses() -> Vec<u16> {
    vec![409]
}
fn five_seconds() -> Span {
    Span::seconds(5)
}
fn fifteen_seconds() -> Span {
    Span::seconds(15)
}
fn two_seconds() -> Span {
    Span::seconds(2)
}
fn three() -> u32 {
    3
}
fn answer_limit() -> usize {
    65_536
}
