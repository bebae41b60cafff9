//! Ids off a ledger, as small as they can be held, and back to the text by which the ledger is asked.

use crate::{
    domain::flow::rows::{LedgerId, UnitId},
    ledger::{
        cell::{Cell, LONGEST_ID, Misfit},
        wanted::{Field, Wanted},
    },
};
use uuid::Uuid;

/// The columns that tell a notification, or one of its destinations, apart.
#[derive(Clone, Copy, Debug)]
pub struct UnitFields {
    /// The notification's id.
    pub notification: Field,
    /// The destination.
    pub destination: Option<Field>,
}

impl UnitFields {
    /// The unit of a row; nothing where its id is NULL, or can't be an id.
    ///
    /// # Errors
    /// When values of this type can't be ids.
    pub fn read(&self, cells: &[Cell], wanted: &Wanted) -> Result<Option<UnitId>, Misfit> {
        let name = wanted.name(self.notification);
        let Some(notification) = ledger_id(&cells[self.notification.0], name)? else { return Ok(None) };
        let destination = match self.destination.map(|field| (&cells[field.0], wanted.name(field))) {
            None | Some((Cell::Null, _)) => None,
            Some((cell, name)) => match ledger_id(cell, name)? {
                Some(id) => Some(text_of(&id).into_boxed_str()),
                None => return Ok(None),
            },
        };
        Ok(Some(UnitId { notification, destination }))
    }
}

/// The id in a cell; nothing for NULL and for texts that can't be ids. A text that is a number or a UUID as the database itself would
/// write it is held as one, so that an id is the same whether a query gives it in its own type or as text.
///
/// # Errors
/// When values of this type can't be ids.
pub fn ledger_id(cell: &Cell, column: &str) -> Result<Option<LedgerId>, Misfit> {
    Ok(match cell {
        Cell::Int(number) => Some(LedgerId::Int(*number)),
        Cell::Uuid(uuid) => Some(LedgerId::Uuid(uuid.into_bytes())),
        Cell::Text(text) | Cell::Decimal(text) => from_text(text),
        Cell::Null => None,
        other => {
            let problem = format!("{} can't be an id: cast it to text in the SQL", other.type_name());
            return Err(Misfit::new(column, problem));
        }
    })
}

fn from_text(text: &str) -> Option<LedgerId> {
    if text.len() > LONGEST_ID || text.chars().any(char::is_control) {
        return None;
    }
    let is_lower = !text.bytes().any(|byte| byte.is_ascii_uppercase());
    if text.len() == 36
        && is_lower
        && let Ok(uuid) = Uuid::try_parse(text)
    {
        return Some(LedgerId::Uuid(uuid.into_bytes()));
    }
    let may_be_number = text.len() <= 20 && text.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    if may_be_number && let Some(number) = text.parse::<i64>().ok().filter(|n| n.to_string() == text) {
        return Some(LedgerId::Int(number));
    }
    Some(LedgerId::Text(text.into()))
}

/// The id as the ledger writes it.
pub fn text_of(id: &LedgerId) -> String {
    match id {
        LedgerId::Int(number) => number.to_string(),
        LedgerId::Uuid(bytes) => Uuid::from_bytes(*bytes).to_string(),
        LedgerId::Text(text) => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn id(text: &str) -> Option<LedgerId> {
        ledger_id(&Cell::Text(text.into()), "id").unwrap()
    }

    #[test]
    fn an_id_is_held_in_its_own_type_and_only_there() {
        let uuid = "0193c1a0-0000-7000-8000-00000000000a";
        assert_eq!(id(uuid), ledger_id(&Cell::Uuid(uuid.parse().unwrap()), "id").unwrap());
        assert_eq!(id("-7"), Some(LedgerId::Int(-7)));
        for other in [
            "0193C1A0-0000-7000-8000-00000000000A",
            "07",
            "+7",
            "-0",
            "9223372036854775808",
            "",
            "1.0",
            "a/b",
        ] {
            assert_eq!(id(other), Some(LedgerId::Text(other.into())), "{other}");
        }
        for none in ["a\nb", &"x".repeat(257)] {
            assert_eq!(id(none), None);
        }
        assert_eq!(ledger_id(&Cell::Null, "id"), Ok(None));
        assert!(ledger_id(&Cell::Float(1.0), "id").is_err());
    }

    proptest! {
        #[test]
        fn an_id_comes_back_as_it_was(text in "[0-9a-zA-Z_.:+-]{0,40}|-?[0-9]{1,19}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}") {
            prop_assert_eq!(id(&text).map(|id| text_of(&id)), Some(text));
        }
    }
}
