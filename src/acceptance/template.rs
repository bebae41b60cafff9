//! The templates of a request's parts: strict, bounded, compiled once.

use super::{Request, error::BuildError};
use chrono::{DateTime, SecondsFormat, Utc};
use minijinja::{AutoEscape, Environment, ErrorKind, UndefinedBehavior, Value};
use std::{collections::BTreeMap, io};

/// Instructions that rendering one part may take.
const FUEL: u64 = 100_000;

/// Largest part that is rendered, in bytes.
const PART_LIMIT: usize = 262_144;

/// The compiled templates of one acceptance, by the key of the configuration that holds them.
#[derive(Debug)]
pub(super) struct Templates(Environment<'static>);

/// A part that could not be rendered. It holds nothing that came out of a variable.
#[derive(Debug, thiserror::Error)]
#[error("`{key}`, line {line}: {kind}")]
pub(super) struct RenderError {
    /// The key of the configuration that holds the template.
    pub key: String,
    /// The line inside the template, from 1; 0 where it isn't known.
    pub line: usize,
    /// What kind of fault.
    pub kind: ErrorKind,
}

/// What templates see of one submission.
#[derive(Debug)]
pub(super) struct Variables(BTreeMap<String, Value>);

impl Templates {
    /// Compiles each part.
    pub fn compile<'a>(parts: impl IntoIterator<Item = (String, &'a str)>) -> Result<Self, BuildError> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_fuel(Some(FUEL));
        environment.add_filter("urlencode", |text: &str| percent_encoded(text));
        for (key, source) in parts {
            let fault = |error: minijinja::Error| {
                let fault = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
                BuildError::Template { key: key.clone(), line: error.line().unwrap_or(1), fault }
            };
            environment.add_template_owned(key.clone(), source.to_owned()).map_err(fault)?;
            try_names(&environment, &key).map_err(fault)?;
        }
        Ok(Self(environment))
    }

    /// Whether this part mentions a variable.
    pub fn mentions(&self, key: &str, variable: &str) -> bool {
        self.0.get_template(key).is_ok_and(|template| template.undeclared_variables(false).contains(variable))
    }

    /// Renders one part.
    pub fn render(&self, key: &str, variables: &Variables) -> Result<String, RenderError> {
        let fault = |error: minijinja::Error| RenderError {
            key: key.to_owned(),
            line: error.line().unwrap_or(0),
            kind: error.kind(),
        };
        let mut out = BoundedBuffer(Vec::new());
        let template = self.0.get_template(key).map_err(fault)?;
        template.render_captured_to(&variables.0, &mut out).map_err(fault)?;
        String::from_utf8(out.0).map_err(|_| RenderError {
            key: key.to_owned(),
            line: 0,
            kind: ErrorKind::BadSerialization,
        })
    }
}

impl Variables {
    /// The variables of one submission that begins at `now`. Our own names win over the route's.
    ///
    /// `deadline` is counted from the plan, so that submissions of one key are alike in all but `now`.
    pub fn new(request: &Request, now: DateTime<Utc>) -> Self {
        let plan = &request.plan;
        let mut all: BTreeMap<_, _> =
            request.variables.iter().map(|(k, v)| (k.clone(), Value::from(v.as_str()))).collect();
        let ours = [
            ("canary_id", plan.canary_id.to_string()),
            ("key", plan.key.to_string()),
            ("token", request.token.clone()),
            ("recipient", request.recipient.clone()),
            ("slot", rfc3339(plan.slot)),
            ("now", rfc3339(now)),
            ("deadline", rfc3339(plan.planned_at + plan.deadline)),
            ("traceparent", plan.traceparent.clone()),
            ("route", plan.route.to_string()),
            ("location", plan.location.to_string()),
        ];
        all.extend(ours.map(|(name, value)| (name.to_owned(), Value::from(value))));
        match &request.callback_url {
            Some(url) => all.insert("callback_url".into(), Value::from(url.as_str())),
            // A route that has no such sink must not take a variable of that name for it.
            None => all.remove("callback_url"),
        };
        Self(all)
    }

    /// The texts in which digits stand by chance, or for a time: the guard must not take them for phone numbers.
    pub fn random_texts(&self) -> impl Iterator<Item = String> + '_ {
        ["canary_id", "key", "token", "slot", "now", "deadline", "traceparent"]
            .into_iter()
            .filter_map(|name| self.0.get(name).and_then(Value::as_str).map(str::to_owned))
    }
}

/// Renders a part with a stand-in for each variable. The engine looks for filters, tests and functions only then, and a name that
/// it doesn't know should not wait for the first canary. Other faults may come of the stand-ins.
fn try_names(environment: &Environment<'_>, key: &str) -> Result<(), minijinja::Error> {
    let template = environment.get_template(key)?;
    let stand_ins: BTreeMap<_, _> =
        template.undeclared_variables(false).into_iter().map(|name| (name, "x")).collect();
    match template.render(stand_ins) {
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::UnknownFilter
                    | ErrorKind::UnknownTest
                    | ErrorKind::UnknownFunction
                    | ErrorKind::UnknownMethod
            ) =>
        {
            Err(error)
        }
        _ => Ok(()),
    }
}

fn rfc3339(instant: DateTime<Utc>) -> String {
    instant.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Everything but the unreserved characters of RFC 3986, as percent and hexadecimal.
fn percent_encoded(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
        out
    })
}

/// Takes no more than a part may be long.
struct BoundedBuffer(Vec<u8>);

impl io::Write for BoundedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > PART_LIMIT {
            return Err(io::Error::other("the rendered part is too large"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
