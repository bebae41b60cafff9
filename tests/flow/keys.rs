//! Keys: one for each unit, the same after being kept.

use delivery_canary::{
    domain::flow::{
        key::{KeptUnder, KeyError, UnitKey, id_from_text, id_to_text},
        rows::{LedgerId, UnitId},
    },
    ledger::flow::text_of,
};
use proptest::{collection::hash_set, option, prelude::*};
use std::collections::BTreeSet;

fn text() -> impl Strategy<Value = Box<str>> {
    // Short texts of the letters that keys are made with, so that two of them would meet if they could.
    "[a0:1itunx\u{0}\u{1e}\u{1f}é]{0,6}".prop_map(Into::into)
}

fn id() -> impl Strategy<Value = LedgerId> {
    prop_oneof![
        any::<i64>().prop_map(LedgerId::Int),
        any::<[u8; 16]>().prop_map(LedgerId::Uuid),
        text().prop_map(LedgerId::Text),
    ]
}

fn unit() -> impl Strategy<Value = UnitId> {
    (id(), option::of(text())).prop_map(|(notification, destination)| UnitId { notification, destination })
}

proptest! {
    #[test]
    fn a_key_gives_its_unit_back_also_after_it_was_kept(unit in unit()) {
        let key = UnitKey::from(unit.clone());
        prop_assert_eq!(key.unit(), unit);
        let text = key.to_text();
        prop_assert!(!text.contains('\0'));
        prop_assert_eq!(UnitKey::from_text(&text), Ok(key));
    }

    #[test]
    fn an_id_is_the_same_after_it_was_kept(id in id()) {
        prop_assert_eq!(id_from_text(&id_to_text(&id)), Ok(id));
    }

    #[test]
    fn different_units_have_different_keys_and_fingerprints(units in hash_set(unit(), 2..40)) {
        let keys: BTreeSet<_> = units.iter().cloned().map(UnitKey::from).collect();
        prop_assert_eq!(keys.len(), units.len());
        let prints: BTreeSet<_> = keys.iter().map(UnitKey::fingerprint).collect();
        prop_assert_eq!(prints.len(), units.len());
    }
}

#[test]
fn fingerprints_are_those_of_every_version() {
    let print = |notification| UnitKey::from(UnitId { notification, destination: None }).fingerprint();
    assert_eq!(print(LedgerId::Int(7)), INT);
    assert_eq!(print(LedgerId::Uuid([7; 16])), UUID);
    assert_eq!(print(LedgerId::Text("seven".into())), TEXT);
}

const INT: u64 = 0x5176_60a6_75a2_dedd;
const UUID: u64 = 0xf0db_bc15_937f_7238;
const TEXT: u64 = 0xa5c1_bab0_7d31_7a4f;

#[test]
fn a_kept_text_that_is_no_key_is_refused() {
    for text in ["", "i", "i1x", "u00", "xff", "z1", "é"] {
        assert_eq!(UnitKey::from_text(text), Err(KeyError(text.to_owned())));
    }
}

/// An id as it comes off a ledger: a text is one that is neither a number nor a UUID.
fn ledger_id() -> impl Strategy<Value = LedgerId> {
    prop_oneof![
        any::<i64>().prop_map(LedgerId::Int),
        any::<[u8; 16]>().prop_map(LedgerId::Uuid),
        "[a-z]{1,3}[0-9:]{0,3}".prop_map(|text| LedgerId::Text(text.into())),
    ]
}

proptest! {
    #[test]
    fn what_an_id_can_be_kept_under_is_known_from_its_text(
        one in ledger_id(), other in ledger_id(), destination in option::of("[a-z:%_]{0,4}")
    ) {
        let destination: Option<Box<str>> = destination.map(Into::into);
        let key = |id: &LedgerId| {
            UnitKey::from(UnitId { notification: id.clone(), destination: destination.clone() }).to_text()
        };
        let kept = KeptUnder::of(&text_of(&one));
        let covers = |key: &String| {
            kept.keys.contains(key) || kept.prefixes.iter().any(|prefix| key.starts_with(prefix.as_str()))
        };
        prop_assert!(covers(&key(&one)), "{kept:?} {}", key(&one));
        prop_assert!(one == other || !covers(&key(&other)), "{kept:?} {}", key(&other));
    }
}
