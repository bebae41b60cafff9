//! Variables of the environment, put into scalars after parsing, so that no value can change the document's structure.
//!
//! `${NAME}` must be set; `${NAME:-default}` takes the default when it is unset or empty; `$${` is a literal `${`.

use super::tree::{Content, MAX_SCALAR, Mark, Node, Scalar};

/// The environment, by name.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A reference that can't be resolved.
pub struct Unresolved {
    /// The scalar it stands in.
    pub mark: Mark,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with a reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The environment has no such variable.
    NotSet(String),
    /// It is none.
    NoReference,
    /// What it came to is too long.
    TooLong,
}

impl Problem {
    /// What to say of it.
    pub fn message(&self) -> String {
        match self {
            Self::NotSet(name) => format!("the environment has no variable `{name}`"),
            Self::NoReference => "`${` does not start a reference to a variable".into(),
            Self::TooLong => format!("with its variables this is longer than {MAX_SCALAR} bytes"),
        }
    }

    /// What to do. In a secret's place no default is proposed: it would stand in the file, for all who read that.
    pub fn hint(&self, in_secret: bool) -> String {
        match self {
            Self::NotSet(name) if in_secret => {
                format!(
                    "set `{name}` for this command as for `serve`, or write `{{ file: PATH }}` for a secret in a file"
                )
            }
            Self::NotSet(name) => format!("set it, or give a default: `${{{name}:-default}}`"),
            Self::NoReference if in_secret => "write `${NAME}`, or `$${` for a literal `${`".into(),
            Self::NoReference => "write `${NAME}` or `${NAME:-default}`, or `$${` for a literal `${`".into(),
            Self::TooLong => "shorten the variables' values".into(),
        }
    }
}

/// Puts the variables into every scalar of the tree. What can't be resolved stays as it is written.
pub fn interpolate(node: &mut Node, env: Environment<'_>, unresolved: &mut Vec<Unresolved>) {
    match &mut node.content {
        Content::Scalar(scalar) => {
            if let Err(problems) = fill(scalar, env) {
                let mark = node.mark;
                unresolved.extend(problems.into_iter().map(|problem| Unresolved { mark, problem }));
            }
        }
        Content::List(items) => items.iter_mut().for_each(|item| interpolate(item, env, unresolved)),
        Content::Map(entries) => {
            entries.iter_mut().for_each(|(_, value)| interpolate(value, env, unresolved));
        }
    }
}

fn fill(scalar: &mut Scalar, env: Environment<'_>) -> Result<(), Vec<Problem>> {
    if !scalar.written.contains("${") {
        return Ok(());
    }
    // Also when it fails: what stands there is not the value, so its type is not judged.
    scalar.interpolated = true;
    scalar.text = expand(&scalar.written, env)?;
    if scalar.text.len() > MAX_SCALAR {
        return Err(vec![Problem::TooLong]);
    }
    Ok(())
}

/// Expands one text.
///
/// # Errors
/// All references that can't be resolved.
pub fn expand(written: &str, env: Environment<'_>) -> Result<String, Vec<Problem>> {
    let (mut out, mut rest, mut problems) = (String::with_capacity(written.len()), written, Vec::new());
    while let Some(start) = rest.find("${") {
        if rest[..start].ends_with('$') {
            out.push_str(&rest[..start - 1]);
            out.push_str("${");
            rest = &rest[start + 2..];
            continue;
        }
        out.push_str(&rest[..start]);
        let inside = &rest[start + 2..];
        match reference(inside) {
            Some((name, default, length)) => {
                let value = env(name);
                match (value, default) {
                    (Some(value), None) => out.push_str(&value),
                    (Some(value), Some(_)) if !value.is_empty() => out.push_str(&value),
                    (_, Some(default)) => out.push_str(default),
                    (None, None) => problems.push(Problem::NotSet(name.to_owned())),
                }
                rest = &inside[length..];
            }
            None => {
                problems.push(Problem::NoReference);
                rest = inside;
            }
        }
    }
    out.push_str(rest);
    if problems.is_empty() { Ok(out) } else { Err(problems) }
}

/// Whether a text is one reference without a default, and so holds no value of its own.
pub fn is_bare_reference(written: &str) -> bool {
    written
        .strip_prefix("${")
        .and_then(reference)
        .is_some_and(|(_, default, length)| default.is_none() && length == written.len() - 2)
}

/// The name, the default and the length up to and with the closing brace.
fn reference(inside: &str) -> Option<(&str, Option<&str>, usize)> {
    let end = inside.find('}')?;
    let (name, default) = match inside[..end].split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (&inside[..end], None),
    };
    let first = name.bytes().next()?;
    let sound = (first.is_ascii_alphabetic() || first == b'_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    sound.then_some((name, default, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(name: &str) -> Option<String> {
        match name {
            "A" => Some("one".into()),
            "EMPTY" => Some(String::new()),
            "TRICK" => Some("x: ${A}\n- y".into()),
            _ => None,
        }
    }

    #[test]
    fn references_are_replaced_once_and_escapes_are_kept() {
        let of = |text: &str| expand(text, &env).map_err(|p| p.len());
        assert_eq!(of("a ${A} b ${A}"), Ok("a one b one".into()));
        assert_eq!(of("${NONE:-x y}${EMPTY:-z}[${EMPTY}]"), Ok("x yz[]".into()));
        assert_eq!(of("$${A} $$ $1 ${TRICK}"), Ok("${A} $$ $1 x: ${A}\n- y".into()));
        assert_eq!(of("${NONE} ${A} ${} ${1} ${A"), Err(4));
        assert_eq!(of("é${A}é"), Ok("éoneé".into()));
    }

    #[test]
    fn for_a_secret_no_default_is_proposed() {
        for problem in [Problem::NotSet("TOKEN".into()), Problem::NoReference] {
            assert!(problem.hint(false).contains(":-default}"), "{problem:?}");
            assert!(!problem.hint(true).contains(":-"), "{problem:?}");
        }
        let hint = Problem::NotSet("TOKEN".into()).hint(true);
        assert!(hint.contains("set `TOKEN`") && hint.contains("{ file: PATH }"), "{hint}");
    }

    #[test]
    fn only_a_bare_reference_holds_no_value() {
        assert!(is_bare_reference("${TOKEN}"));
        for text in ["${TOKEN:-secret}", "x${TOKEN}", "${TOKEN}x", "secret", "${", "${A}${B}"] {
            assert!(!is_bare_reference(text), "{text}");
        }
    }
}
