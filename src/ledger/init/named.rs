//! Columns by what they are for: those that were named by hand, and those that could not be placed.

use super::facts::{ColumnFact, Kind, Table};
use std::{collections::BTreeMap, fmt};

/// What a column is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// The id that the service's API answers.
    NotificationId,
    /// The idempotency key.
    IdempotencyKey,
    /// The service's word for the route.
    Route,
    /// The mark of canaries.
    Canary,
    /// When it was accepted.
    AcceptedAt,
    /// Before when nothing goes out.
    NotBefore,
    /// The notification's own status.
    Status,
    /// What says that it is settled.
    Settled,
    /// The destination.
    Destination,
    /// The attempt's id.
    AttemptId,
    /// The notification that an attempt is one of.
    AttemptOf,
    /// What came of an attempt.
    AttemptStatus,
    /// When an attempt began.
    AttemptAt,
    /// When an attempt ended.
    EndedAt,
    /// When the next attempt is planned.
    NextAttempt,
    /// The version of the policy.
    PolicyVersion,
}

impl Role {
    /// All of them: first those of notifications.
    pub const ALL: [Self; 16] = [
        Self::NotificationId,
        Self::IdempotencyKey,
        Self::Route,
        Self::Canary,
        Self::AcceptedAt,
        Self::NotBefore,
        Self::Status,
        Self::Settled,
        Self::Destination,
        Self::AttemptId,
        Self::AttemptOf,
        Self::AttemptStatus,
        Self::AttemptAt,
        Self::EndedAt,
        Self::NextAttempt,
        Self::PolicyVersion,
    ];

    /// Its word, which is that of the configuration where it has one.
    pub const fn word(self) -> &'static str {
        match self {
            Self::NotificationId => "notification_id",
            Self::IdempotencyKey => "idempotency_key",
            Self::Route => "route",
            Self::Canary => "canary",
            Self::AcceptedAt => "accepted_at",
            Self::NotBefore => "not_before",
            Self::Status => "status",
            Self::Settled => "settled",
            Self::Destination => "destination",
            Self::AttemptId => "attempt_id",
            Self::AttemptOf => "attempt_of",
            Self::AttemptStatus => "attempt_status",
            Self::AttemptAt => "attempt_at",
            Self::EndedAt => "ended_at",
            Self::NextAttempt => "next_attempt",
            Self::PolicyVersion => "policy_version",
        }
    }

    /// The role of a word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.word() == word)
    }

    /// Whether it is one of a table of attempts.
    pub fn is_of_attempts(self) -> bool {
        self >= Self::AttemptId
    }

    /// What is missing where nothing has this role.
    const fn what(self) -> &'static str {
        match self {
            Self::NotificationId => {
                "the id that the service's API answers; there is no primary key of one column"
            }
            Self::AcceptedAt => "the time of acceptance, such as `accepted_at` or `created_at`",
            Self::Status => {
                "nothing says where a notification stands; if attempts say it, name their table by --attempts"
            }
            Self::AttemptId => "the attempt's own id; there is no primary key of one column",
            Self::AttemptOf => "the notification that an attempt is one of",
            Self::AttemptStatus => "what came of the attempt, such as `status` or `outcome`",
            Self::AttemptAt => "when the attempt began, such as `started_at`",
            _ => "it can be left out",
        }
    }

    /// Whether a column's type can have this role.
    pub fn fits(self, column: &ColumnFact) -> bool {
        let kind = column.kind;
        match self {
            Self::NotificationId
            | Self::Destination
            | Self::AttemptId
            | Self::AttemptOf
            | Self::PolicyVersion => kind.is_id(),
            Self::IdempotencyKey => matches!(kind, Kind::Text | Kind::Loose),
            Self::Route => kind.is_status() && kind != Kind::Boolean,
            Self::Canary => matches!(kind, Kind::Boolean | Kind::Integer(_)),
            Self::AcceptedAt | Self::NotBefore | Self::AttemptAt => kind.is_time(),
            Self::EndedAt | Self::NextAttempt => kind.is_time() && column.is_nullable,
            Self::Status | Self::AttemptStatus => kind.is_status(),
            Self::Settled => kind == Kind::Boolean || column.is_nullable,
        }
    }
}

impl Role {
    /// Whether a column that fits is likelier than others to have this role; `key` is the kind of the notification's id.
    fn prefers(self, column: &ColumnFact, key: Option<Kind>) -> bool {
        match self {
            Self::AcceptedAt | Self::AttemptAt => {
                matches!(column.kind, Kind::Instant | Kind::Naive | Kind::Loose) && !column.is_nullable
            }
            Self::AttemptOf => Some(column.kind) == key,
            Self::Status | Self::AttemptStatus => !matches!(column.kind, Kind::Integer(8) | Kind::Loose),
            _ => true,
        }
    }

