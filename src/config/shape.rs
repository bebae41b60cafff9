//! What may stand where: the JSON schema that is generated from the types, in a form that is easy to walk.
//!
//! The schema is the one source: the walker, the reference and the checked-in `config/schema.json` all come from it.

use schemars::schema_for;
use serde_json::Value;
use std::sync::LazyLock;

/// What may stand at a place.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Anything.
    Any,
    /// Text.
    Text(Form),
    /// A whole number in a range.
    Integer {
        /// The least.
        min: i128,
        /// The greatest.
        max: i128,
    },
    /// A number.
    Number,
    /// `true` or `false`.
    Flag,
    /// A mapping with known keys.
    Record {
        /// The type's name.
        name: String,
        /// What it is.
        help: String,
        /// Its keys.
        fields: Vec<Field>,
    },
    /// A mapping with free keys.
    Table(Box<Self>),
    /// A sequence.
    List {
        /// Each item.
        item: Box<Self>,
        /// The least number of items.
        min: u64,
    },
    /// One of some words, or a mapping with one of some keys.
    Choice {
        /// The type's name.
        name: String,
        /// What it is.
        help: String,
        /// The words.
        words: Vec<Word>,
        /// The keys.
        kinds: Vec<Field>,
    },
    /// Text, or a mapping.
    TextOr(Box<Self>),
    /// A secret.
    Secret,
    /// It, or null.
    Optional(Box<Self>),
}

/// What text must look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Any text.
    Free,
    /// A duration.
    Duration,
    /// An RFC 3339 time.
    Time,
    /// An address and a port.
    Socket,
}

/// One word of a choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The word.
    pub word: String,
    /// What it means.
    pub help: String,
}

/// One key of a record.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The key.
    pub name: String,
    /// What it means.
    pub help: String,
    /// Whether it can't be left out.
    pub required: bool,
    /// What stands when it is left out, where that can be said.
    pub default: Option<Value>,
    /// What may stand there.
    pub shape: Shape,
}

impl Shape {
    /// Whether a secret is what stands here.
    pub fn is_secret(&self) -> bool {
        match self {
            Self::Secret => true,
            Self::Optional(inner) => inner.is_secret(),
            _ => false,
        }
    }

    /// Whether a secret may stand here or below.
    pub fn holds_secret(&self) -> bool {
        match self {
            Self::Secret => true,
            Self::Record { fields, .. } | Self::Choice { kinds: fields, .. } => {
                fields.iter().any(|field| field.shape.holds_secret())
            }
            Self::Table(inner) | Self::TextOr(inner) | Self::Optional(inner) => inner.holds_secret(),
            Self::List { item, .. } => item.holds_secret(),
            Self::Any | Self::Text(_) | Self::Integer { .. } | Self::Number | Self::Flag => false,
        }
    }
}

/// The JSON schema of a configuration.
pub fn schema() -> Value {
    schema_for!(super::Config).to_value()
}

static ROOT: LazyLock<Result<Shape, String>> = LazyLock::new(|| {
    let schema = schema();
    Compiler { root: &schema }.compile(&schema, "Config")
});

/// The shape of a configuration.
///
/// # Errors
/// When the types gave a schema of a form that isn't known here; a test holds that they don't.
pub fn root() -> Result<&'static Shape, &'static str> {
    ROOT.as_ref().map_err(String::as_str)
}

struct Compiler<'a> {
    root: &'a Value,
}

