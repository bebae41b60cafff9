//! From a canary's plan to a request that may leave: rendered, complete, and looked through by the guard.

use super::{
    Request,
    error::BuildError,
    guard::{Guard, GuardReason},
    template::{RenderError, Templates, Variables},
};
use crate::{
    config::acceptance::{HttpAcceptance, Idempotency},
    trust::probe::Target,
};
use chrono::{DateTime, Utc};
use reqwest::{
    Url,
    header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT},
};

/// What the monitor calls itself.
const AGENT: &str = concat!("delivery-canary/", env!("CARGO_PKG_VERSION"));

/// Headers that are the client's or ours, and cannot be configured.
const RESERVED: [&str; 8] = [
    "connection",
    "content-length",
    "content-type",
    "expect",
    "traceparent",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];

/// What makes requests of plans.
#[derive(Debug)]
pub(super) struct Preparer {
    templates: Templates,
    /// The address without its path. Every request goes there.
    origin: Url,
    /// The headers that are the same in each request; the secret ones are marked.
    fixed: HeaderMap,
    /// The headers that are rendered, with their keys in the configuration.
    rendered: Vec<(HeaderName, String)>,
    key_header: Option<HeaderName>,
}

/// A request that may leave.
#[derive(Debug)]
pub(super) struct Prepared {
    /// Where it goes.
    pub url: Url,
    /// All of its headers but those of the client.
    pub headers: HeaderMap,
    /// Its body.
    pub body: String,
}

/// A request that may not leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Why.
    pub reason: GuardReason,
    /// The key of the configuration whose part is at fault.
    pub key: String,
    /// What kind of fault, without anything of the request.
    pub fault: String,
}

impl Stop {
    /// What to change.
    pub fn hint(&self) -> &'static str {
        match self.reason {
            GuardReason::MailAddress | GuardReason::PhoneNumber => {
                "write `{{ recipient }}` in its place, or list it in the route's `recipients`, after the first one; \
                 `delivery-canary check` says where it stands"
            }
            GuardReason::Template => {
                "`delivery-canary check` says where; docs/acceptance.md has the rules of templates and of the guard"
            }
        }
    }
}

impl Preparer {
    /// Compiles and checks all parts.
    pub fn new(config: &HttpAcceptance) -> Result<Self, BuildError> {
        let mut parts =
            vec![("url".to_owned(), config.url.as_str()), ("body".to_owned(), config.body.as_str())];
        let mut rendered = Vec::new();
        let mut fixed = HeaderMap::new();
        for (name, value) in &config.headers {
            let key = format!("headers.{name}");
            rendered.push((new_header(name, &key, &rendered_names(&rendered))?, key.clone()));
            parts.push((key, value));
        }
        for (name, value) in &config.secret_headers {
            let key = format!("secret_headers.{name}");
            let mut names = rendered_names(&rendered);
            names.extend(fixed.keys().cloned());
            let name = new_header(name, &key, &names)?;
            let mut value = HeaderValue::from_str(value.expose()).map_err(|_| BuildError::Header {
                key,
                fault: "the value holds a line break or another character that no header can have",
            })?;
            value.set_sensitive(true);
            fixed.insert(name, value);
        }
        fixed.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        if !config.body.is_empty() {
            let kind = HeaderValue::from_str(&config.content_type).map_err(|_| BuildError::Header {
                key: "content_type".into(),
                fault: "it is no media type: write one such as `application/json`",
            })?;
            fixed.insert(CONTENT_TYPE, kind);
        }
        let templates = Templates::compile(parts)?;
        let key_header = match &config.idempotency {
            Idempotency::Standard => Some("Idempotency-Key"),
            Idempotency::Header(name) => Some(name.as_str()),
            Idempotency::Body if templates.mentions("body", "key") => None,
            Idempotency::Body => return Err(BuildError::KeyNotInBody),
            Idempotency::None => None,
        };
        let mut names = rendered_names(&rendered);
        names.extend(fixed.keys().cloned());
        let key_header = key_header.map(|name| new_header(name, "idempotency", &names)).transpose()?;
        Ok(Self { templates, origin: origin(&config.url)?, fixed, rendered, key_header })
    }

    /// Where requests go.
    pub fn target(&self) -> Target {
        let host = self.origin.host_str().unwrap_or_default();
        Target {
            host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port: self.origin.port_or_known_default().unwrap_or_default(),
            is_tls: self.origin.scheme() == "https",
            protocols: &["http/1.1"],
            address_key: "url",
            limit_key: Some("connect_timeout"),
        }
    }

    /// The request of a submission that begins at `now`.
    pub fn prepare(&self, request: &Request, now: DateTime<Utc>) -> Result<Prepared, Stop> {
        let parts = Parts::new(self, request, now);
        parts.recipient()?;
        Ok(Prepared { url: parts.url()?, body: parts.body()?, headers: parts.headers()? })
    }

    /// All that would stop this submission, a part each.
    pub fn stops(&self, request: &Request, now: DateTime<Utc>) -> Vec<Stop> {
        let parts = Parts::new(self, request, now);
        let found = [parts.recipient().err(), parts.url().err(), parts.body().err(), parts.headers().err()];
        found.into_iter().flatten().collect()
    }
}

