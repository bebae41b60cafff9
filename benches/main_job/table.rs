//! Tables for the terminal.

/// Prints rows under their heads: the first column to the left, the others to the right.
pub fn print(heads: &[&str], rows: &[Vec<String>]) {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([heads[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let line = |cells: Vec<&str>| {
        let mut text = String::new();
        for (column, (cell, width)) in cells.iter().zip(&widths).enumerate() {
            if column == 0 {
                text += &format!("  {cell:<width$}");
            } else {
                text += &format!("  {cell:>width$}");
            }
        }
        println!("{}", text.trim_end());
    };
    line(heads.to_vec());
    for row in rows {
        line(row.iter().map(String::as_str).collect());
    }
}

/// The value below which this share of the sorted values is.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a place in a list that fits in memory"
    )]
    let place = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(place.clamp(1, sorted.len().max(1)) - 1).copied().unwrap_or(f64::NAN)
}

/// A count as a number to calculate with.
#[allow(clippy::cast_precision_loss, reason = "counts of a bench are far below 2^52")]
pub fn number(count: usize) -> f64 {
    count as f64
}
