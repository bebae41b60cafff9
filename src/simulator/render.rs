//! The templates, and how the service makes a text of one.

use super::{fault::MalformedKind, message::Message};

/// A rendered message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// One line.
    pub subject: String,
    /// The text, with the amount in it.
    pub text: String,
}

/// Subject and text of a template. A template that isn't known has the general text.
fn template(name: &str) -> (&'static str, &'static str) {
    match name {
        "receipt" | "payment_receipt" => {
            ("Your payment of {{ amount }}", "We received your payment of {{ amount }}. Thank you.")
        }
        "transfer_alert" => {
            ("A transfer of {{ amount }}", "A transfer of {{ amount }} left your account just now.")
        }
        "reconciliation_notice" => {
            ("Reconciliation: {{ amount }}", "The books differ by {{ amount }}. Please look into it.")
        }
        _ => ("A notification", "This concerns an amount of {{ amount }}."),
    }
}

/// Renders a message, wrongly where that is ordered.
pub fn render(message: &Message, malformed: Option<MalformedKind>) -> Rendered {
    let (subject, text) = template(&message.template);
    let amount = match malformed {
        Some(MalformedKind::Unrendered) => return Rendered { subject: subject.into(), text: text.into() },
        Some(MalformedKind::WrongAmount) => wrong(&message.amount),
        None => message.amount.clone(),
    };
    let fill = |text: &str| text.replace("{{ amount }}", &amount);
    Rendered { subject: fill(subject), text: fill(text) }
}

/// An amount that is not this one: each digit one higher, or a zero where there is none.
fn wrong(amount: &str) -> String {
    if !amount.bytes().any(|b| b.is_ascii_digit()) {
        return format!("{amount}0");
    }
    let next = |c: char| c.to_digit(10).and_then(|d| char::from_digit((d + 1) % 10, 10)).unwrap_or(c);
    amount.chars().map(next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_wrong_amount_is_never_the_right_one(amount in ".{0,40}") {
            prop_assert_ne!(wrong(&amount), amount);
        }
    }
}