    /// The columns among these that can have this role: the likely ones, where there are such.
    pub fn candidates<'a>(
        self,
        columns: impl Iterator<Item = &'a ColumnFact>,
        key: Option<Kind>,
    ) -> Vec<String> {
        let fit: Vec<&ColumnFact> = columns.filter(|column| self.fits(column)).collect();
        let (likely, others): (Vec<&ColumnFact>, Vec<_>) =
            fit.into_iter().partition(|column| self.prefers(column, key));
        let chosen = if likely.is_empty() { others } else { likely };
        chosen.into_iter().map(|column| column.name.clone()).collect()
    }
}

/// The columns that were named by hand.
pub type Columns = BTreeMap<Role, String>;

/// A column by the name that was given: as it is, with quotes around it, or in another case.
pub fn find<'a>(table: &'a Table, name: &str) -> Option<&'a ColumnFact> {
    let plain = ['"', '`'].iter().find_map(|quote| name.strip_prefix(*quote)?.strip_suffix(*quote));
    let exactly = |name: &str| table.columns.iter().find(|column| column.name == name);
    let loosely =
        |name: &str| table.columns.iter().find(|column| column.name.to_lowercase() == name.to_lowercase());
    let names = [Some(name), plain];
    names.into_iter().flatten().find_map(exactly).or_else(|| names.into_iter().flatten().find_map(loosely))
}

/// A role that no column of its table was found for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unplaced {
    /// The role.
    pub role: Role,
    /// The table.
    pub table: String,
    /// The columns of a type that fits, and that have no other role.
    pub candidates: Vec<String>,
    /// All columns of the table.
    pub columns: String,
}

/// Why nothing is proposed, and what to name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GaveUp {
    /// The table of notifications.
    pub notifications: String,
    /// The table of attempts.
    pub attempts: Option<String>,
    /// What was named wrong.
    pub faults: Vec<String>,
    /// What is needed.
    pub needed: Vec<Unplaced>,
    /// What was not placed either, and can be left out.
    pub optional: Vec<Role>,
}

impl GaveUp {
    /// The options by which what is needed is named; `COLUMN` stands where several could be it, or none by its type.
    pub fn options(&self) -> Vec<String> {
        let named = |unplaced: &Unplaced| {
            let column = match unplaced.candidates.as_slice() {
                [only] => only.as_str(),
                _ => "COLUMN",
            };
            format!("{}={column}", unplaced.role.word())
        };
        self.needed.iter().map(named).collect()
    }
}

impl fmt::Display for GaveUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = self.faults.clone();
        let mut table = "";
        for Unplaced { role, table: of, candidates, columns } in &self.needed {
            if table != of {
                lines.push(format!(
                    "not all that is needed of `{of}` is known by its names; it has: {columns}"
                ));
                table = of;
            }
            let could = if candidates.is_empty() {
                "no column's type fits".to_owned()
            } else {
                format!("by its type it could be: {}", candidates.join(", "))
            };
            lines.push(format!("  {}: {}; {could}", role.word(), role.what()));
        }
        if !self.optional.is_empty() {
            let words: Vec<&str> = self.optional.iter().map(|role| role.word()).collect();
            lines.push(format!("  not placed either, and not needed: {}", words.join(", ")));
        }
        write!(f, "{}", lines.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(names: &[&str]) -> Table {
        let column = |name: &&str| ColumnFact {
            name: (*name).to_owned(),
            kind: Kind::Naive,
            is_nullable: false,
            labels: Vec::new(),
        };
        Table { columns: names.iter().map(column).collect(), ..Table::default() }
    }

    #[test]
    fn a_column_is_found_by_its_name_however_it_is_written() {
        let table = table(&["angelegtAm", "ANGELEGTAM", "größe", "the \"time\""]);
        for (name, found) in [
            ("angelegtAm", Some("angelegtAm")),
            ("ANGELEGTAM", Some("ANGELEGTAM")),
            ("angelegtam", Some("angelegtAm")),
            ("\"angelegtAm\"", Some("angelegtAm")),
            ("`GRÖSSE`", None),
            ("GRÖßE", Some("größe")),
            ("the \"time\"", Some("the \"time\"")),
            ("", None),
        ] {
            assert_eq!(find(&table, name).map(|column| column.name.as_str()), found, "{name}");
        }
    }

    #[test]
    fn each_role_has_its_own_word() {
        for role in Role::ALL {
            assert_eq!(Role::from_word(role.word()), Some(role));
        }
        assert!(!Role::Destination.is_of_attempts() && Role::AttemptId.is_of_attempts());
    }
}
