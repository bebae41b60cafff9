//! Further ways to break an expression once: an alternative, a clause within a line, an aggregation, a comparison.

/// What was broken, and the expression then.
pub type Broken = (String, String);

/// Where brackets that were open before close again, or the text ends; or where another clause of the same depth begins.
fn end_of_clause(expr: &str, from: usize) -> usize {
    let mut depth = 0_i32;
    for (at, c) in expr[from..].char_indices() {
        match c {
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' => depth -= 1,
            _ => {}
        }
        let next = &expr[from + at..];
        let begins = [" and ", " unless ", " or ", "\n"].iter().any(|word| next.starts_with(word));
        let closes = next.starts_with(",\n");
        if depth < 0 || (at > 0 && depth == 0 && (begins || closes)) {
            return from + at;
        }
    }
    expr.len()
}

/// Alternatives that begin a line, taken away.
pub fn alternatives(expr: &str) -> Vec<Broken> {
    let starts = expr.match_indices("\nor ").map(|(at, _)| at);
    starts.map(|at| without(expr, at, end_of_clause(expr, at + 1))).collect()
}

/// Clauses in the middle of a line, taken away: gates that were written behind what they gate.
pub fn clauses_within(expr: &str) -> Vec<Broken> {
    let words = [" and ", " unless "];
    let starts = words.iter().flat_map(|word| expr.match_indices(word)).map(|(at, _)| at);
    starts.map(|at| without(expr, at, end_of_clause(expr, at + 1))).collect()
}

fn without(expr: &str, from: usize, until: usize) -> Broken {
    (format!("without `{}`", expr[from..until].trim()), format!("{}{}", &expr[..from], &expr[until..]))
}

/// Where a word stands alone.
fn word_at<'e>(expr: &'e str, word: &'e str) -> impl Iterator<Item = usize> + 'e {
    let is_inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':');
    expr.match_indices(word).map(|(at, _)| at).filter(move |at| {
        !expr[..*at].ends_with(is_inside) && !expr[at + word.len()..].starts_with(is_inside)
    })
}

/// How the names of what is exported begin, and of nothing that is recorded.
const EXPORTED: [&str; 4] = ["delivery_canary_", "delivery_ledger_", "delivery_monitor_", "delivery_route_"];

/// Aggregations, each by another one. What is recorded has one value for each of its labels, so over that nothing else would come of it.
pub fn aggregations(expr: &str) -> Vec<Broken> {
    const OTHERS: [(&str, &[&str]); 4] = [
        ("max", &["min", "sum"]),
        ("min", &["max"]),
        ("sum", &["max"]),
        ("min_over_time", &["max_over_time"]),
    ];
    let mut out = Vec::new();
    for (word, others) in OTHERS {
        for at in word_at(expr, word) {
            let Some(open) = argument(expr, at + word.len()) else { continue };
            let inside = &expr[open..end_of_argument(expr, open)];
            let is_exported = EXPORTED.iter().any(|prefix| inside.contains(prefix));
            if word != "sum" && !is_exported {
                continue;
            }
            for other in others {
                let broken = format!("{}{other}{}", &expr[..at], &expr[at + word.len()..]);
                let shown: String = inside.split_whitespace().collect::<Vec<_>>().join(" ");
                out.push((format!("{word} of `{shown}` is {other}"), broken));
            }
        }
    }
    out
}

/// The bracket of the argument of an aggregation, behind its labels.
fn argument(expr: &str, from: usize) -> Option<usize> {
    let first = from + expr[from..].find('(')?;
    if expr[from..first].trim() == "by" {
        let labels = first + expr[first..].find(')')?;
        return Some(labels + expr[labels..].find('(')?);
    }
    Some(first)
}

fn end_of_argument(expr: &str, open: usize) -> usize {
    let mut depth = 0_i32;
    for (at, c) in expr[open..].char_indices() {
        depth += match c {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        if depth == 0 {
            return open + at + 1;
        }
    }
    expr.len()
}

/// Comparisons, each the other way round.
pub fn comparisons(expr: &str) -> Vec<Broken> {
    const OTHERS: [(&str, &str); 5] =
        [(" > ", " <= "), (" >= ", " < "), (" < ", " >= "), (" <= ", " > "), (" == ", " != ")];
    let all = OTHERS
        .iter()
        .flat_map(|(word, other)| expr.match_indices(word).map(move |(at, _)| (at, *word, *other)));
    all.map(|(at, word, other)| {
        let line = expr[..at].lines().count();
        let broken = format!("{}{other}{}", &expr[..at], &expr[at + word.len()..]);
        (format!("line {line}, `{}` is `{}`", word.trim(), other.trim()), broken)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPR: &str = "(max by (route) (delivery_canary_x{a=\"b\"}[5m] and on (job) up) > 3\nor time() - min(a) >= 4\nand on (route) b == 1)\nunless c";

    fn exprs(broken: Vec<Broken>) -> Vec<String> {
        broken.into_iter().map(|(_, expr)| expr).collect()
    }

    #[test]
    fn each_way_breaks_one_place() {
        assert_eq!(exprs(alternatives(EXPR)), [EXPR.replace("\nor time() - min(a) >= 4", "")]);
        assert_eq!(exprs(clauses_within(EXPR)), [EXPR.replace(" and on (job) up", "")]);
        assert_eq!(exprs(aggregations(EXPR)), [EXPR.replace("max", "min"), EXPR.replace("max", "sum")]);
        let compared = exprs(comparisons(EXPR));
        assert_eq!(
            compared,
            [EXPR.replace('>', "<=").replace("<==", ">="), EXPR.replace(">=", "<"), EXPR.replace("==", "!=")]
        );
    }
}
