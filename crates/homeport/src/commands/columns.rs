//! Formats lists as columns for terminals.

/// A header line and one line for each row.
pub(super) fn render<const N: usize>(
    head: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let mut all = vec![head.map(str::to_owned)];
    all.extend(rows);
    let mut widths = [0; N];
    for row in &all {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in &all {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            line.push_str(&format!("{cell:width$}  "));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Replaces control characters, so that a text cannot control the terminal. A missing or empty text is a dash.
pub(super) fn cell(text: Option<&str>) -> String {
    let text = text.filter(|text| !text.is_empty()).unwrap_or("-");
    let chars = text.chars();
    chars
        .map(|char| if char.is_control() { '\u{FFFD}' } else { char })
        .collect()
}
