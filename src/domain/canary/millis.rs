//! Durations in events are whole milliseconds.

use chrono::TimeDelta;
use serde::{Deserialize, Deserializer, Serializer};

pub fn serialize<S: Serializer>(delta: &TimeDelta, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_i64(delta.num_milliseconds())
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TimeDelta, D::Error> {
    let millis = i64::deserialize(deserializer)?;
    TimeDelta::try_milliseconds(millis)
        .ok_or_else(|| serde::de::Error::custom("a duration beyond all bounds"))
}
