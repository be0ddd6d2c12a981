//! Reports as a piece of HTML, for cells of a notebook: plain tables in the notebook's own style.

use hotspan_analyze::{Align, Model, Overview, Table, overview};
use hotspan_store::visible;

use super::{advice_text, shown};

/// The report of a trace: its verdict, its tables, what to change and what is missing.
#[must_use]
pub fn report_html(model: &Model) -> String {
    let overview = overview(model);
    let Overview { verdict, advice, missing, .. } = &overview;
    let mut out = "<div class=\"hotspan\">".to_owned();
    if let Some(verdict) = verdict {
        out.push_str(&format!("<p><strong>{}</strong></p>", escape(&verdict.sentence)));
    }
    overview.report().iter().for_each(|table| out.push_str(&render(table)));
    if !advice.findings.is_empty() {
        let text = escape(&advice_text(advice));
        out.push_str(&format!("<h4>What to change</h4><pre>{text}</pre>"));
    }
    if !missing.is_empty() {
        let items: String = missing.iter().map(|text| format!("<li>{}</li>", escape(text))).collect();
        out.push_str(&format!("<h4>What is missing</h4><ul>{items}</ul>"));
    }
    out + "</div>"
}

fn render(table: &Table) -> String {
    let cell = |kind: &str, align: Align, text: &str| {
        let side = if align == Align::Left { "left" } else { "right" };
        format!("<{kind} style=\"text-align: {side}\">{}</{kind}>", escape(text))
    };
    let heads: String = table.columns.iter().map(|column| cell("th", column.align, &column.title)).collect();
    let row = |cells: &Vec<_>| {
        let cells: String = table
            .columns
            .iter()
            .zip(cells)
            .map(|(column, value)| cell("td", column.align, &shown(value)))
            .collect();
        format!("<tr>{cells}</tr>")
    };
    let rows: String = table.rows.iter().map(row).collect();
    let title = escape(&table.title);
    format!("<h4>{title}</h4><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>")
}

/// Names may hold anything.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        for character in visible(line).chars() {
            match character {
                '&' => out.push_str("&amp;"),
                '<' => out.push_str("&lt;"),
                '>' => out.push_str("&gt;"),
                '"' => out.push_str("&quot;"),
                _ => out.push(character),
            }
        }
        out.push_str(end);
    }
    out
}

#[cfg(test)]
mod tests {
    use hotspan_analyze::Schema;

    use super::*;

    #[test]
    fn names_cannot_leave_their_cell() {
        let table = Schema::<(&str, u64)>::new("calls", "Calls & more")
            .text("name", "Name", |row| row.0)
            .count("count", "Calls", |row| row.1)
            .table(&[("<script>\"f\"", 2)]);
        let html = render(&table);
        assert!(html.starts_with("<h4>Calls &amp; more</h4><table>"), "{html}");
        assert!(html.contains(">&lt;script&gt;&quot;f&quot;</td>"), "{html}");
        assert!(html.ends_with("<td style=\"text-align: right\">2</td></tr></tbody></table>"), "{html}");
    }
}
