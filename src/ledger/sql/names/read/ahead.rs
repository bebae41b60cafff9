//! Looking at the next pieces, and taking them.

use super::{
    super::token::{Token, is_reserved},
    Reader,
};

impl Reader<'_> {
    pub(super) fn token(&self, ahead: usize) -> Option<&Token> {
        self.tokens.get(self.at + ahead)
    }

    /// The word at this place, in lower case: keywords are the same in any.
    pub(super) fn word(&self, ahead: usize) -> Option<String> {
        match self.token(ahead) {
            Some(Token::Word(word)) => Some(word.to_ascii_lowercase()),
            _ => None,
        }
    }

    pub(super) fn is_word(&self, ahead: usize, word: &str) -> bool {
        matches!(self.token(ahead), Some(Token::Word(found)) if found.eq_ignore_ascii_case(word))
    }

    pub(super) fn is_sign(&self, ahead: usize, sign: char) -> bool {
        self.token(ahead) == Some(&Token::Sign(sign))
    }

    pub(super) fn eat(&mut self, word: &str) -> bool {
        let is_there = self.is_word(0, word);
        self.at += usize::from(is_there);
        is_there
    }

    pub(super) fn eat_sign(&mut self, sign: char) -> bool {
        let is_there = self.is_sign(0, sign);
        self.at += usize::from(is_there);
        is_there
    }

    /// The name at this place, whether quoted or not.
    pub(super) fn name(&self, ahead: usize) -> Option<String> {
        match self.token(ahead) {
            Some(Token::Word(name) | Token::Name(name)) => Some(name.clone()),
            _ => None,
        }
    }

    /// A name that is no keyword.
    pub(super) fn plain_name(&self, ahead: usize) -> Option<String> {
        let is_reserved = self.word(ahead).is_some_and(|word| is_reserved(&word));
        if is_reserved { None } else { self.name(ahead) }
    }

    /// Whether a select begins behind the bracket at this place, maybe in brackets of its own.
    pub(super) fn opens_query(&self) -> bool {
        let mut ahead = 0;
        while self.is_sign(ahead, '(') {
            ahead += 1;
        }
        let begins = ["select", "with", "values", "table"];
        ahead > 0 && self.word(ahead).is_some_and(|word| begins.contains(&word.as_str()))
    }

    pub(super) fn names_in_brackets(&mut self) -> Vec<String> {
        let mut names = Vec::new();
        if self.eat_sign('(') {
            while self.at < self.tokens.len() && !self.eat_sign(')') {
                names.extend(self.name(0));
                self.at += 1;
            }
        }
        names
    }
}
