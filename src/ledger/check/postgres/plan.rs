//! Which tables a plan of PostgreSQL's reads from end to end, and by which condition.

use serde_json::{Map, Value};

/// Longer conditions are cut.
const LONGEST: usize = 300;

/// A table of which a plan reads each row, or each entry of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WholeRead {
    /// Its schema.
    pub schema: String,
    /// The table, or one partition.
    pub table: String,
    /// The index by which it is read; empty where there is none.
    pub index: String,
    /// The condition on its rows, else that by which they are joined, without literals; empty where there is none.
    pub condition: String,
}

/// Each table that is read whole, anywhere in the plan.
pub fn whole_reads(plan: &Value) -> Vec<WholeRead> {
    let mut found = Vec::new();
    collect(plan, &Above::default(), &mut found);
    found
}

/// What is done above a node.
#[derive(Clone, Default)]
struct Above {
    /// By what its rows are joined.
    join: String,
    /// Whether that join runs through both sides in order, so that even a read without a condition goes to the end.
    is_merged: bool,
    /// The table whose rows a bitmap is made for.
    heap: Option<WholeRead>,
}

fn collect(node: &Value, above: &Above, found: &mut Vec<WholeRead>) {
    match node {
        Value::Array(nodes) => nodes.iter().for_each(|node| collect(node, above, found)),
        Value::Object(fields) => {
            let mut below = above.clone();
            match text(fields, "Node Type") {
                kind if kind.ends_with("Seq Scan") => found.extend(read(fields, above)),
                "Index Scan" | "Index Only Scan" => {
                    // In the order of an index and without any condition a limit ends it.
                    let goes_on = !text(fields, "Filter").is_empty() || above.is_merged;
                    if goes_on && text(fields, "Index Cond").is_empty() {
                        found.extend(read(fields, above));
                    }
                }
                "Bitmap Heap Scan" => below.heap = read(fields, above),
                "Bitmap Index Scan" if text(fields, "Index Cond").is_empty() => {
                    let index = text(fields, "Index Name").to_owned();
                    found.extend(above.heap.clone().map(|heap| WholeRead { index, ..heap }));
                }
                _ => {}
            }
            for join in ["Hash Cond", "Merge Cond", "Join Filter"] {
                let condition = text(fields, join);
                if !condition.is_empty() {
                    below.join = without_literals(condition);
                    below.is_merged = join == "Merge Cond";
                }
            }
            for name in ["Plan", "Plans"] {
                fields.get(name).into_iter().for_each(|node| collect(node, &below, found));
            }
        }
        _ => {}
    }
}

fn text<'a>(fields: &'a Map<String, Value>, name: &str) -> &'a str {
    fields.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The read of a node; nothing where it reads no table, but a function's result or the like.
fn read(fields: &Map<String, Value>, above: &Above) -> Option<WholeRead> {
    let (schema, table) = (text(fields, "Schema"), text(fields, "Relation Name"));
    let alias = Some(text(fields, "Alias")).filter(|alias| !alias.is_empty()).unwrap_or(table);
    let own = without_alias(&without_literals(text(fields, "Filter")), alias);
    let condition = if own.is_empty() { above.join.clone() } else { own };
    (!schema.is_empty() && !table.is_empty()).then(|| WholeRead {
        schema: schema.to_owned(),
        table: table.to_owned(),
        index: text(fields, "Index Name").to_owned(),
        condition: cut(condition),
    })
}

fn cut(condition: String) -> String {
    match condition.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &condition[..end]),
        None => condition,
    }
}

/// A condition with `…` in the place of each text and number. Quoted names stay.
fn without_literals(condition: &str) -> String {
    let mut out = String::with_capacity(condition.len());
    let mut rest = condition;
    while let Some(first) = rest.chars().next() {
        let quoted = |quote: char| rest[1..].find(quote).map_or(rest.len(), |end| end + 2);
        let is_in_word = out.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '$'));
        let (length, is_literal) = match first {
            '\'' => (quoted('\''), true),
            '"' => (quoted('"'), false),
            '0'..='9' if !is_in_word => {
                let is_of_number = |c: char| c.is_ascii_digit() || c == '.';
                (rest.find(|c| !is_of_number(c)).unwrap_or(rest.len()), true)
            }
            other => (other.len_utf8(), false),
        };
        match is_literal {
            // A quote that is doubled within a text begins it once more.
            true if out.ends_with('…') => {}
            true => out.push('…'),
            false => out.push_str(&rest[..length]),
        }
        rest = &rest[length..];
    }
    out
}

