//! Values that the driver has no type for, as PostgreSQL wants them.

use sqlx::{
    Encode, Postgres, Type,
    encode::IsNull,
    error::BoxDynError,
    postgres::{PgArgumentBuffer, PgTypeInfo, types::Oid},
};

/// NULL of a type that the server finds out by itself.
#[derive(Clone, Copy, Debug)]
pub struct Null;

impl Type<Postgres> for Null {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(Oid(0))
    }
}

impl Encode<'_, Postgres> for Null {
    fn encode_by_ref(&self, _: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        Ok(IsNull::Yes)
    }
}

/// A decimal number, as text.
#[derive(Clone, Debug)]
pub struct Numeric(pub Box<str>);

impl Type<Postgres> for Numeric {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(Oid(1700))
    }
}

impl Encode<'_, Postgres> for Numeric {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        let wire = wire(&self.0).ok_or("this is no decimal number")?;
        buffer.extend_from_slice(&wire);
        Ok(IsNull::No)
    }
}

/// `numeric` on the wire: how many digits to the base of 10,000, the weight of the first, the sign, how many decimals are shown, and
/// the digits.
pub fn wire(text: &str) -> Option<Vec<u8>> {
    let (is_negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.is_empty() || !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let whole = format!("{}{whole}", "0".repeat((4 - whole.len() % 4) % 4));
    let padded = format!("{fraction}{}", "0".repeat((4 - fraction.len() % 4) % 4));
    let group = |group: &[u8]| group.iter().fold(0u16, |sum, digit| sum * 10 + u16::from(digit - b'0'));
    let digits: Vec<u16> = whole.as_bytes().chunks(4).chain(padded.as_bytes().chunks(4)).map(group).collect();
    let leading = digits.iter().take_while(|digit| **digit == 0).count();
    let mut digits = &digits[leading..];
    while let [rest @ .., 0] = digits {
        digits = rest;
    }
    let weight = i16::try_from(whole.len() / 4).ok()? - 1 - i16::try_from(leading).ok()?;
    let weight = if digits.is_empty() { 0 } else { weight };
    let sign: u16 = if is_negative && !digits.is_empty() { 0x4000 } else { 0 };
    let scale = u16::try_from(fraction.len()).ok()?;
    let head = [u16::try_from(digits.len()).ok()?, weight.cast_unsigned(), sign, scale];
    Some(head.iter().chain(digits).flat_map(|word| word.to_be_bytes()).collect())
}
