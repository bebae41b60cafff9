//! "Did you mean": the known name that is nearest to one that isn't known.

/// The nearest of the known names, when it is near enough to be meant.
pub fn nearest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted: String = wanted.chars().take(64).collect::<String>().to_lowercase();
    let limit = (wanted.chars().count() / 3).clamp(1, 4);
    known
        .into_iter()
        .map(|name| (distance(&wanted, &name.to_lowercase()), name))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, name)| name)
}

/// A hint for an unknown name: the nearest known one, or all when they are few.
pub fn hint<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    if let Some(near) = nearest(wanted, known.clone()) {
        return format!("did you mean `{near}`?");
    }
    let mut names: Vec<&str> = known.into_iter().collect();
    names.sort_unstable();
    match names.len() {
        0 => "there is none".into(),
        1..=20 => format!("known here: `{}`", names.join("`, `")),
        more => format!("known here: `{}` and {} more", names[..20].join("`, `"), more - 20),
    }
}

/// The insertions, deletions, replacements and swaps of neighbours that turn one text into the other.
fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let width = right.len() + 1;
    let mut table: Vec<usize> = vec![0; (left.len() + 1) * width];
    for i in 0..=left.len() {
        for j in 0..=right.len() {
            table[i * width + j] = if i == 0 || j == 0 {
                i + j
            } else {
                let above = (i - 1) * width + j;
                let differs = usize::from(left[i - 1] != right[j - 1]);
                let mut best =
                    (table[above] + 1).min(table[i * width + j - 1] + 1).min(table[above - 1] + differs);
                if i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1] {
                    best = best.min(table[above - width - 1] + 1);
                }
                best
            };
        }
    }
    table.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_understood() {
        let known = ["hourly_cap", "deadline", "settle"];
        assert_eq!(nearest("hourly_capp", known), Some("hourly_cap"));
        assert_eq!(nearest("daedline", known), Some("deadline"));
        assert_eq!(nearest("Settle", known), Some("settle"));
        assert_eq!(nearest("banana", known), None);
        assert_eq!(hint("banana", known), "known here: `deadline`, `hourly_cap`, `settle`");
        assert_eq!(hint("x", []), "there is none");
    }
}
