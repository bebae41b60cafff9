//! A configuration as a tree that knows where each key and value stands.
//!
//! It is built from the parser's events, because only there a scalar still has its text as it was written: `1.10` stays
//! `1.10`, and `${PORT}` can become a number after the variable was put in.

use granit_parser::{ErrorKind, Event, Options, Parser, ScalarStyle, Span as Source, StrInput};
use std::collections::{BTreeMap, BTreeSet};

/// Limits on a configuration. Whatever is beyond them is refused before it can cost much.
pub const MAX_BYTES: usize = 4 << 20;
const MAX_DEPTH: usize = 24;
const MAX_NODES: usize = 150_000;
/// Of all scalars together, aliases expanded.
const MAX_TEXT: usize = 8 << 20;
/// Of one scalar.
pub(super) const MAX_SCALAR: usize = 64 << 10;

/// A place in the file. Both count from 1; columns are characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// A value and where it starts.
#[derive(Clone)]
pub struct Node {
    /// Where it starts.
    pub mark: Mark,
    /// What it is.
    pub content: Content,
}

/// What a node is. It has no `Debug`: a scalar may be a secret.
#[derive(Clone)]
pub enum Content {
    /// Text.
    Scalar(Scalar),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping, in the file's order, each key once.
    Map(Vec<(Key, Node)>),
}

/// A key of a mapping.
#[derive(Clone)]
pub struct Key {
    /// Its text.
    pub text: String,
    /// Where it starts.
    pub mark: Mark,
}

/// Text that stands for a value.
#[derive(Clone)]
pub struct Scalar {
    /// As it is written.
    pub written: String,
    /// After variables were put in.
    pub text: String,
    /// Whether it stands without quotes, so that it may be a number.
    pub plain: bool,
    /// Whether a variable was put in.
    pub interpolated: bool,
}

impl Scalar {
    /// Whether a variable in it could not be resolved.
    pub fn is_unresolved(&self) -> bool {
        self.interpolated && self.text == self.written
    }
}

/// A complaint about the document itself.
pub struct Complaint {
    /// Where.
    pub mark: Mark,
    /// What.
    pub message: String,
    /// What to do.
    pub hint: &'static str,
}

/// Parses one document. Complaints that leave a usable tree come with it; the others come alone.
pub fn parse(text: &str) -> (Option<Node>, Vec<Complaint>) {
    let mut options = Options::default();
    options.disallow_directives = true;
    options.emit_comments = false;
    // The parser's own limits are a second fence: they hold before an event reaches the builder.
    options.flow_nesting_limit = MAX_DEPTH * 2;
    options.block_nesting_limit = MAX_DEPTH * 2;
    let mut builder = Builder {
        parser: Parser::new_from_str_with_options(text, options),
        nodes: 0,
        text: 0,
        anchors: BTreeMap::new(),
        open: BTreeSet::new(),
        complaints: Vec::new(),
    };
    match builder.document() {
        Ok(root) => (Some(root), builder.complaints),
        Err(fatal) => {
            builder.complaints.push(fatal);
            (None, builder.complaints)
        }
    }
}

struct Builder<'a> {
    parser: Parser<'a, StrInput<'a>>,
    nodes: usize,
    text: usize,
    anchors: BTreeMap<usize, Node>,
    open: BTreeSet<usize>,
    complaints: Vec<Complaint>,
}

type Step<T> = Result<T, Complaint>;

impl<'a> Builder<'a> {
    fn next(&mut self) -> Step<(Event<'a>, Mark)> {
        match self.parser.next_event() {
            Some(Ok((event, source))) => Ok((event, mark(&source))),
            Some(Err(error)) => {
                let at = error.marker();
                let mark = Mark { line: count(at.line()), column: count(at.col() + 1) };
                if matches!(error.kind(), ErrorKind::RecursionLimitExceeded) {
                    return Err(too_deep(mark));
                }
                Err(Complaint {
                    mark,
                    message: format!("this is not YAML: {}", error.info()),
                    hint: "check the indentation, the quotes and the brackets just before this place",
                })
            }
            None => Err(fatal(Mark { line: 1, column: 1 }, "the document ends too early", "complete it")),
        }
    }

    fn document(&mut self) -> Step<Node> {
        loop {
            let (event, at) = self.next()?;
            match event {
                Event::StreamStart | Event::DocumentStart(..) => {}
                Event::StreamEnd | Event::DocumentEnd => {
                    return Err(fatal(at, "the file has no content", "start from config/minimal.yaml"));
                }
                event => {
                    let root = self.node(event, at, 0)?;
                    return self.end().map(|()| root);
                }
            }
        }
    }

    fn end(&mut self) -> Step<()> {
        loop {
            let (event, at) = self.next()?;
            match event {
                Event::StreamEnd => return Ok(()),
                Event::DocumentEnd => {}
                _ => return Err(fatal(at, "a second document starts here", "write one document in a file")),
            }
        }
    }