impl Compiler<'_> {
    fn compile(&self, schema: &Value, name: &str) -> Result<Shape, String> {
        if let Some(reference) = schema["$ref"].as_str() {
            let target = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
            let target = target.ok_or_else(|| format!("{name}: `{reference}` leads nowhere"))?;
            return self.compile(target, reference.rsplit('/').next().unwrap_or(name));
        }
        if schema["x-secret"] == true {
            return Ok(Shape::Secret);
        }
        for key in ["oneOf", "anyOf"] {
            if let Some(parts) = schema[key].as_array() {
                return self.alternatives(parts, schema, name);
            }
        }
        if let Some(kinds) = schema["type"].as_array() {
            let mut plain = schema.clone();
            plain["type"] = kinds.iter().find(|kind| **kind != "null").cloned().unwrap_or_default();
            return Ok(Shape::Optional(Box::new(self.compile(&plain, name)?)));
        }
        match schema["type"].as_str() {
            None => Ok(Shape::Any),
            Some("boolean") => Ok(Shape::Flag),
            Some("number") => Ok(Shape::Number),
            Some("integer") => Ok(integer(schema)),
            Some("string") => Ok(text(schema, name)),
            Some("array") => Ok(Shape::List {
                item: Box::new(self.compile(&schema["items"], name)?),
                min: schema["minItems"].as_u64().unwrap_or(0),
            }),
            Some("object") => self.object(schema, name),
            Some(other) => Err(format!("{name}: the type `{other}`")),
        }
    }

    fn object(&self, schema: &Value, name: &str) -> Result<Shape, String> {
        if schema["additionalProperties"].is_object() {
            return Ok(Shape::Table(Box::new(self.compile(&schema["additionalProperties"], name)?)));
        }
        Ok(Shape::Record { name: name.into(), help: help(schema), fields: self.fields(schema)? })
    }

    fn fields(&self, schema: &Value) -> Result<Vec<Field>, String> {
        let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
        schema["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, property)| {
                Ok(Field {
                    name: name.clone(),
                    help: help(property),
                    required: required.iter().any(|word| word == name),
                    default: property.get("default").cloned(),
                    shape: self.compile(property, name)?,
                })
            })
            .collect()
    }

    fn alternatives(&self, parts: &[Value], schema: &Value, name: &str) -> Result<Shape, String> {
        if let Some(place) = parts.iter().position(|part| part["type"] == "null") {
            let rest: Vec<&Value> =
                parts.iter().enumerate().filter(|(n, _)| *n != place).map(|p| p.1).collect();
            let [only] = rest[..] else { return Err(format!("{name}: several kinds or null")) };
            return Ok(Shape::Optional(Box::new(self.compile(only, name)?)));
        }
        let (mut words, mut kinds, mut untagged) = (Vec::new(), Vec::new(), Vec::new());
        for part in parts {
            let single = part["required"].as_array().is_some_and(|r| r.len() == 1);
            if let Some(word) = part["const"].as_str() {
                words.push(Word { word: word.into(), help: help(part) });
            } else if let Some(several) = part["enum"].as_array() {
                words.extend(several.iter().filter_map(Value::as_str).map(plain_word));
            } else if single && part["properties"].as_object().is_some_and(|p| p.len() == 1) {
                let kind_help = help(part);
                kinds.extend(self.fields(part)?.into_iter().map(|f| Field { help: kind_help.clone(), ..f }));
            } else {
                untagged.push(self.compile(part, name)?);
            }
        }
        match (&untagged[..], words.is_empty() && kinds.is_empty()) {
            ([], false) => Ok(Shape::Choice { name: name.into(), help: help(schema), words, kinds }),
            ([Shape::Text(Form::Free), record @ Shape::Record { .. }], true) => {
                Ok(Shape::TextOr(Box::new(record.clone())))
            }
            _ => Err(format!("{name}: a mix of alternatives")),
        }
    }
}

fn text(schema: &Value, name: &str) -> Shape {
    if let Some(words) = schema["enum"].as_array() {
        let words = words.iter().filter_map(Value::as_str).map(plain_word).collect();
        return Shape::Choice { name: name.into(), help: help(schema), words, kinds: Vec::new() };
    }
    Shape::Text(match (schema["format"].as_str(), name) {
        (_, "Duration") => Form::Duration,
        (Some("date-time"), _) => Form::Time,
        (Some("socket-address"), _) => Form::Socket,
        _ => Form::Free,
    })
}

fn integer(schema: &Value) -> Shape {
    let top = match schema["format"].as_str() {
        Some("uint16") => i128::from(u16::MAX),
        Some("uint32") => i128::from(u32::MAX),
        _ => i128::from(i64::MAX),
    };
    let bound = |key: &str| schema[key].as_i64().map(i128::from);
    Shape::Integer {
        min: bound("minimum").unwrap_or(i128::from(i64::MIN)),
        max: bound("maximum").map_or(top, |max| max.min(top)),
    }
}

fn help(schema: &Value) -> String {
    schema["description"].as_str().unwrap_or_default().replace('\n', " ")
}

fn plain_word(word: impl AsRef<str>) -> Word {
    Word { word: word.as_ref().into(), help: String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_of_the_configuration_has_a_known_shape() {
        let shape = root().unwrap_or_else(|e| panic!("{e}"));
        assert!(shape.holds_secret());
        let Shape::Record { fields, .. } = shape else { panic!("not a record") };
        let listeners = fields.iter().find(|f| f.name == "listeners").expect("it has listeners");
        let Shape::Record { fields, .. } = &listeners.shape else { panic!("not a record") };
        assert!(fields.iter().all(|f| f.shape == Shape::Text(Form::Socket)));
    }

    /// All keys below a shape that can't be left out, with what is said when they are missing.
    fn required(shape: &Shape, found: &mut Vec<(String, String)>) {
        match shape {
            Shape::Record { name, fields, .. } => {
                for field in fields {
                    if field.required {
                        found.push((format!("{name}.{}", field.name), field.help.clone()));
                    }
                    required(&field.shape, found);
                }
            }
            Shape::Choice { kinds, .. } => kinds.iter().for_each(|kind| required(&kind.shape, found)),
            Shape::Table(inner) | Shape::TextOr(inner) | Shape::Optional(inner) => required(inner, found),
            Shape::List { item, .. } => required(item, found),
            _ => {}
        }
    }

    #[test]
    fn each_key_that_is_missing_is_explained_with_an_example() {
        let mut found = Vec::new();
        required(root().unwrap_or_else(|e| panic!("{e}")), &mut found);
        assert!(found.len() > 40, "{} keys", found.len());
        for (key, help) in found {
            assert!(help.contains("such as `") || help.contains("as in `"), "`{key}` has no example: {help}");
        }
    }
}
