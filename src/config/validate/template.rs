//! Templates of a request: do they compile, which variables do they need, and what do they give when they are tried?

use minijinja::{AutoEscape, Environment, Error, UndefinedBehavior};
use std::collections::{BTreeMap, BTreeSet};

/// Instructions that one trial may take.
const FUEL: u64 = 100_000;

/// The variables that every submission has.
pub(super) const ALWAYS: [&str; 8] =
    ["canary_id", "key", "recipient", "slot", "now", "deadline", "traceparent", "route"];

/// The variable that every submission has, and the two that only a route with a receipt has.
pub(super) const LOCATION: &str = "location";
pub(super) const OF_RECEIPT: [&str; 2] = ["token", "callback_url"];

/// One template, compiled.
pub(super) struct Template {
    environment: Environment<'static>,
    /// The variables that it reads.
    pub variables: BTreeSet<String>,
}

impl Template {
    /// Compiles a template.
    ///
    /// # Errors
    /// What is wrong with it, with the line inside it.
    pub fn compile(source: &str) -> Result<Self, String> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_fuel(Some(FUEL));
        environment.add_filter("urlencode", |text: &str| {
            reqwest::Url::parse_with_params("x:", [("", text)]).map_or_else(
                |_| text.to_owned(),
                |url| url.query().unwrap_or_default().trim_start_matches('=').to_owned(),
            )
        });
        environment.add_template_owned("it", source.to_owned()).map_err(|error| explain(&error))?;
        let mut variables: BTreeSet<String> = environment
            .get_template("it")
            .map_err(|error| explain(&error))?
            .undeclared_variables(false)
            .into_iter()
            .collect();
        for (global, _) in environment.globals() {
            variables.remove(global);
        }
        Ok(Self { environment, variables })
    }

    /// Renders it.
    ///
    /// # Errors
    /// What went wrong, with the line inside it.
    pub fn render(&self, variables: &BTreeMap<String, String>) -> Result<String, String> {
        let template = self.environment.get_template("it").map_err(|error| explain(&error))?;
        template.render(variables).map_err(|error| explain(&error))
    }
}

/// The kind and the detail, which name variables, filters and syntax, and never a value.
fn explain(error: &Error) -> String {
    let what = match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    };
    match error.line() {
        Some(line) if line > 1 => format!("{what} (line {line} of the template)"),
        _ => what,
    }
}

/// Values like those of a submission, for a trial. `ours` replaces what they have in common with a route.
pub(super) fn trial(
    route: &str,
    recipient: &str,
    variables: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let time = "2026-01-01T00:00:00.000Z";
    let id = "019b76da-a800-7000-8000-000000000000";
    let mut all = variables.clone();
    for (name, value) in [
        ("canary_id", id),
        ("key", "dc-00000000000000000000000000000000"),
        ("recipient", recipient),
        ("slot", time),
        ("now", time),
        ("deadline", time),
        ("traceparent", "00-019b76daa80070008000000000000000-0000000000000000-01"),
        ("route", route),
        (LOCATION, "default"),
        ("token", "token"),
        ("callback_url", "https://canary.example/token"),
    ] {
        all.insert(name.into(), value.into());
    }
    all
}
