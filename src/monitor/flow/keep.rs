//! The follower's state as the store keeps it, and back.

use crate::{
    catalog::labels::OTHER_ROUTE,
    domain::{
        flow::{
            cells::{Cell, CellKey, Level},
            durable::{Changes, DurableStray, DurableUnit, Saved},
            key::UnitKey,
            rows::{RouteNo, UnitId},
        },
        route::RouteName,
    },
    ledger::Position,
    store::follower::{Followed, FollowedCell, FollowedStray, FollowedUnit, FollowerSave},
};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// Up to where the streams are followed.
#[derive(Clone, Debug, PartialEq)]
pub struct Places {
    /// The newest notification that is not read again.
    pub notifications: Option<Position>,
    /// The newest attempt that is not read again.
    pub attempts: Option<Position>,
    /// Where the history begins that is followed.
    pub horizon: DateTime<Utc>,
}

/// The same as text.
#[derive(Serialize, Deserialize)]
struct Kept {
    notifications: Option<String>,
    attempts: Option<String>,
    horizon: DateTime<Utc>,
}

impl Places {
    /// The beginning of the history.
    pub fn at(horizon: DateTime<Utc>) -> Self {
        Self { notifications: None, attempts: None, horizon }
    }

    /// What was kept as this text.
    ///
    /// # Errors
    /// Why it can't be read.
    pub fn from_text(text: &str) -> Result<Self, String> {
        let kept: Kept = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let place = |text: Option<String>| {
            text.map(|text| Position::from_text(&text)).transpose().map_err(|error| error.to_string())
        };
        Ok(Self {
            notifications: place(kept.notifications)?,
            attempts: place(kept.attempts)?,
            horizon: kept.horizon,
        })
    }

    fn to_text(&self) -> String {
        let place = |place: &Option<Position>| place.as_ref().map(Position::to_text);
        let kept = Kept {
            notifications: place(&self.notifications),
            attempts: place(&self.attempts),
            horizon: self.horizon,
        };
        // Texts and a time always are JSON.
        serde_json::to_string(&kept).unwrap_or_default()
    }
}

/// What was erased and is kept all the same.
#[derive(Debug, Default)]
pub struct Erased {
    units: Vec<String>,
    strays: Vec<(String, String)>,
}

impl Erased {
    /// Takes it out of kept units.
    pub fn take_units(&mut self, kept: &mut Vec<FollowedUnit>, is_erased: impl Fn(&UnitId) -> bool) {
        self.units.extend(kept.extract_if(.., |unit| is_of(&unit.unit, &is_erased)).map(|unit| unit.unit));
    }

    /// Takes it out of kept strays.
    pub fn take_strays(&mut self, kept: &mut Vec<FollowedStray>, is_erased: impl Fn(&UnitId) -> bool) {
        let strays = kept.extract_if(.., |stray| is_of(&stray.unit, &is_erased));
        self.strays.extend(strays.map(|stray| (stray.unit, stray.attempt)));
    }

    /// Has it removed.
    pub fn add_to(self, save: &mut FollowerSave) {
        save.gone.extend(self.units);
        save.found.extend(self.strays);
    }
}

/// What is no key is told when it is restored.
fn is_of(key: &str, is_erased: impl Fn(&UnitId) -> bool) -> bool {
    UnitKey::from_text(key).is_ok_and(|key| is_erased(&key.unit()))
}

fn number(routes: &[RouteName], name: &str) -> RouteNo {
    let place = routes.iter().position(|route| route.as_str() == name).unwrap_or(routes.len());
    RouteNo(u16::try_from(place).unwrap_or(u16::MAX))
}

/// Kept units, as the core takes them. Routes are kept by name: their numbers change with the configuration.
///
/// # Errors
/// Where the words of a row can't be read.
pub fn units(kept: Vec<FollowedUnit>, routes: &[RouteName]) -> Result<Vec<DurableUnit>, String> {
    let units = kept.into_iter().map(|unit| {
        let [own, by_attempts, at, flags] = numbers(&unit.body)?;
        let (route, due) = (i64::from(number(routes, &unit.route).0), unit.due.timestamp_micros());
        Ok(DurableUnit { key: unit.unit, route, due, own, by_attempts, at, flags })
    });
    units.collect()
}

/// What was kept beside the units, as the core takes it. Routes are kept by name: their numbers change with the configuration.
///
/// # Errors
/// Where the words of a row can't be read.
pub fn saved(kept: Followed, routes: &[RouteName]) -> Result<Saved, String> {
    let strays = kept.strays.into_iter().map(|stray| {
        let [at, leaves, since] = numbers(&stray.body)?;
        Ok(DurableStray { unit: stray.unit, attempt: stray.attempt, at, leaves, since })
    });
    let cells = kept.cells.into_iter().map(|cell| {
        let level = if cell.level == Level::Minute.seconds() { Level::Minute } else { Level::Hour };
        let key = CellKey { level, route: number(routes, &cell.route), start: cell.bucket.timestamp() };
        let [settled @ .., p0, p1, p2, p3, a0, a1, a2, a3, a4]: [i64; 13] = numbers(&cell.body)?;
        let prints = [p0, p1, p2, p3].map(i64::cast_unsigned);
        Ok((key, Cell { settled, prints, attempts: [a0, a1, a2, a3, a4] }))
    });
    Ok(Saved {
        units: Vec::new(),
        strays: strays.collect::<Result<_, String>>()?,
        cells: cells.collect::<Result<_, String>>()?,
    })
}

