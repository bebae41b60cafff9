use super::*;
use proptest::prelude::*;

const ALL: [Parameter; 10] = Parameter::ALL;

fn postgres(text: &str) -> Query {
    parse(text, Dialect::Postgres, &ALL).unwrap()
}

fn sqlite(text: &str) -> Query {
    parse(text, Dialect::Sqlite, &ALL).unwrap()
}

#[test]
fn parameters_become_numbers_each_once() {
    let query =
        postgres("select 1 where id = any(:ids) or key = any(:keys) or x = any(:ids) limit :limit;\n-- end");
    assert_eq!(query.sql, "select 1 where id = any($1) or key = any($2) or x = any($1) limit $3");
    assert_eq!(query.parameters, [Parameter::Ids, Parameter::Keys, Parameter::Limit]);
    assert_eq!(sqlite("select :now, :ids, :now").sql, "select ?1, ?2, ?1");
}

#[test]
fn casts_and_what_looks_like_a_parameter_stay() {
    for text in [
        "select ':ids', \":ids\", a::text, 'it''s :ids', \"a\"\":ids\" -- :nope",
        "select /* :nope /* nested :nope */ :nope */ 1",
        "select $$ :nope $$, $tag$ $$ :nope; $tag$",
        "select E'\\' :nope', e'\\\\', b, U&'\\0061:nope'",
        "select arr[1:2], a ? 'b', a -> 'b' #> '{c}' @> '{}'",
        "select a$b$, x from t",
        "select 'ünï :nope', \"größe\", größe from t",
        "(select 1) union (select 2)",
        "/* a */ -- b\n ( select 1)",
        "WITH a AS (SELECT 1) TABLE a",
    ] {
        let query = postgres(text);
        assert_eq!((query.sql.as_str(), query.parameters.len()), (text, 0));
    }
    for text in ["select `:nope`, [a :nope]", "select /* /* :nope */ 1", "select 'E\\', e'\\' from t"] {
        assert_eq!(sqlite(text).sql, text);
    }
}

#[test]
fn list_types_are_read_off_casts() {
    for (cast, expected) in [
        ("::uuid[]", Some(ListType::Uuid)),
        (" :: UUID []", Some(ListType::Uuid)),
        ("::bigint[]", Some(ListType::Integer(8))),
        ("::int[]", Some(ListType::Integer(4))),
        ("::smallint[]", Some(ListType::Integer(2))),
        ("::text[]", None),
        ("::uuid", None),
        ("", None),
    ] {
        let query = postgres(&format!("select 1 where id = any(:ids{cast})"));
        assert_eq!(query.list_types.get(&Parameter::Ids).copied(), expected, "{cast}");
        assert_eq!(query.sql, format!("select 1 where id = any($1{cast})"));
    }
}

#[test]
fn what_cannot_be_used_is_refused_with_its_place() {
    for (dialect, text, line, column, word) in [
        (Dialect::Postgres, "select\n  :idz", 2, 3, ":idz"),
        (Dialect::Postgres, "select $1", 1, 8, "`$`"),
        (Dialect::Sqlite, "select ?", 1, 8, "`?`"),
        (Dialect::Sqlite, "select @ids", 1, 8, "`@`"),
        (Dialect::Sqlite, "select $ids", 1, 8, "`$`"),
        (Dialect::Postgres, "select 1; select 2", 1, 9, "one statement"),
        (Dialect::Postgres, "delete from t returning id", 1, 1, "must read"),
        (Dialect::Postgres, "-- a\n update t set a = 1", 2, 2, "must read"),
        (Dialect::Postgres, "begin", 1, 1, "must read"),
        (Dialect::Sqlite, "pragma query_only = off", 1, 1, "must read"),
        (Dialect::Postgres, "", 1, 1, "must read"),
        (Dialect::Postgres, "select 'a", 1, 8, "no end"),
        (Dialect::Postgres, "select \"a", 1, 8, "no end"),
        (Dialect::Postgres, "select $a$ $$", 1, 8, "no end"),
        (Dialect::Postgres, "select 1 /* /* */", 1, 10, "no end"),
        (Dialect::Postgres, "select 'ü' :x", 1, 12, ":x"),
        (Dialect::Postgres, "select \0", 1, 8, "NUL"),
    ] {
        let fault = parse(text, dialect, &ALL).unwrap_err();
        assert_eq!((fault.line, fault.column), (line, column), "{text}: {fault}");
        assert!(fault.problem.contains(word), "{text}: {fault}");
    }
}

#[test]
fn a_parameter_of_another_query_is_refused_with_the_choices() {
    let fault = parse("select :ids", Dialect::Postgres, &[Parameter::Limit, Parameter::Now]).unwrap_err();
    assert_eq!(fault.problem, "the parameter `:ids` is not known here: there are `:limit`, `:now`");
}

fn opaque() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z:;?$]{0,6}".prop_map(|s| format!("'{s}'")),
        "[a-z:;'?$]{0,6}".prop_map(|s| format!("\"{s}\"")),
        "[a-z:;'\"]{0,6}".prop_map(|s| format!("/*{s}*/")),
        "[a-z:;'\"]{0,6}".prop_map(|s| format!("--{s}\n")),
        "[a-z]{1,4}".prop_map(|s| format!("x.{s}::text")),
    ]
}

proptest! {
    #[test]
    fn no_input_panics(text in "\\PC{0,40}", tail in "[\\x00-\\x7f]{0,40}") {
        for dialect in [Dialect::Postgres, Dialect::Sqlite] {
            let _ = parse(&format!("select {text}{tail}"), dialect, &ALL);
        }
    }

    #[test]
    fn a_parameter_between_opaque_parts_is_found_and_nothing_in_them(parts in prop::collection::vec(opaque(), 0..6)) {
        let joined = parts.join(" :limit ");
        for (dialect, mark) in [(Dialect::Postgres, "$1"), (Dialect::Sqlite, "?1")] {
            let query = parse(&format!("select {joined} , 1"), dialect, &ALL).unwrap();
            let expected = format!("select {} , 1", parts.join(&format!(" {mark} ")));
            prop_assert_eq!(&query.sql, &expected);
        }
    }
}

#[test]
fn a_cast_of_a_single_value_is_seen() {
    use Parameter::{AfterId, AfterTs, FromTs, UntilTs};
    let text = "select 1 where (a, b) > (:after_ts :: TIMESTAMP with time zone, :after_id::uuid) and a > :from_ts and b = any(:until_ts::text[])";
    let query = parse(text, Dialect::Postgres, &[AfterTs, AfterId, FromTs, UntilTs]).unwrap();
    let cast = |parameter| query.casts.get(&parameter).map(String::as_str);
    assert_eq!((cast(AfterTs), cast(AfterId), cast(FromTs)), (Some("timestamptz"), Some("uuid"), None));
}
