//! How a comparison looks as a table.

use crate::diff::{Diff, DiffRow, Verdict};
use crate::report::Table;
use crate::report::schema::Schema;

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
                let machine = if self.machine_percent.abs() < 1.0 {
                    String::new()
                } else {
                    format!("; all rows together {:+.0} %, taken for the machine", self.machine_percent)
                };
                format!(
                    "{}, of the median step of {before} before and {after} after{machine}",
                    capital(self.measure)
                )
            }
            None => format!("{}, all together (not both traces have steps)", capital(self.measure)),
        };
        let wanted = self.rows.iter().filter(|row| with_noise || row.verdict != Verdict::Noise);
        let limit = if limit == 0 { usize::MAX } else { limit };
        Schema::<DiffRow>::new("rows", title)
            .text("name", "Name", |row| &row.key)
            .help("The operator, function, line, kernel or module.")
            .duration("before", "Before", |row| Some(row.before?.time))
            .help("The time in the first trace: of the median step, or of all where there are no steps.")
            .duration("after", "After", |row| Some(row.after?.time))
            .help("The same in the second trace.")
            .duration("change", "Change", DiffRow::change)
            .help("How much longer the second took.")
            .percent("change_percent", "Change %", DiffRow::percent)
            .help("The change as a share of the time before.")
            .text("verdict", "Verdict", |row| row.verdict.name())
            .help("Whether the change is more than runs of one program differ by.")
            .number("calls_before", "Calls before", |row| Some(row.before?.calls))
            .help("Calls in the first trace: on average in a step, or all of them.")
            .number("calls_after", "Calls after", |row| Some(row.after?.calls))
            .help("The same in the second trace.")
            .table(std::iter::once(&self.total).chain(wanted.take(limit)))
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| format!("{}{}", first.to_uppercase(), letters.as_str()))
}
