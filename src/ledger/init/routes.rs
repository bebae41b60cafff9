//! Which configured route the service's own words mean.

use super::{facts::singular, yaml::RouteWord};
use crate::ledger::notes::shown;

/// The route map: of the words seen, where there is a column of them, and of the routes, where they are known.
pub fn of(words: &Option<Vec<String>>, routes: Option<&[String]>) -> Vec<RouteWord> {
    let Some(words) = words else { return vec![all_of(routes)] };
    let mut map: Vec<RouteWord> =
        words.iter().filter(|word| shown(word) == **word).map(|word| of_word(word, routes)).collect();
    if !map.iter().any(|word| word.route.is_some()) {
        map.push(all_of(routes));
    }
    map
}

fn of_word(word: &str, routes: Option<&[String]>) -> RouteWord {
    let Some(routes) = routes else {
        let route = plain(word).map(|name| format!("webhook/{name}"));
        let why = "GUESS: write your route; with --config its routes are known".to_owned();
        return RouteWord { word: word.to_owned(), route, why };
    };
    let is_alike = |route: &&String| {
        let name = route.split_once('/').map_or(route.as_str(), |(_, name)| name);
        singular(&letters(name)) == singular(&letters(word))
    };
    let mut alike = routes.iter().filter(is_alike);
    match (alike.next(), alike.next()) {
        (Some(route), None) => RouteWord {
            word: word.to_owned(),
            route: Some(route.clone()),
            why: "GUESS: by its name".to_owned(),
        },
        (Some(_), Some(_)) => RouteWord {
            word: word.to_owned(),
            route: None,
            why: "MISSING: several routes are called so".to_owned(),
        },
        _ => RouteWord {
            word: word.to_owned(),
            route: None,
            why: "MISSING: no route is called so; it counts as `other`".to_owned(),
        },
    }
}

fn all_of(routes: Option<&[String]>) -> RouteWord {
    let (route, why) = match routes {
        Some([only]) => (only.clone(), "GUESS: it is the only route".to_owned()),
        Some([first, ..]) => (first.clone(), "GUESS: it is the first of several routes".to_owned()),
        Some([]) | None => (
            "webhook/receipts".to_owned(),
            "GUESS: write your route; with --config its routes are known".to_owned(),
        ),
    };
    RouteWord { word: "*".to_owned(), route: Some(route), why }
}

fn letters(word: &str) -> String {
    word.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase()
}

/// The word as the name of a route; nothing where it can't be one.
fn plain(word: &str) -> Option<String> {
    let name: String = word
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '-' })
        .collect();
    let name = name.trim_matches('-').to_owned();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(words: &[&str], routes: Option<&[&str]>) -> Vec<(String, Option<String>)> {
        let words = Some(words.iter().map(ToString::to_string).collect());
        let routes: Option<Vec<String>> =
            routes.map(|routes| routes.iter().map(ToString::to_string).collect());
        of(&words, routes.as_deref()).into_iter().map(|word| (word.word, word.route)).collect()
    }

    #[test]
    fn a_word_is_the_route_of_its_name_and_never_one_that_is_not_configured() {
        let pair = |word: &str, route: Option<&str>| (word.to_owned(), route.map(str::to_owned));
        let routes = ["sms/receipts", "sms/alerts"];
        assert_eq!(
            map(&["receipt", "ALERTS", "probe"], Some(&routes)),
            [pair("receipt", Some("sms/receipts")), pair("ALERTS", Some("sms/alerts")), pair("probe", None)]
        );
        assert_eq!(map(&["x"], Some(&["push/all"])), [pair("x", None), pair("*", Some("push/all"))]);
        assert_eq!(map(&["Pay Out"], None), [pair("Pay Out", Some("webhook/pay-out"))]);
        assert_eq!(of(&None, None)[0].word, "*");
    }
}