    fn node(&mut self, event: Event<'a>, at: Mark, depth: usize) -> Step<Node> {
        if depth > MAX_DEPTH {
            return Err(too_deep(at));
        }
        if event.tag().is_some() {
            self.complain(at, "a YAML tag is not read here".into(), "remove the `!` word");
        }
        let anchor = event.anchor_id();
        self.open.extend(anchor);
        let node = match event {
            Event::Alias(id) => return self.alias(id, at),
            Event::Scalar(text, style, ..) => {
                self.spend(at, 1, text.len())?;
                let text = text.into_owned();
                let scalar = Scalar {
                    written: text.clone(),
                    text,
                    plain: style == ScalarStyle::Plain,
                    interpolated: false,
                };
                Node { mark: at, content: Content::Scalar(scalar) }
            }
            Event::SequenceStart(..) => {
                self.spend(at, 1, 0)?;
                let mut items = Vec::new();
                loop {
                    let (event, at) = self.next()?;
                    if event == Event::SequenceEnd {
                        break;
                    }
                    items.push(self.node(event, at, depth + 1)?);
                }
                Node { mark: at, content: Content::List(items) }
            }
            Event::MappingStart(..) => {
                self.spend(at, 1, 0)?;
                Node { mark: at, content: Content::Map(self.entries(depth)?) }
            }
            _ => return Err(fatal(at, "a value is missing", "complete the document")),
        };
        if let Some(id) = anchor {
            self.open.remove(&id);
            let (nodes, text) = size(&node);
            self.spend(at, nodes, text)?;
            self.anchors.insert(id, node.clone());
        }
        Ok(node)
    }

    fn entries(&mut self, depth: usize) -> Step<Vec<(Key, Node)>> {
        let mut entries: Vec<(Key, Node)> = Vec::new();
        let mut seen: BTreeMap<String, Mark> = BTreeMap::new();
        loop {
            let (event, at) = self.next()?;
            if event == Event::MappingEnd {
                return Ok(entries);
            }
            let key = self.node(event, at, depth + 1)?;
            let (event, value_at) = self.next()?;
            let value = self.node(event, value_at, depth + 1)?;
            let Content::Scalar(scalar) = key.content else {
                self.complain(at, "a key must be text".into(), "write `key: value`");
                continue;
            };
            if let Some(first) = seen.get(&scalar.text) {
                let name = super::fault::shown(&scalar.text);
                let line = first.line;
                self.complain(
                    at,
                    format!("the key {name} stands here twice: first on line {line}"),
                    "keep one of the two",
                );
                continue;
            }
            seen.insert(scalar.text.clone(), at);
            entries.push((Key { text: scalar.text, mark: at }, value));
        }
    }

    fn alias(&mut self, id: usize, at: Mark) -> Step<Node> {
        if self.open.contains(&id) {
            return Err(fatal(at, "this alias stands inside what it names", "name something else"));
        }
        let Some(node) = self.anchors.get(&id).cloned() else {
            return Err(fatal(at, "this alias names nothing", "put `&name` before it in the file"));
        };
        let (nodes, text) = size(&node);
        self.spend(at, nodes, text)?;
        Ok(node)
    }

    fn spend(&mut self, at: Mark, nodes: usize, text: usize) -> Step<()> {
        self.nodes += nodes;
        self.text += text;
        if text > MAX_SCALAR && nodes == 1 {
            let message = format!("a value of {text} bytes; the limit is {MAX_SCALAR}");
            return Err(fatal(at, message, "shorten it"));
        }
        if self.nodes > MAX_NODES || self.text > MAX_TEXT {
            let message =
                format!("more than {MAX_NODES} values or {MAX_TEXT} bytes of text, aliases written out");
            return Err(fatal(at, message, "split the routes over several monitors"));
        }
        Ok(())
    }

    fn complain(&mut self, mark: Mark, message: String, hint: &'static str) {
        self.complaints.push(Complaint { mark, message, hint });
    }
}

fn fatal(mark: Mark, message: impl Into<String>, hint: &'static str) -> Complaint {
    Complaint { mark, message: message.into(), hint }
}

fn too_deep(mark: Mark) -> Complaint {
    fatal(mark, format!("nested deeper than {MAX_DEPTH} levels"), "flatten it")
}

/// The nodes and the bytes of text of a subtree.
fn size(node: &Node) -> (usize, usize) {
    match &node.content {
        Content::Scalar(scalar) => (1, scalar.text.len()),
        Content::List(items) => items.iter().map(size).fold((1, 0), add),
        Content::Map(entries) => {
            entries.iter().map(|(key, node)| add(size(node), (0, key.text.len()))).fold((1, 0), add)
        }
    }
}

fn add(a: (usize, usize), b: (usize, usize)) -> (usize, usize) {
    (a.0 + b.0, a.1 + b.1)
}

fn mark(source: &Source) -> Mark {
    Mark { line: count(source.start.line()), column: count(source.start.col() + 1) }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
