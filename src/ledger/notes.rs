//! What was odd in a reading: counted, and told once.

use std::collections::BTreeSet;

/// The most unmapped words that one reading remembers.
const MOST_WORDS: usize = 16;

/// What was odd in a reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Statuses that are not in the table.
    pub unmapped_statuses: u64,
    /// Times that were missing or absurd.
    pub refused_times: u64,
    /// Some of the unmapped statuses.
    pub words: BTreeSet<String>,
}

impl Notes {
    /// Notes a status that isn't in the table.
    pub fn unmapped(&mut self, word: String) {
        self.unmapped_statuses += 1;
        if self.words.len() < MOST_WORDS {
            self.words.insert(word);
        }
    }
}

/// The longest word that is shown, in characters.
const LONGEST_SHOWN: usize = 40;

/// A word of the ledger's for people: escaped and bounded, and hidden where it may name a person.
pub fn shown(word: &str) -> String {
    let digits = word.chars().filter(char::is_ascii_digit).count();
    if word.contains('@') || digits > 6 {
        return format!("[{} characters, hidden: it looks like an address]", word.chars().count());
    }
    let mut shown: String = word.chars().take(LONGEST_SHOWN).flat_map(char::escape_debug).collect();
    if word.chars().nth(LONGEST_SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_shown_escaped_bounded_and_without_addresses() {
        assert_eq!(shown("DLVD"), "DLVD");
        assert_eq!(shown("a\nb\u{1b}[31m"), "a\\nb\\u{1b}[31m");
        assert_eq!(shown(&"x".repeat(41)), format!("{}…", "x".repeat(40)));
        for hidden in ["sent to a@b.example", "+49 170 1234567"] {
            assert!(shown(hidden).contains("hidden"), "{hidden}");
        }
    }

    #[test]
    fn words_are_bounded_and_counts_are_not() {
        let mut notes = Notes::default();
        (0..1_000).for_each(|n| notes.unmapped(n.to_string()));
        assert_eq!((notes.unmapped_statuses, notes.words.len()), (1_000, MOST_WORDS));
    }
}
