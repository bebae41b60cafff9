//! What comes before all ids of a stream.

use super::PostgresReader;
use crate::{
    clock,
    ledger::{
        LedgerError,
        binds::{Binds, Prepared, locate},
        cell::{Cell, Misfit},
        position::Value,
        wanted::Field,
    },
};
use sqlx::{Column, Row};
use uuid::Uuid;

/// The least value of the column's type. The query is asked for what comes behind NULL, which is nothing, and only its types are read.
pub async fn least_id(
    postgres: &PostgresReader,
    prepared: &Prepared,
    id: Field,
) -> Result<Value, LedgerError> {
    let sql = format!(
        "select w.* from (select 1) as one left join ({}\n) as w on true limit 1",
        prepared.query.sql
    );
    let values = Binds::default().in_order(prepared, clock::now());
    let rows = postgres.fetch(prepared.name, sql, values).await?;
    let name = prepared.wanted.name(id);
    let none = |what: &str| {
        let problem = format!("{what} can't be a cursor's id: give a uuid, a whole number or text");
        LedgerError::misfit(prepared.name, Misfit::new(name, problem))
    };
    let Some(row) = rows.first() else { return Err(none("what the query gives")) };
    let present: Vec<&str> = row.columns().iter().map(Column::name).collect();
    let place = locate(prepared, &present)?[id.0];
    match super::sample(row.column(place).type_info()) {
        Cell::Uuid(_) => Ok(Value::Uuid(Uuid::nil())),
        Cell::Int(_) | Cell::Decimal(_) => Ok(Value::Int(i64::MIN)),
        Cell::Text(_) => Ok(Value::Text("".into())),
        other => Err(none(other.type_name())),
    }
}