/// One request in the making, with the guard that looks through each of its parts.
struct Parts<'a> {
    preparer: &'a Preparer,
    request: &'a Request,
    variables: Variables,
    guard: Guard,
}

impl<'a> Parts<'a> {
    fn new(preparer: &'a Preparer, request: &'a Request, now: DateTime<Utc>) -> Self {
        let variables = Variables::new(request, now);
        let guard = Guard::new(&request.allowed, variables.random_texts());
        Self { preparer, request, variables, guard }
    }

    fn recipient(&self) -> Result<(), Stop> {
        let checked = self.guard.recipient(&self.request.recipient);
        checked.map_err(|reason| stop(reason, "recipients", "not on the allow-list"))
    }

    fn url(&self) -> Result<Url, Stop> {
        let rendered_url = self.preparer.templates.render("url", &self.variables)?;
        let url = Url::parse(&rendered_url).map_err(|_| unfit("url", "it renders to no address"))?;
        if url.origin() != self.preparer.origin.origin()
            || !url.username().is_empty()
            || url.password().is_some()
        {
            return Err(unfit("url", "it renders to another host"));
        }
        // Reading an address drops tabs and line breaks: both forms are looked through.
        for text in [rendered_url.as_str(), url.as_str()] {
            self.guard.text(text).map_err(|reason| foreign(reason, "url"))?;
        }
        Ok(url)
    }

    fn body(&self) -> Result<String, Stop> {
        let body = self.preparer.templates.render("body", &self.variables)?;
        self.guard.body(&body).map_err(|reason| foreign(reason, "body"))?;
        Ok(body)
    }

    fn headers(&self) -> Result<HeaderMap, Stop> {
        let mut headers = self.preparer.fixed.clone();
        for (name, key) in &self.preparer.rendered {
            let text = self.preparer.templates.render(key, &self.variables)?;
            headers.insert(name, header_value(&text, key)?);
        }
        let plan = &self.request.plan;
        headers.insert("traceparent", header_value(&plan.traceparent, "traceparent")?);
        if let Some(name) = &self.preparer.key_header {
            headers.insert(name, header_value(plan.key.as_str(), "idempotency")?);
        }
        for (name, value) in &headers {
            let text = String::from_utf8_lossy(value.as_bytes());
            self.guard.text(&text).map_err(|reason| foreign(reason, &format!("headers.{name}")))?;
        }
        Ok(headers)
    }
}

fn stop(reason: GuardReason, key: &str, fault: &str) -> Stop {
    Stop { reason, key: key.to_owned(), fault: fault.to_owned() }
}

fn unfit(key: &str, fault: &str) -> Stop {
    stop(GuardReason::Template, key, fault)
}

fn foreign(reason: GuardReason, key: &str) -> Stop {
    let fault = match reason {
        GuardReason::Template => "wrapped in too many layers of escapes to be read",
        GuardReason::MailAddress | GuardReason::PhoneNumber => {
            "it names somebody who is not on the allow-list"
        }
    };
    stop(reason, key, fault)
}

impl From<RenderError> for Stop {
    fn from(error: RenderError) -> Self {
        let fault = format!("line {}: {}", error.line, error.kind);
        Self { reason: GuardReason::Template, key: error.key, fault }
    }
}

fn header_value(text: &str, key: &str) -> Result<HeaderValue, Stop> {
    HeaderValue::from_str(text).map_err(|_| unfit(key, "it renders to a character that no header can have"))
}

fn rendered_names(rendered: &[(HeaderName, String)]) -> Vec<HeaderName> {
    rendered.iter().map(|(name, _)| name.clone()).collect()
}

/// The name of a header, which must be one, nobody else's, and new.
fn new_header(name: &str, key: &str, taken: &[HeaderName]) -> Result<HeaderName, BuildError> {
    let fault = |fault| BuildError::Header { key: key.to_owned(), fault };
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| fault("it is no name of a header"))?;
    if RESERVED.contains(&name.as_str()) {
        return Err(fault(
            "this header is set by the monitor: take it out (`content_type` sets the media type)",
        ));
    }
    if taken.contains(&name) {
        return Err(fault("this header is given twice: names are compared without regard to case"));
    }
    Ok(name)
}

/// The address without its path. No variable may choose where a request goes.
fn origin(template: &str) -> Result<Url, BuildError> {
    let fault = |fault| BuildError::Url { fault };
    let (scheme, rest) = template
        .split_once("://")
        .filter(|(scheme, _)| matches!(*scheme, "http" | "https"))
        .ok_or_else(|| fault("it must start with `http://` or `https://`"))?;
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    if authority.contains(['{', '}']) {
        return Err(fault("host and port must be plain text: variables may stand behind them only"));
    }
    if authority.contains('@') {
        return Err(fault("it must not hold a user or password: put credentials into `secret_headers`"));
    }
    Url::parse(&format!("{scheme}://{authority}/")).map_err(|_| fault("its host or port cannot be read"))
}
