//! Checks of texts that stand in several places.

use crate::config::{
    receipt::REGEX_BYTES,
    report::{At, Report},
};
use regex::RegexBuilder;
use reqwest::header::HeaderName;

/// A name of ours: lower case letters, digits and hyphens, at most 40, a letter or digit first and last.
pub(super) fn name(text: &str, at: &At, report: &mut Report) {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let sound = (1..=40).contains(&text.len())
        && text.bytes().all(|b| inner(b) || b == b'-')
        && text.bytes().next().is_some_and(inner)
        && text.bytes().last().is_some_and(inner);
    if !sound {
        report.fault(
            at,
            format!("`{}` is not a name", text.escape_debug()),
            "use 1 to 40 lower case letters, digits and hyphens, a letter or digit first and last",
        );
    } else if text == "other" {
        report.fault(at, "`other` stands for everything that isn't configured", "take another name");
    }
}

/// The name of an HTTP header.
pub(super) fn header(text: &str, at: &At, report: &mut Report) {
    if HeaderName::from_bytes(text.as_bytes()).is_err() {
        report.fault(
            at,
            format!("`{}` is not a header's name", text.escape_debug()),
            "use letters, digits and hyphens, such as `X-Request-Key`",
        );
    }
}

/// A JSON pointer to something inside a document.
pub(super) fn pointer(text: &str, at: &At, report: &mut Report) {
    let escapes = text.split('~').skip(1).all(|rest| rest.starts_with('0') || rest.starts_with('1'));
    if !text.starts_with('/') {
        report.fault(at, "a JSON pointer starts with `/`", format!("write `/{}`", text.replace('.', "/")));
    } else if !escapes {
        report.fault(at, "a `~` in a JSON pointer stands alone", "write `~0` for `~` and `~1` for `/`");
    }
}

/// A regular expression.
pub(super) fn regex(text: &str, at: &At, report: &mut Report) {
    match RegexBuilder::new(text).size_limit(REGEX_BYTES).build() {
        Ok(_) => {}
        Err(regex::Error::CompiledTooBig(_)) => {
            report.fault(at, "this regular expression grows too large", "lower its repetition counts");
        }
        Err(error) => {
            // The last line says what is wrong; those before draw the expression.
            let text = error.to_string();
            let what = text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            let hint = "see the syntax of the `regex` crate: no look-around and no back-references";
            report.fault(at, format!("this regular expression can't be read: {what}"), hint);
        }
    }
}

/// An `http` or `https` address with a host and without credentials.
pub(super) fn web_address(text: &str, at: &At, report: &mut Report) -> Option<reqwest::Url> {
    let fault = |report: &mut Report, message: String, hint: &str| {
        report.fault(at, message, hint);
        None
    };
    match reqwest::Url::parse(text) {
        Err(error) => fault(report, format!("this is not an address: {error}"), "write `https://host/path`"),
        Ok(url) if !matches!(url.scheme(), "http" | "https") => fault(
            report,
            format!("the scheme `{}` is not one for HTTP", url.scheme()),
            "write `https://` or `http://`",
        ),
        Ok(url) if !url.username().is_empty() || url.password().is_some() => fault(
            report,
            "credentials stand in this address".into(),
            "send them by a header that is a secret",
        ),
        Ok(url) => Some(url),
    }
}
