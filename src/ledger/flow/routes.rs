//! Which route the service's own words mean, as numbers.

use crate::{
    domain::{flow::rows::RouteNo, route::RouteName},
    ledger::{cell::Cell, wanted::Field},
};
use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap},
};

/// The value of a route map that takes all the rest.
const ALL_THE_REST: &str = "*";

/// The routes of a ledger, each with its number. What is none of them has the number behind the last.
#[derive(Clone, Debug, Default)]
pub struct Routes(Vec<RouteName>);

impl Routes {
    /// The routes that these maps name.
    pub fn of<'a>(maps: impl IntoIterator<Item = &'a BTreeMap<String, String>>) -> Self {
        let names: BTreeSet<&String> = maps.into_iter().flat_map(BTreeMap::values).collect();
        Self(names.into_iter().map(|name| RouteName::from_text(name.clone())).collect())
    }

    /// Their names, in the order of their numbers.
    pub fn names(&self) -> &[RouteName] {
        &self.0
    }

    /// The number of a route.
    pub fn number(&self, name: Option<&str>) -> RouteNo {
        let place = name.and_then(|name| self.0.iter().position(|route| route.as_str() == name));
        // The configuration has fewer routes than that, or it is refused long before.
        RouteNo(u16::try_from(place.unwrap_or(self.0.len())).unwrap_or(u16::MAX))
    }
}

/// A query's route column and map.
#[derive(Clone, Debug)]
pub struct RouteField {
    field: Option<Field>,
    words: HashMap<String, RouteNo>,
    rest: RouteNo,
}

impl RouteField {
    /// The field and map, with the numbers of these routes.
    pub fn new(field: Option<Field>, map: &BTreeMap<String, String>, routes: &Routes) -> Self {
        let words = map.iter().map(|(word, name)| (word.clone(), routes.number(Some(name)))).collect();
        Self { field, words, rest: routes.number(map.get(ALL_THE_REST).map(String::as_str)) }
    }

    /// All routes that it can give.
    pub fn all(&self) -> BTreeSet<RouteNo> {
        self.words.values().copied().chain([self.rest]).collect()
    }

    /// The route of a word of the service's. No word is none of the map.
    pub fn of_word(&self, word: Option<&str>) -> RouteNo {
        // The star is a word of the map's, and none of the service's.
        let known = word.filter(|word| *word != ALL_THE_REST).and_then(|word| self.words.get(word));
        known.copied().unwrap_or(self.rest)
    }

    /// The route of a row. What can't be a word is none of the map.
    pub fn read(&self, cells: &[Cell]) -> RouteNo {
        let Some(field) = self.field else { return self.rest };
        let word: Cow<'_, str> = match &cells[field.0] {
            Cell::Text(text) | Cell::Decimal(text) => text.as_str().into(),
            Cell::Int(number) => number.to_string().into(),
            Cell::Uuid(uuid) => uuid.to_string().into(),
            _ => return self.rest,
        };
        self.of_word(Some(&word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_the_numbers_of_their_routes() {
        let map = |pairs: &[(&str, &str)]| {
            pairs
                .iter()
                .map(|(word, name)| ((*word).to_owned(), (*name).to_owned()))
                .collect::<BTreeMap<_, _>>()
        };
        let (some, all) = (map(&[("sms", "sms/b"), ("7", "email/a")]), map(&[("*", "push/c")]));
        let routes = Routes::of([&some, &all]);
        let names: Vec<&str> = routes.names().iter().map(RouteName::as_str).collect();
        assert_eq!(names, ["email/a", "push/c", "sms/b"]);
        let read = |map, cell| RouteField::new(Some(Field(0)), map, &routes).read(&[cell]);
        assert_eq!(read(&some, Cell::Text("sms".into())), RouteNo(2));
        assert_eq!(read(&some, Cell::Int(7)), RouteNo(0));
        assert_eq!(read(&some, Cell::Text("fax".into())), RouteNo(3));
        assert_eq!((read(&some, Cell::Null), read(&all, Cell::Null)), (RouteNo(3), RouteNo(1)));
        assert_eq!(read(&some, Cell::Text("*".into())), RouteNo(3));
        assert_eq!(RouteField::new(None, &all, &routes).read(&[]), RouteNo(1));
    }
}