/// What one pass changed, as the store takes it.
pub fn save(changes: Changes, routes: &[RouteName], places: &Places, is_fresh: bool) -> FollowerSave {
    let name = |route: usize| routes.get(route).map_or(OTHER_ROUTE, RouteName::as_str).to_owned();
    let instant = |seconds: i64| DateTime::from_timestamp(seconds, 0).unwrap_or(DateTime::UNIX_EPOCH);
    FollowerSave {
        position: places.to_text(),
        is_fresh,
        units: changes
            .units_upserted
            .into_iter()
            .map(|unit| FollowedUnit {
                route: name(usize::try_from(unit.route).unwrap_or(usize::MAX)),
                due: DateTime::from_timestamp_micros(unit.due).unwrap_or(DateTime::UNIX_EPOCH),
                body: words([unit.own, unit.by_attempts, unit.at, unit.flags]),
                unit: unit.key,
            })
            .collect(),
        gone: changes.units_deleted,
        strays: changes
            .strays_inserted
            .into_iter()
            .map(|stray| FollowedStray {
                body: words([stray.at, stray.leaves, stray.since]),
                unit: stray.unit,
                attempt: stray.attempt,
            })
            .collect(),
        found: changes.strays_deleted,
        cells: changes
            .cells
            .into_iter()
            .map(|(key, cell)| FollowedCell {
                level: key.level.seconds(),
                bucket: instant(key.start),
                route: name(usize::from(key.route.0)),
                body: words(
                    cell.settled.into_iter().chain(cell.prints.map(u64::cast_signed)).chain(cell.attempts),
                ),
            })
            .collect(),
        forget: vec![
            (Level::Minute.seconds(), instant(changes.minutes_from)),
            (Level::Hour.seconds(), instant(changes.hours_from)),
        ],
    }
}

fn words(numbers: impl IntoIterator<Item = i64>) -> String {
    let numbers: Vec<String> = numbers.into_iter().map(|number| number.to_string()).collect();
    numbers.join(" ")
}

fn numbers<const N: usize>(words: &str) -> Result<[i64; N], String> {
    let unreadable = || format!("`{words}` is not {N} numbers");
    let numbers: Vec<i64> =
        words.split(' ').map(str::parse).collect::<Result<_, _>>().map_err(|_| unreadable())?;
    numbers.try_into().map_err(|_| unreadable())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(seconds, 0).expect("an instant")
    }

    #[test]
    fn what_is_kept_comes_back_and_routes_by_their_names() {
        let unit = |key: &str, route| DurableUnit {
            key: key.into(),
            route,
            due: 1_700_000_000_123_456,
            own: 0,
            by_attempts: 2,
            at: -5,
            flags: 9,
        };
        let cell = Cell { settled: [1, 2, 3, -4], prints: [u64::MAX, 0, 1, 7], attempts: [5, 6, 7, 8, 9] };
        let key = |level, route| CellKey { level, route: RouteNo(route), start: 3_600 };
        let stray = DurableStray { unit: "u".into(), attempt: "a".into(), at: 1, leaves: 4, since: 2 };
        let changes = Changes {
            units_upserted: vec![unit("one", 0), unit("rest", 2)],
            units_deleted: vec!["gone".into()],
            strays_inserted: vec![stray.clone()],
            strays_deleted: vec![("u".into(), "b".into())],
            cells: vec![(key(Level::Minute, 1), cell), (key(Level::Hour, 2), cell)],
            minutes_from: 60,
            hours_from: 0,
        };
        let names =
            |names: &[&str]| -> Vec<RouteName> { names.iter().map(|n| RouteName::from_text(*n)).collect() };
        let places = Places::at(at(100));
        let save = save(changes, &names(&["sms/a", "sms/b"]), &places, true);
        assert_eq!(Places::from_text(&save.position), Ok(places));
        assert_eq!(save.forget, [(60, at(60)), (3_600, at(0))]);
        let kept = Followed { strays: save.strays, cells: save.cells, ..Followed::default() };
        // Another configuration: one more route, in front.
        let routes = names(&["email/z", "sms/a", "sms/b"]);
        let saved = saved(kept, &routes).expect("it can be read");
        assert_eq!(units(save.units, &routes).expect("they can be read"), [unit("one", 1), unit("rest", 3)]);
        assert_eq!(saved.strays, [stray]);
        assert_eq!(saved.cells, [(key(Level::Minute, 2), cell), (key(Level::Hour, 3), cell)]);
    }

    #[test]
    fn what_was_erased_and_is_kept_all_the_same_is_taken_out_and_removed() {
        let unit = |unit: &str| FollowedUnit {
            unit: unit.into(),
            route: "r".into(),
            due: at(0),
            body: String::new(),
        };
        let stray =
            |unit: &str| FollowedStray { unit: unit.into(), attempt: "i5".into(), body: String::new() };
        let mut units = vec![unit("i1"), unit("i2"), unit("no key")];
        let mut strays = vec![stray("i1"), stray("i3")];
        let one = UnitKey::from_text("i1").expect("a key").unit();
        let mut erased = Erased::default();
        erased.take_units(&mut units, |unit| *unit == one);
        erased.take_strays(&mut strays, |unit| *unit == one);
        assert_eq!((units, strays), (vec![unit("i2"), unit("no key")], vec![stray("i3")]));
        let mut save = FollowerSave::default();
        erased.add_to(&mut save);
        assert_eq!(save.gone, ["i1"]);
        assert_eq!(save.found, [("i1".into(), "i5".into())]);
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for body in ["", "1 2 3", "1 2 3 4 5", "a b c d"] {
            let unit = FollowedUnit { unit: "u".into(), route: "r".into(), due: at(0), body: body.into() };
            assert!(units(vec![unit], &[]).is_err(), "{body}");
        }
        assert!(Places::from_text("{}").is_err());
    }
}