/// A condition without the table's own alias in front of its columns: of each partition it is another one.
fn without_alias(condition: &str, alias: &str) -> String {
    let prefix = format!("{alias}.");
    let mut out = String::with_capacity(condition.len());
    let mut rest = condition;
    while let Some(at) = rest.find(&prefix) {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        if out.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$' | '"')) {
            out.push_str(&prefix);
        }
        rest = &after[prefix.len()..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node(kind: &str, more: Value) -> Value {
        let mut node = json!({ "Node Type": kind, "Schema": "app", "Relation Name": "notes", "Alias": "n" });
        let fields = node.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        node
    }

    fn told(plan: Value) -> Vec<(String, String)> {
        whole_reads(&plan).into_iter().map(|read| (read.index, read.condition)).collect()
    }

    fn one(index: &str, condition: &str) -> Vec<(String, String)> {
        vec![(index.to_owned(), condition.to_owned())]
    }

    #[test]
    fn each_kind_of_whole_read_is_told_from_those_by_an_index() {
        let limited = |node: Value| json!([{ "Plan": { "Node Type": "Limit", "Plans": [node] } }]);
        let filter = json!({ "Index Name": "i", "Filter": "(n.key = ANY ('{dc-0}'::text[]))" });
        let by_filter = one("i", "(key = ANY (…::text[]))");
        assert_eq!(
            told(limited(node("Seq Scan", json!({ "Filter": "(NOT n.done)" })))),
            one("", "(NOT done)")
        );
        assert_eq!(told(limited(node("Seq Scan", json!({})))), one("", ""));
        assert_eq!(told(limited(node("Index Scan", filter.clone()))), by_filter);
        assert_eq!(told(limited(node("Index Only Scan", filter.clone()))), by_filter);
        assert_eq!(told(limited(node("Index Scan", json!({ "Index Name": "i" })))), []);
        let searched = json!({ "Index Cond": "(n.id > 1)", "Filter": "(NOT n.done)" });
        assert_eq!(told(limited(node("Index Scan", searched.clone()))), []);
        let bitmap = |index: Value| {
            let mut leaf = json!({ "Node Type": "Bitmap Index Scan", "Index Name": "i" });
            leaf.as_object_mut().unwrap().extend(index.as_object().unwrap().clone());
            let or = json!({ "Node Type": "BitmapOr", "Plans": [leaf] });
            node("Bitmap Heap Scan", json!({ "Filter": "(NOT n.done)", "Plans": [or] }))
        };
        assert_eq!(told(bitmap(json!({}))), one("i", "(NOT done)"));
        assert_eq!(told(bitmap(json!({ "Index Cond": "(n.id > 1)" }))), []);
        assert_eq!(told(json!({ "Node Type": "Function Scan", "Alias": "k", "Filter": "(k.k > 1)" })), []);
    }

    #[test]
    fn a_read_without_a_condition_of_its_own_has_that_of_its_join() {
        let scan = || node("Seq Scan", json!({}));
        assert_eq!(
            told(json!({ "Hash Cond": "(m.id = n.of)", "Plans": [scan()] })),
            one("", "(m.id = n.of)")
        );
        let by_index = || node("Index Scan", json!({ "Index Name": "i" }));
        assert_eq!(
            told(json!({ "Merge Cond": "(m.id = n.of)", "Plans": [by_index()] })),
            one("i", "(m.id = n.of)")
        );
        assert_eq!(told(json!({ "Hash Cond": "(m.id = n.of)", "Plans": [by_index()] })), []);
    }

    #[test]
    fn literals_and_the_own_alias_are_left_out() {
        for (condition, expected) in [
            ("(n.name = 'it''s n.x'::text)", "(name = …::text)"),
            ("((n.\"o'Key 1\" > 12.5) AND (n.c2 < 3))", "((\"o'Key 1\" > …) AND (c2 < …))"),
            ("(an.x = n.y)", "(an.x = y)"),
            ("(app.n.x = $1)", "(app.n.x = $1)"),
        ] {
            assert_eq!(without_alias(&without_literals(condition), "n"), expected);
        }
        assert_eq!(cut("ä".repeat(LONGEST + 1)).chars().count(), LONGEST + 1);
    }
}
