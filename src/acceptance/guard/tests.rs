//! That nothing of ours trips the guard, and everybody else does, whatever they are wrapped in.

use super::*;
use crate::domain::{
    canary::CanaryKind,
    route::{IdempotencyKey, Location, RouteName},
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chrono::{DateTime, SecondsFormat};
use proptest::prelude::*;

fn guard() -> Guard {
    let allowed =
        ["canary+sms@monitor.example", "Canary@bücher.example", "+49 151 00000001", "device-token-7"];
    Guard::new(&allowed.map(str::to_owned), [])
}

/// Ways to wrap a text, each of which somebody's template or variable could have.
#[derive(Clone, Copy, Debug)]
enum Wrapping {
    Plain,
    Percent,
    PercentOfAll,
    JsonEscapes,
    Decimal,
    Hexadecimal,
    FullWidth,
    ZeroWidth,
}

const WRAPPINGS: [Wrapping; 8] = [
    Wrapping::Plain,
    Wrapping::Percent,
    Wrapping::PercentOfAll,
    Wrapping::JsonEscapes,
    Wrapping::Decimal,
    Wrapping::Hexadecimal,
    Wrapping::FullWidth,
    Wrapping::ZeroWidth,
];

fn wrapped(text: &str, how: Wrapping) -> String {
    let special = |c: char| !c.is_alphanumeric();
    let each = |f: &dyn Fn(char) -> String| text.chars().map(f).collect::<String>();
    let percent = |c: char| c.to_string().bytes().map(|b| format!("%{b:02x}")).collect::<String>();
    match how {
        Wrapping::Plain => text.to_owned(),
        Wrapping::Percent => each(&|c| if special(c) { percent(c) } else { c.into() }),
        Wrapping::PercentOfAll => each(&percent),
        Wrapping::JsonEscapes => {
            let mut units = [0; 2];
            text.chars()
                .flat_map(|c| {
                    c.encode_utf16(&mut units).iter().map(|u| format!("\\u{u:04X}")).collect::<Vec<_>>()
                })
                .collect()
        }
        Wrapping::Decimal => each(&|c| if special(c) { format!("&#{};", c as u32) } else { c.into() }),
        Wrapping::Hexadecimal => each(&|c| format!("&#x{:x};", c as u32)),
        Wrapping::FullWidth => each(&|c| match c {
            '!'..='~' => char::from_u32(c as u32 + 0xfee0).unwrap().into(),
            _ => c.into(),
        }),
        Wrapping::ZeroWidth => each(&|c| format!("{c}\u{200b}")),
    }
}

fn wrapping() -> impl Strategy<Value = Wrapping> {
    prop::sample::select(&WRAPPINGS[..])
}

/// Text that holds no address and no number, and ends apart from what follows it.
fn prose() -> impl Strategy<Value = String> {
    "[a-zA-Z ,;:äß]{0,20}".prop_map(|text| format!("{text}: "))
}

fn address() -> impl Strategy<Value = String> {
    let local = "[a-z0-9]([a-z0-9._+-]{0,10}[a-z0-9])?";
    let domain =
        "[a-zéüñж]([a-z0-9éж-]{0,8}[a-z0-9])?(\\.[a-z]([a-z0-9-]{0,6}[a-z0-9])?){0,2}\\.(com|org|example|рф)";
    (local, domain).prop_map(|(local, domain)| format!("{local}@{domain}"))
}

/// A number of E.164 in one of the ways in which people write it.
fn number() -> impl Strategy<Value = String> {
    let separator = prop::sample::select(vec!["", "", "", " ", "-", ".", "/", " - ", "\u{a0}", "\u{2011}"]);
    let digits = prop::collection::vec((0u8..10, separator), 8..=15);
    (digits, 1u8..10, prop::bool::ANY, prop::bool::ANY).prop_map(
        |(mut digits, first, has_plus, has_parenthesis)| {
            digits[0].0 = first;
            let last = digits.len() - 1;
            digits[last].1 = "";
            let mut text = String::from(if has_plus { "+" } else { "00" });
            for (n, (digit, separator)) in digits.iter().enumerate() {
                if has_parenthesis && n == 2 {
                    text += "(";
                }
                text += &digit.to_string();
                if has_parenthesis && n == 4 {
                    text += ")";
                } else {
                    text += separator;
                }
            }
            text
        },
    )
}

proptest! {
    #[test]
    fn a_foreign_address_trips_wherever_it_stands(
        before in prose(), address in address(), after in "( [a-z]{0,5})?", how in wrapping(), again in wrapping()
    ) {
        for text in [wrapped(&address, how), wrapped(&wrapped(&address, how), again)] {
            let text = format!("{before}{text}{after}");
            prop_assert_eq!(guard().text(&text), Err(GuardReason::MailAddress), "{}", text);
            let body = serde_json::json!({ "n": [{ "text": text }] }).to_string();
            prop_assert_eq!(guard().body(&body), Err(GuardReason::MailAddress), "{}", body);
            let nested = serde_json::json!({ "payload": body }).to_string();
            prop_assert_eq!(guard().body(&nested), Err(GuardReason::MailAddress), "{}", nested);
            let key = serde_json::json!({ text: 1 }).to_string();
            prop_assert_eq!(guard().body(&key), Err(GuardReason::MailAddress), "{}", key);
        }
    }

    #[test]
    fn a_foreign_number_trips_wherever_it_stands(
        before in prose(), number in number(), after in "( [a-z]{0,5})?", how in wrapping(), again in wrapping()
    ) {
        for text in [wrapped(&number, how), wrapped(&wrapped(&number, how), again)] {
            let text = format!("{before}{text}{after}");
            prop_assert_eq!(guard().text(&text), Err(GuardReason::PhoneNumber), "{}", text);
            let body = serde_json::json!({ "n": [{ "text": text }] }).to_string();
            prop_assert_eq!(guard().body(&body), Err(GuardReason::PhoneNumber), "{}", body);
            let nested = serde_json::json!({ "payload": body }).to_string();
            prop_assert_eq!(guard().body(&nested), Err(GuardReason::PhoneNumber), "{}", nested);
        }
    }

    #[test]
    fn nothing_of_ours_trips(
        random in any::<[u8; 16]>(), millis in 1_600_000_000_000i64..4_000_000_000_000, token in prop::collection::vec(any::<u8>(), 50..60),
        parent in any::<[u8; 8]>(), cents in 0u64..10_000_000_000, kind in prop::sample::select(CanaryKind::ALL.to_vec())
    ) {
        let at = DateTime::from_timestamp_millis(millis).unwrap();
        let id = uuid::Builder::from_unix_timestamp_millis(millis as u64, random[..10].try_into().unwrap()).into_uuid();
        let key = IdempotencyKey::derive(&RouteName::from_text("sms/alerts"), &Location::from_text("eu-1"), kind, at);
        let token = BASE64_URL_SAFE_NO_PAD.encode(token);
        let traceparent = format!("00-{}-{}-01", hex::encode(random), hex::encode(parent));
        let times = [SecondsFormat::Secs, SecondsFormat::Millis, SecondsFormat::Nanos]
            .map(|format| [at.to_rfc3339_opts(format, true), at.to_rfc3339_opts(format, false)].join(" "))
            .join(" ");
        let amounts = format!("{}.{:02} -{}.{:02} EUR {},00 {cents}", cents / 100, cents % 100, cents / 7, cents % 7, cents);
        let ours = [id.to_string(), key.to_string(), token.clone(), traceparent.clone()];
        let guard = Guard::new(&["canary@monitor.example".into()], ours);
        let text = format!(
            "{id} {} {} {key} {token} https://canary.example/hook/{token} {traceparent} {times} {amounts}",
            id.simple(), id.to_string().to_uppercase()
        );
        for how in [Wrapping::Plain, Wrapping::Percent, Wrapping::PercentOfAll, Wrapping::JsonEscapes] {
            prop_assert_eq!(guard.text(&wrapped(&text, how)), Ok(()), "{}", text);
        }
        let body = serde_json::json!({
            "canary_id": id, "key": key, "token": token, "to": "canary@monitor.example", "at": times, "millis": millis,
            "amount": cents, "text": text, "@type": "note",
        });
        prop_assert_eq!(guard.body(&body.to_string()), Ok(()), "{}", body);
    }

    #[test]
    fn no_text_makes_the_guard_panic(text in "\\PC{0,60}", odd in "[%&#x;\\\\u{}0-9+@\"\\[\\]().éa-f-]{0,60}") {
        let _ = guard().text(&text);
        let _ = guard().body(&odd);
        let _ = guard().text(&odd);
    }
}

proptest! {
    // Each case looks through many texts.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, ..ProptestConfig::default() })]

    #[test]
    fn what_is_allowed_passes_in_every_wrapping(before in prose(), how in wrapping(), again in wrapping()) {
        for allowed in [
            "canary+sms@monitor.example", "CANARY+sms@Monitor.Example", "canary@bücher.example", "canary@xn--bcher-kva.example",
            "+4915100000001", "004915100000001", "+49 (151) 0000-0001",
        ] {
            let text = format!("{before}{} and more", wrapped(&wrapped(allowed, how), again));
            prop_assert_eq!(guard().text(&text), Ok(()), "{}", text);
            let body = serde_json::json!({ "to": text, "payload": serde_json::json!({ "to": text }).to_string() }).to_string();
            prop_assert_eq!(guard().body(&body), Ok(()), "{}", body);
        }
    }
}

#[test]
fn the_allow_list_is_recognised_where_requests_hold_it() {
    for text in [
        "to=canary%2Bsms%40monitor.example&amount=1",
        "to=canary+sms@monitor.example&cc=canary@b%C3%BCcher.example",
        "/v1/canary+sms@monitor.example/send",
        "mailto:canary+sms@monitor.example?subject=x",
        "Canary <canary+sms@monitor.example>, “canary+sms@monitor.example”.",
        r#"payload={"text":"a\ncanary+sms@monitor.example\u003e"}"#,
        r"x=\u003ccanary+sms@monitor.example",
        "%20canary+sms@monitor.example",
        "tel:+49-151-00000001;ext=1",
        "+4915100000001, +4915100000001\n+4915100000001",
        "sent to +4915100000001 - 12.00 EUR",
        "{\"@context\":\"a\",\"b\":\"@handle\"}",
        "4915112345678 is no international number",
        "1 @ 2, @, a@ b, +12 34",
        "MAC 00:49:15:11:23:45, version 00.1, 12,00 12345678",
    ] {
        assert_eq!(guard().text(text), Ok(()), "{text}");
    }
}

#[test]
fn near_misses_of_the_allow_list_are_foreign() {
    use GuardReason::{MailAddress, PhoneNumber};
    for (text, reason) in [
        ("xcanary+sms@monitor.example", MailAddress),
        ("x.canary+sms@monitor.example", MailAddress),
        ("sms@monitor.example", MailAddress),
        ("canary+sms@monitor.example.org", MailAddress),
        ("canary+sms@monitor.example%2Eorg", MailAddress),
        ("canary+sms@evil.monitor.example", MailAddress),
        ("root@localhost", MailAddress),
        ("a@[127.0.0.1]", MailAddress),
        ("\"any one\"@example.com", MailAddress),
        ("anyone(x)@example.com", MailAddress),
        ("e\u{301}@example.com", MailAddress),
        ("anyone&commat;example&period;com", MailAddress),
        ("anyone%2540example.com", MailAddress),
        (r"anyone\x40example.com and \u{40}", MailAddress),
        ("anyone@example。com", MailAddress),
        ("+49151000000012", PhoneNumber),
        ("+49151000000 01 2", PhoneNumber),
        ("+4915100000001 2", PhoneNumber),
        ("+4915100000002", PhoneNumber),
        ("00 49 151 00000002", PhoneNumber),
        ("tel=%2B49+151+00000002", PhoneNumber),
        ("tel=+49+151+00000002", PhoneNumber),
        ("+٤٩١٥١٢٣٤٥٦٧٨", PhoneNumber),
        ("x+4915112345678x", PhoneNumber),
        ("+4915100000001,+4915100000002", PhoneNumber),
    ] {
        assert_eq!(guard().text(text), Err(reason), "{text}");
    }
    // Of two equal keys the last one wins in most readers, but not in all.
    assert_eq!(guard().body(r#"{"to":"a@b.com","to":"x"}"#), Err(MailAddress));
    assert_eq!(guard().body(r#"{"to":"a\u0040b.com"}"#), Err(MailAddress));
    assert_eq!(guard().body(r#"{"to":"\ud800 a\u0040b.com"}"#), Err(MailAddress));
}

#[test]
fn a_recipient_stands_on_the_list_letter_by_letter() {
    assert_eq!(guard().recipient("device-token-7"), Ok(()));
    assert_eq!(guard().recipient("canary+sms@monitor.example"), Ok(()));
    assert_eq!(guard().recipient("canary@monitor.example"), Err(GuardReason::MailAddress));
    assert_eq!(guard().recipient("+4915100000009"), Err(GuardReason::PhoneNumber));
    assert_eq!(guard().recipient("device-token-8"), Err(GuardReason::Template));
}

#[test]
fn what_cannot_be_read_to_its_ground_does_not_leave() {
    let mut text = String::from("%41");
    for _ in 0..20 {
        text = text.replace('%', "%25");
    }
    assert_eq!(guard().text(&text), Err(GuardReason::Template));
}
