//! What comes before all ids of a stream.

use super::{MysqlReader, sample};
use crate::ledger::{
    LedgerError,
    binds::{Prepared, locate},
    cell::{Cell, Misfit},
    position::Value,
    wanted::Field,
};
use sqlx::{Column, TypeInfo};
use uuid::Uuid;

impl MysqlReader {
    /// The least value of the column's type. The query is prepared, and not run.
    ///
    /// # Errors
    /// When the database can't be reached, or no id is of this type.
    pub async fn least_id(&self, prepared: &Prepared, id: Field) -> Result<Value, LedgerError> {
        let columns = self.columns(prepared).await?;
        let present: Vec<&str> = columns.iter().map(Column::name).collect();
        let column = &columns[locate(prepared, &present)?[id.0]];
        match sample(column.type_info()) {
            Cell::Uuid(_) => Ok(Value::Uuid(Uuid::nil())),
            Cell::Int(_) | Cell::Decimal(_) => Ok(Value::Int(i64::MIN)),
            // MariaDB's own uuids come as texts of fixed length, and are compared with nothing that isn't one.
            Cell::Text(_) if matches!(column.type_info().name(), "CHAR" | "BINARY") => {
                Ok(Value::Text(Uuid::nil().to_string().into()))
            }
            Cell::Text(_) => Ok(Value::Text("".into())),
            other => {
                let problem = format!(
                    "{} can't be a cursor's id: give a uuid, a whole number or text",
                    other.type_name()
                );
                Err(LedgerError::misfit(prepared.name, Misfit::new(prepared.wanted.name(id), problem)))
            }
        }
    }
}
