//! IANA zones by name. Their data is compiled in: a machine without zone files knows them too.

use chrono_tz::{TZ_VARIANTS, Tz};

use super::error::ScheduleError;

/// Most names that are suggested.
const MOST_SUGGESTIONS: usize = 3;

/// Finds an IANA zone, such as `America/New_York`.
///
/// # Errors
/// When there is none of exactly that name; the error suggests near ones.
pub fn parse_zone(name: &str) -> Result<Tz, ScheduleError> {
    name.parse().map_err(|_| ScheduleError::UnknownZone { zone: name.into(), near: near(name) })
}

fn near(name: &str) -> Vec<String> {
    let wanted: String = name.trim().chars().take(64).collect::<String>().to_lowercase().replace(' ', "_");
    if wanted.is_empty() {
        return Vec::new();
    }
    let limit = (wanted.chars().count() / 4).clamp(1, 4);
    let mut found: Vec<(usize, &str)> = TZ_VARIANTS
        .iter()
        .map(|zone| {
            let known = zone.name().to_lowercase();
            let city = known.rsplit('/').next().unwrap_or_default();
            // Somebody who writes only the city means that city, however long the region's name is.
            let by_city = if wanted.contains('/') { usize::MAX } else { edits(&wanted, city) };
            (edits(&wanted, &known).min(by_city), zone.name())
        })
        .filter(|(distance, _)| *distance <= limit)
        .collect();
    found.sort_unstable();
    found.into_iter().take(MOST_SUGGESTIONS).map(|(_, name)| name.to_owned()).collect()
}

/// The edits (insert, delete, replace a character) that turn one text into the other.
fn edits(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, l) in left.chars().enumerate() {
        let mut diagonal = i;
        let mut previous = i + 1;
        row[0] = previous;
        for (cell, r) in row.iter_mut().skip(1).zip(&right) {
            let best = (diagonal + usize::from(l != *r)).min(*cell + 1).min(previous + 1);
            diagonal = *cell;
            *cell = best;
            previous = best;
        }
    }
    row.last().copied().unwrap_or_default()
}
