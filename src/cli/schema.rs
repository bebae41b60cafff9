//! tmp
/// tmp
pub fn schema() -> anyhow::Result<String> {
    Ok(String::new())
}
/// tmp
pub fn reference() -> anyhow::Result<String> {
    Ok(String::new())
}
