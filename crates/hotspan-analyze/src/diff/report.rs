//! How a comparison looks as a table.

use crate::diff::{Diff, DiffRow, Side, Verdict};
use crate::report::{Cell, Column, Table};

impl Diff {
    /// How many rows differ by noise only.
    #[must_use]
    pub fn noise_count(&self) -> usize {
        self.rows.iter().filter(|row| row.verdict == Verdict::Noise).count()
    }

    /// The total, then the rows.
    #[must_use]
    pub fn report(&self, limit: usize, with_noise: bool) -> Table {
        let title = match self.steps {
            Some((before, after)) => {
                format!(
                    "{}, of the middle one of {before} steps before and {after} after",
                    capital(self.measure)
                )
            }
            None => format!("{}, all together (not both traces have steps)", capital(self.measure)),
        };
        let mut table = Table::new(&title);
        let wanted = self.rows.iter().filter(|row| with_noise || row.verdict != Verdict::Noise);
        let limit = if limit == 0 { usize::MAX } else { limit };
        let rows: Vec<&DiffRow> = std::iter::once(&self.total).chain(wanted.take(limit)).collect();
        let rows = || rows.iter().copied();
        let time = |side: Option<Side>| side.map_or(Cell::Missing, |side| Cell::Duration(side.time));
        let calls = |side: Option<Side>| side.map_or(Cell::Missing, |side| Cell::Number(side.calls));
        table.add_column(Column::text("name", "Name"), rows().map(|row| Cell::text(&row.key)));
        table.add_column(Column::duration("before", "Before"), rows().map(|row| time(row.before)));
        table.add_column(Column::duration("after", "After"), rows().map(|row| time(row.after)));
        table
            .add_column(Column::duration("change", "Change"), rows().map(|row| Cell::Duration(row.change())));
        let percent = rows().map(|row| row.percent().map_or(Cell::Missing, Cell::Percent));
        table.add_column(Column::percent("change_percent", "Change %"), percent);
        table
            .add_column(Column::text("verdict", "Verdict"), rows().map(|row| Cell::text(row.verdict.name())));
        table.add_column(Column::number("calls_before", "Calls before"), rows().map(|row| calls(row.before)));
        table.add_column(Column::number("calls_after", "Calls after"), rows().map(|row| calls(row.after)));
        table
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| format!("{}{}", first.to_uppercase(), letters.as_str()))
}
