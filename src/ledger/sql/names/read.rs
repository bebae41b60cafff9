//! Reads the selects of a query off its pieces.

mod ahead;

use super::{
    block::{Block, Blocks, Mention, Origin, Source, TableName},
    token::Token,
};

/// Words that end the part of a select that says what it reads from.
const AFTER_FROM: [&str; 9] =
    ["where", "group", "having", "window", "order", "limit", "offset", "fetch", "for"];

/// Where in a select a piece stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    List,
    From,
    Rest,
}

/// What an open bracket is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bracket {
    Joins,
    Values,
}

/// A `with`: its name, the columns that it gives it, and its blocks.
struct Common {
    name: String,
    columns: Vec<String>,
    blocks: Vec<usize>,
}

/// Reads the selects.
pub fn blocks(tokens: &[Token]) -> Blocks {
    let mut reader = Reader { tokens, at: 0, found: Blocks::default(), common: Vec::new() };
    while reader.at < tokens.len() {
        reader.query(None);
        // A bracket too many: the database says so itself.
        reader.at += 1;
    }
    reader.found
}

struct Reader<'a> {
    tokens: &'a [Token],
    at: usize,
    found: Blocks,
    common: Vec<Common>,
}

impl Reader<'_> {
    /// Reads up to the closing bracket or the end, and gives the blocks whose rows are the result's.
    fn query(&mut self, parent: Option<usize>) -> Vec<usize> {
        let known = self.common.len();
        if self.eat("with") {
            let is_recursive = self.eat("recursive");
            while let Some(name) = self.name(0) {
                self.at += 1;
                let columns = self.names_in_brackets();
                self.eat("as");
                self.eat("not");
                self.eat("materialized");
                if !self.eat_sign('(') {
                    break;
                }
                let place = self.common.len();
                if is_recursive {
                    self.common.push(Common {
                        name: name.clone(),
                        columns: columns.clone(),
                        blocks: Vec::new(),
                    });
                }
                let blocks = self.query(parent);
                self.eat_sign(')');
                // Inside of itself, unless it is recursive, the name means something else.
                self.common.truncate(place);
                self.common.push(Common { name, columns, blocks });
                if !self.eat_sign(',') {
                    break;
                }
            }
        }
        let mut results = Vec::new();
        loop {
            results.extend(self.block(parent));
            let goes_on = ["union", "intersect", "except"].iter().any(|word| self.eat(word));
            if !goes_on {
                break;
            }
            let _ = self.eat("all") || self.eat("distinct");
        }
        self.common.truncate(known);
        results
    }

    /// Reads one select, up to its end.
    fn block(&mut self, parent: Option<usize>) -> Vec<usize> {
        let place = self.found.blocks.len();
        self.found.blocks.push(Block { parent, ..Block::default() });
        let mut results = vec![place];
        let (mut part, mut open, mut wants_source) = (Part::List, Vec::new(), false);
        let (begun, mut last) = (self.at, None);
        if self.eat("table") {
            self.found.blocks[place].mentions.push(Mention::Star(None));
            (part, wants_source) = (Part::From, true);
        }
        while let Some(token) = self.token(0).cloned() {
            let is_outside = open.is_empty();
            let is_joined = open.iter().all(|bracket| *bracket == Bracket::Joins);
            if let Token::Word(word) = &token {
                let word = word.to_ascii_lowercase();
                if is_outside && ["union", "intersect", "except"].contains(&word.as_str()) {
                    break;
                }
                if is_outside && word == "from" && !self.follows_distinct() {
                    self.output(place, &mut last);
                    (part, wants_source) = (Part::From, true);
                    self.at += 1;
                    continue;
                }
                if is_outside && AFTER_FROM.contains(&word.as_str()) {
                    self.output(place, &mut last);
                    (part, wants_source) = (Part::Rest, false);
                    self.at += 1;
                    continue;
                }
                if part == Part::From && is_joined && matches!(word.as_str(), "join" | "straight_join") {
                    wants_source = true;
                    self.at += 1;
                    continue;
                }
                self.found.has_natural_join |= part == Part::From && word == "natural";
            }
            if wants_source {
                if self.is_sign(0, '(') && !self.opens_query() {
                    open.push(Bracket::Joins);
                    self.at += 1;
                } else {
                    wants_source = false;
                    self.source(place);
                }
                continue;
            }
            match token {
                Token::Sign('(') if self.opens_query() => {
                    let is_all = self.at == begun;
                    self.at += 1;
                    let inner = self.query(Some(place));
                    self.eat_sign(')');
                    // What begins with a bracket is the select in it.
                    if is_all {
                        results.extend(inner);
                    }
                    last = None;
                    continue;
                }
                Token::Sign('(') => open.push(Bracket::Values),
                Token::Sign(')') => {
                    if open.pop().is_none() {
                        break;
                    }
                    last = None;
                }
                Token::Sign(',') if part == Part::From && is_joined => wants_source = true,
                Token::Sign(',') if part == Part::List && is_outside => self.output(place, &mut last),
                Token::Sign('*') if part == Part::List && is_outside && self.begins_column() => {
                    self.found.blocks[place].mentions.push(Mention::Star(None));
                }
                Token::Word(_) | Token::Name(_) => {
                    let named = self.mention(place);
                    if part == Part::List && is_outside {
                        last = named;
                    }
                    continue;
                }
                _ => last = None,
            }
            self.at += 1;
        }
        self.output(place, &mut last);
        results
    }

    fn output(&mut self, place: usize, last: &mut Option<String>) {
        self.found.blocks[place].outputs.extend(last.take());
    }

    /// Whether this `from` belongs to `is distinct from`.
    fn follows_distinct(&self) -> bool {
        let before = |n: usize, word: &str| {
            let token = self.at.checked_sub(n).and_then(|at| self.tokens.get(at));
            matches!(token, Some(Token::Word(found)) if found.eq_ignore_ascii_case(word))
        };
        before(1, "distinct") && (before(2, "is") || before(2, "not"))
    }

    /// Whether a `*` here means all columns: it begins one of the list's columns.
    fn begins_column(&self) -> bool {
        let before = self.at.checked_sub(1).and_then(|at| self.tokens.get(at));
        match before {
            Some(Token::Sign(sign)) => *sign == ',',
            Some(Token::Word(word)) => {
                ["select", "distinct", "all"].iter().any(|known| word.eq_ignore_ascii_case(known))
            }
            _ => false,
        }
    }

    /// Reads one thing that a select reads from, with its alias.
    fn source(&mut self, place: usize) {
        let mut is_lateral = false;
        loop {
            if self.eat("lateral") {
                is_lateral = true;
            } else if !self.eat("only") {
                break;
            }
        }
        let (origin, mut alias, mut columns) = if self.eat_sign('(') {
            let parent = if is_lateral { Some(place) } else { self.found.blocks[place].parent };
            let blocks = self.query(parent);
            self.eat_sign(')');
            (Origin::Blocks(blocks), String::new(), Vec::new())
        } else if let Some(first) = self.name(0) {
            self.at += 1;
            let mut names = vec![first];
            while self.is_sign(0, '.') {
                names.extend(self.name(1));
                self.at += 2;
            }
            let name = names.pop().unwrap_or_default();
            let schema = names.pop();
            if self.is_sign(0, '(') {
                self.found.functions.insert((schema, name.clone()));
                self.values(place);
                if self.is_word(0, "with") && self.is_word(1, "ordinality") {
                    self.at += 2;
                }
                (Origin::Function, name, Vec::new())
            } else {
                let common = self.common.iter().rev().find(|c| schema.is_none() && c.name == name);
                match common {
                    Some(common) => (Origin::Blocks(common.blocks.clone()), name, common.columns.clone()),
                    None => (Origin::Table(TableName { schema, name: name.clone() }), name, Vec::new()),
                }
            }
        } else {
            self.at += 1;
            return;
        };
        self.eat("as");
        if let Some(name) = self.plain_name(0) {
            self.at += 1;
            alias = name;
            let renamed = self.names_in_brackets();
            if !renamed.is_empty() {
                columns = renamed;
            }
        }
        self.found.blocks[place].sources.push(Source { origin, alias, columns });
    }

    /// Reads the values in brackets, such as a function's.
    fn values(&mut self, place: usize) {
        let mut depth = 0usize;
        while let Some(token) = self.token(0).cloned() {
            match token {
                Token::Sign('(') if self.opens_query() => {
                    self.at += 1;
                    self.query(Some(place));
                    self.eat_sign(')');
                    continue;
                }
                Token::Sign('(') => depth += 1,
                Token::Sign(')') => depth = depth.saturating_sub(1),
                Token::Word(_) | Token::Name(_) => {
                    self.mention(place);
                    continue;
                }
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                break;
            }
        }
    }

    /// Reads a name where a value may stand, and gives the name that the value would have in a result.
    fn mention(&mut self, place: usize) -> Option<String> {
        let before = self.at.checked_sub(1).and_then(|at| self.tokens.get(at)).cloned();
        if self.eat("as") {
            // A name for the result, or the type of a cast.
            let name = self.name(0);
            self.at += usize::from(name.is_some());
            self.rest_of_type();
            return name;
        }
        if before == Some(Token::Cast) {
            self.at += 1;
            while self.is_sign(0, '.') {
                self.at += 2;
            }
            self.rest_of_type();
            return None;
        }
        if self.is_word(0, "at") && self.is_word(1, "time") && self.is_word(2, "zone") {
            self.at += 3;
            return None;
        }
        if self.is_word(0, "nulls") && (self.is_word(1, "first") || self.is_word(1, "last")) {
            self.at += 2;
            return None;
        }
        let Some(first) = self.plain_name(0) else {
            self.at += 1;
            return None;
        };
        self.at += 1;
        let mut names = vec![first];
        while self.is_sign(0, '.') {
            if self.is_sign(1, '*') {
                self.at += 2;
                self.found.blocks[place].mentions.push(Mention::Star(names.pop()));
                return None;
            }
            let Some(name) = self.name(1) else { break };
            names.push(name);
            self.at += 2;
        }
        let name = names.pop()?;
        let qualifier = names.pop();
        if self.is_sign(0, '(') {
            self.found.functions.insert((qualifier, name));
            return None;
        }
        // `date '2026-01-01'` and the like.
        if self.token(0) == Some(&Token::Text) && qualifier.is_none() {
            return None;
        }
        self.found.blocks[place].mentions.push(Mention::Column(qualifier, name.clone()));
        Some(name)
    }

    /// What may follow the first word of a type.
    fn rest_of_type(&mut self) {
        let is_zoned = (self.is_word(0, "with") || self.is_word(0, "without"))
            && self.is_word(1, "time")
            && self.is_word(2, "zone");
        if is_zoned {
            self.at += 3;
        } else {
            let _ = self.eat("precision") || self.eat("varying");
        }
    }
}
