//! Receivers, and how a route's canaries are recognised and judged there.

use super::{text, times};
use crate::config::{
    receipt::{
        Expectation, LEAST_KEY_BYTES, Place, RouteReceipt, Sender, TokenIn, WebhookReceiver, standard_key,
    },
    report::{At, Report},
    scalar::Secret,
};
use std::collections::BTreeSet;

/// Least bytes of a secret that signs tokens.
const LEAST_SECRET: usize = 16;

pub(super) fn check_receiver(webhook: &WebhookReceiver, at: &At, report: &mut Report) {
    let url_at = at.key("public_url");
    if let Some(url) = text::web_address(&webhook.public_url, &url_at, report)
        && (url.query().is_some() || url.fragment().is_some())
    {
        report.fault(
            &url_at,
            "the token is put behind the path of this address",
            "remove the `?` or `#` and what follows",
        );
    }
    let secrets_at = at.key("token_secrets");
    secrets(&webhook.token_secrets, &secrets_at, report);
    for (n, secret) in webhook.token_secrets.iter().enumerate() {
        if secret.expose().len() < LEAST_SECRET {
            let message = format!("this secret is shorter than {LEAST_SECRET} bytes");
            report.fault(&secrets_at.key(n), message, "make one by `openssl rand -hex 32`");
        }
    }
    text::header(&webhook.message_id_header, &at.key("message_id_header"), report);
    sender(&webhook.sender, &at.key("sender"), report);
    times::limit(webhook.self_receipt_every, &at.key("self_receipt_every"), report);
    times::limit(webhook.request_timeout, &at.key("request_timeout"), report);
    for (key, value, least, most) in [
        ("max_body_bytes", webhook.max_body_bytes, 256, 16 << 20),
        ("max_connections", webhook.max_connections, 8, 65_536),
    ] {
        if !(least..=most).contains(&value) {
            report.fault(&at.key(key), format!("`{key}` is {value}"), format!("write {least} to {most}"));
        }
    }
}

fn secrets(secrets: &[Secret], at: &At, report: &mut Report) {
    if secrets.is_empty() {
        report.fault(at, "there is no secret", "write at least one; the first signs, all verify");
    }
    if secrets.len() > 8 {
        report.fault(
            at,
            format!("{} secrets at a time", secrets.len()),
            "keep those of the last rotations, at most 8",
        );
    }
}

fn sender(sender: &Sender, at: &At, report: &mut Report) {
    match sender {
        Sender::Token => {}
        Sender::SharedSecret(shared) => {
            let at = at.key("shared_secret");
            text::header(&shared.header, &at.key("header"), report);
            secrets(&shared.secrets, &at.key("secrets"), report);
        }
        Sender::StandardWebhooks(standard) => {
            let at = at.key("standard_webhooks");
            secrets(&standard.secrets, &at.key("secrets"), report);
            for (n, secret) in standard.secrets.iter().enumerate() {
                if standard_key(secret.expose()).is_none() {
                    let hint = "write it as the sender shows it: `whsec_` and base64";
                    let message = format!("this secret is not base64 of at least {LEAST_KEY_BYTES} bytes");
                    report.fault(&at.key("secrets").key(n), message, hint);
                }
            }
            times::limit(standard.tolerance, &at.key("tolerance"), report);
        }
    }
}

pub(super) fn check_route(receipt: &RouteReceipt, at: &At, report: &mut Report) {
    match &receipt.token_in {
        TokenIn::Path => {}
        TokenIn::Header(name) => text::header(name, &at.keys(&["token_in", "header"]), report),
        TokenIn::Pointer(pointer) => text::pointer(pointer, &at.keys(&["token_in", "pointer"]), report),
    }
    match &receipt.correlation {
        Some(Place::Body(_)) => {
            let hint = "write `{ header: traceparent }` or `{ pointer: /trace }`";
            report.fault(&at.key("correlation"), "the correlation can't be the whole body", hint);
        }
        Some(at_place) => place(at_place, &at.key("correlation"), report),
        None => {}
    }
    let mut seen = BTreeSet::new();
    for (n, expectation) in receipt.expect.iter().enumerate() {
        let at = at.key("expect").key(n);
        text::name(&expectation.name, &at.key("name"), report);
        if !seen.insert(expectation.name.as_str()) {
            let message = format!("the expectation `{}` is there twice", expectation.name.escape_debug());
            report.fault(&at.key("name"), message, "rename one: the name is all that is kept of a failure");
        }
        place(&expectation.at, &at.key("at"), report);
        check_expectation(expectation, &at, report);
    }
}

fn place(place: &Place, at: &At, report: &mut Report) {
    match place {
        Place::Header(name) => text::header(name, &at.key("header"), report),
        Place::Pointer(pointer) => text::pointer(pointer, &at.key("pointer"), report),
        Place::Body(_) => {}
    }
}

fn check_expectation(expectation: &Expectation, at: &At, report: &mut Report) {
    let Expectation { matches, must_not_match, equals, min_length, max_length, .. } = expectation;
    for (key, pattern) in [("matches", matches), ("must_not_match", must_not_match)] {
        if let Some(pattern) = pattern {
            text::regex(pattern, &at.key(key), report);
        }
    }
    for name in
        equals.iter().flat_map(|text| text.split("{{").skip(1)).filter_map(|rest| rest.split("}}").next())
    {
        if !matches!(name.trim(), "canary_id" | "traceparent") {
            let message = format!("`equals` names `{}`", name.trim().escape_debug());
            report.fault(
                &at.key("equals"),
                message,
                "only `{{canary_id}}` and `{{traceparent}}` are known here",
            );
        }
    }
    let lengths = min_length.is_some() || max_length.is_some();
    if matches.is_none() && must_not_match.is_none() && equals.is_none() && !lengths {
        let hint = "write `matches`, `must_not_match`, `equals`, `min_length` or `max_length`";
        report.fault(at, "this expectation expects nothing", hint);
    }
    if let (Some(min), Some(max)) = (min_length, max_length)
        && min > max
    {
        let message = format!("`max_length` is {max}, and `min_length` is {min}");
        report.fault(&at.key("max_length"), message, "no text can have both: swap them");
    }
}
