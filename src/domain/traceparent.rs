//! The W3C trace context of a canary. It is derived of the canary's id, so that a sink can check it without asking anyone.

use super::route::CanaryId;
use sha2::{Digest, Sha256};

/// The trace id of a canary: its id as 32 hexadecimal digits. Never all zero, since a UUID has its version in it.
pub fn trace_id(canary_id: CanaryId) -> String {
    hex::encode(canary_id.0.as_bytes())
}

/// The `traceparent` that goes out with a canary: version 00, its trace id, a parent id made of its id, sampled.
pub fn traceparent(canary_id: CanaryId) -> String {
    let parent = hex::encode(&Sha256::digest(canary_id.0.as_bytes())[..8]);
    format!("00-{}-{parent}-01", trace_id(canary_id))
}

/// Whether this value carries the canary's trace id: as a `traceparent` of any parent, since each hop writes its own,
/// or as the bare trace id.
pub fn carries(value: &str, canary_id: CanaryId) -> bool {
    let value = value.trim();
    let mut parts = value.split('-');
    let found = match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(bare), None, None, None) => bare,
        (Some(version), Some(trace), Some(parent), Some(_)) if version.len() == 2 && parent.len() == 16 => {
            trace
        }
        _ => return false,
    };
    found.eq_ignore_ascii_case(&trace_id(canary_id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use uuid::Uuid;

    const ID: CanaryId = CanaryId(Uuid::from_u128(0x0193_0000_0000_7000_8000_0000_0000_002a));

    #[test]
    fn it_has_the_shape_that_w3c_asks_for() {
        let value = traceparent(ID);
        assert_eq!(value.len(), 55);
        assert!(value.starts_with("00-0193000000007000800000000000002a-"), "{value}");
        assert!(value.ends_with("-01"));
        assert!(value.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b) || b == b'-'));
    }

    #[test]
    fn another_hop_may_write_its_own_parent_but_not_another_trace() {
        let trace = trace_id(ID);
        for good in [
            format!("00-{trace}-00f067aa0ba902b7-00"),
            format!("cc-{trace}-00f067aa0ba902b7-00-more"),
            trace.to_uppercase(),
            format!(" {trace} "),
        ] {
            assert!(carries(&good, ID), "{good}");
        }
        let other = trace_id(CanaryId(Uuid::from_u128(1)));
        for bad in [
            format!("00-{other}-00f067aa0ba902b7-00"),
            other.clone(),
            String::new(),
            format!("00-{trace}"),
            format!("x{trace}"),
            format!("00-{trace}-short-00"),
        ] {
            assert!(!carries(&bad, ID), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn what_went_out_is_known_again_and_only_as_its_own(a: u128, b: u128) {
            let (a, b) = (CanaryId(Uuid::from_u128(a)), CanaryId(Uuid::from_u128(b)));
            prop_assert!(carries(&traceparent(a), a));
            prop_assert_eq!(carries(&traceparent(a), b), a == b);
        }
    }
}
