//! The columns of the notifications' stream.

use super::{
    ids::UnitFields,
    routes::{RouteField, Routes},
    stream::{Context, Mapped, RowLayout},
};
use crate::{
    config::ledger::NotificationsQuery,
    domain::flow::rows::{NotificationRow, Standing},
    ledger::{
        cell::{Cell, Misfit, mark},
        notes::Notes,
        time::{Form, Horizon, Reading, due, read},
        uses::{Use, Uses},
        wanted::{Field, TimeField, Wanted},
        words::standing,
    },
};

/// Which column is what.
#[derive(Clone, Debug)]
pub struct NotificationsLayout {
    unit: UnitFields,
    key: Option<Field>,
    route: RouteField,
    accepted_at: TimeField,
    not_before: Option<TimeField>,
    status: Option<Field>,
    canary: Option<Field>,
    has_attempts: bool,
}

impl NotificationsLayout {
    /// The layout of this query. `has_attempts` says that there are attempts to ask where the own status says nothing.
    ///
    /// # Errors
    /// When a column is declared in a way that makes no sense.
    pub fn new(
        query: &NotificationsQuery,
        routes: &Routes,
        has_attempts: bool,
        wanted: &mut Wanted,
    ) -> Result<Self, Misfit> {
        let columns = &query.columns;
        let unit = UnitFields {
            notification: wanted.field(&columns.notification_id)?,
            destination: columns.destination.as_ref().map(|c| wanted.field(c)).transpose()?,
        };
        let route = columns.route.as_ref().map(|c| wanted.field(c)).transpose()?;
        Ok(Self {
            unit,
            key: columns.idempotency_key.as_ref().map(|c| wanted.field(c)).transpose()?,
            route: RouteField::new(route, &query.routes, routes),
            accepted_at: wanted.time(&columns.accepted_at)?,
            not_before: columns.not_before.as_ref().map(|c| wanted.time(c)).transpose()?,
            status: columns.status.as_ref().map(|c| wanted.field(c)).transpose()?,
            canary: columns.canary.as_ref().map(|c| wanted.field(c)).transpose()?,
            has_attempts,
        })
    }

    /// How the time of acceptance is written.
    pub fn form(&self) -> Form {
        self.accepted_at.form
    }

    fn own(
        &self,
        cells: &[Cell],
        context: Context<'_>,
        notes: &mut Notes,
    ) -> Result<Option<Standing>, Misfit> {
        let Some(field) = self.status else { return Ok(None) };
        let name = context.prepared.wanted.name(field);
        let own = context.words.own_status(&cells[field.0], name, self.has_attempts, notes)?;
        Ok(own.map(standing))
    }
}

impl RowLayout for NotificationsLayout {
    type Row = NotificationRow;

    fn uses(&self) -> Uses {
        Uses::default()
            .with(self.unit.notification, Use::Id)
            .with(self.unit.destination, Use::Id)
            .with_time(self.accepted_at)
            .with_time(self.not_before)
            .with(self.status, Use::Status)
            .with(self.canary, Use::Mark)
    }

    fn map(
        &self,
        cells: &[Cell],
        context: Context<'_>,
        notes: &mut Notes,
    ) -> Result<Mapped<NotificationRow>, Misfit> {
        let wanted = &context.prepared.wanted;
        let time = |TimeField { field, form }: TimeField, horizon| {
            read(&cells[field.0], form, horizon, context.now, wanted.name(field))
        };
        let accepted_at = time(self.accepted_at, Horizon::Happened)?;
        let not_before =
            self.not_before.map_or(Ok(Reading::Missing), |field| time(field, Horizon::Planned))?;
        let Some(due) = due(accepted_at, not_before) else {
            notes.refused_times += 1;
            return Ok(Mapped::Refused);
        };
        let Some(unit) = self.unit.read(cells, wanted)? else { return Ok(Mapped::Refused) };
        let is_marked_canary = match self.canary {
            None => false,
            Some(field) => mark(&cells[field.0], wanted.name(field))?,
        };
        let has_canary_key = self
            .key
            .is_some_and(|field| matches!(&cells[field.0], Cell::Text(key) if looks_like_a_canary_key(key)));
        Ok(Mapped::Row(NotificationRow {
            unit,
            route: self.route.read(cells),
            due,
            own: self.own(cells, context, notes)?,
            is_marked_canary,
            has_canary_key,
        }))
    }
}

/// Whether a key holds one of the form that canaries are submitted under: `dc-` and 32 hexadecimal digits. A service may keep it with a
/// prefix of its own.
fn looks_like_a_canary_key(key: &str) -> bool {
    let digits =
        |rest: &str| rest.bytes().take_while(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')).count();
    key.match_indices("dc-").any(|(at, head)| digits(&key[at + head.len()..]) == 32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{
        canary::CanaryKind,
        route::{Channel, IdempotencyKey, Location, RouteName},
    };
    use chrono::DateTime;

    #[test]
    fn a_key_of_ours_is_recognised_and_no_other() {
        let (route, location) = (RouteName::new(Channel::Sms, "a"), Location::from_text("here"));
        let key = IdempotencyKey::derive(&route, &location, CanaryKind::Scheduled, DateTime::UNIX_EPOCH);
        for ours in [key.as_str(), &format!("tenant-7:{key}"), &format!("dc-{key}:v2")] {
            assert!(looks_like_a_canary_key(ours), "{ours}");
        }
        for other in ["", "dc-", "dc-1", &key.as_str()[3..], &key.as_str().to_uppercase(), &format!("{key}0")]
        {
            assert!(!looks_like_a_canary_key(other), "{other}");
        }
    }
}
