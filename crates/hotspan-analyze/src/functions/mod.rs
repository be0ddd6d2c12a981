//! Functions: how often each was called, by whom, and what it cost, as pstats counts it.
//!
//! `gather` reads them from calls added up, from spans of Python functions or from samples; `order` sorts and chooses. Adding up several traces and showing files without their folders is done here.

mod gather;
mod order;

use hashbrown::HashMap;
use hotspan_store::{Category, Duration, SpanId, Trace};

pub use order::Restriction;

/// What tells functions apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionName {
    /// Its file; `~` where it has none, as functions of C.
    pub file: String,
    /// The line it begins at; 0 where unknown.
    pub line: u32,
    /// Its name.
    pub name: String,
}

impl FunctionName {
    /// As pstats writes it: `file:line(name)`, and `{name}` for functions of C.
    #[must_use]
    pub fn text(&self) -> String {
        if self.file == "~" && self.line == 0 {
            return match self.name.strip_prefix('<').and_then(|name| name.strip_suffix('>')) {
                Some(name) => format!("{{{name}}}"),
                None => self.name.clone(),
            };
        }
        format!("{}:{}({})", self.file, self.line, self.name)
    }
}

/// Calls added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// All calls: pstats' ncalls.
    pub calls: i64,
    /// Those not made from within the function itself.
    pub primitive: i64,
    /// Time in the function itself: tottime.
    pub own: Duration,
    /// Time in it and what it called: cumtime.
    pub total: Duration,
}

impl Calls {
    /// Adds other calls.
    pub fn add(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.primitive = self.primitive.saturating_add(other.primitive);
        self.own = Duration(self.own.0.saturating_add(other.own.0));
        self.total = Duration(self.total.0.saturating_add(other.total.0));
    }
}

/// One function.
#[derive(Clone, Debug)]
pub struct FunctionRow {
    /// Which.
    pub function: FunctionName,
    /// All its calls.
    pub sums: Calls,
    /// Its calls by caller.
    pub callers: Vec<(FunctionName, Calls)>,
}

/// All functions, in order of appearance until they are sorted.
#[derive(Clone, Debug, Default)]
pub struct Functions {
    rows: Vec<FunctionRow>,
    indices: HashMap<FunctionName, usize>,
    order: String,
}

impl Functions {
    /// The functions of a trace; empty when it knows of none.
    #[must_use]
    pub fn of(trace: &Trace) -> Self {
        gather::gather(trace)
    }

    /// The calls of a function that are spans, where the functions of the trace were read from spans.
    #[must_use]
    pub fn spans_of(trace: &Trace, function: &FunctionName) -> Vec<SpanId> {
        gather::spans_of(trace, function)
    }

    /// The function that a span is a call of, where the functions of the trace were read from spans.
    #[must_use]
    pub fn of_span(trace: &Trace, span: SpanId) -> Option<FunctionName> {
        let is_call = trace.span_category(span) == Category::PythonFunction;
        (is_call && trace.profile().calls.is_empty()).then(|| gather::parse(trace.span_name(span)))
    }

    /// The functions, in order.
    #[must_use]
    pub fn rows(&self) -> &[FunctionRow] {
        &self.rows
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn row(&mut self, function: &FunctionName) -> &mut FunctionRow {
        let index = match self.indices.get(function) {
            Some(&index) => index,
            None => {
                let function = function.clone();
                self.indices.insert(function.clone(), self.rows.len());
                self.rows.push(FunctionRow { function, sums: Calls::default(), callers: Vec::new() });
                self.rows.len() - 1
            }
        };
        &mut self.rows[index]
    }

    fn add_calls(&mut self, function: &FunctionName, sums: Calls) {
        self.row(function).sums.add(sums);
    }

    fn add_callers(
        &mut self,
        function: &FunctionName,
        callers: impl IntoIterator<Item = (FunctionName, Calls)>,
    ) {
        let row = self.row(function);
        let mut indices: HashMap<FunctionName, usize> =
            row.callers.iter().enumerate().map(|(index, (caller, _))| (caller.clone(), index)).collect();
        for (caller, sums) in callers {
            let index = *indices.entry(caller).or_insert_with_key(|caller| {
                row.callers.push((caller.clone(), Calls::default()));
                row.callers.len() - 1
            });
            row.callers[index].1.add(sums);
        }
    }

    /// What a function called, by callee.
    #[must_use]
    pub fn callees(&self, function: &FunctionName) -> Vec<(FunctionName, Calls)> {
        let calls = |row: &FunctionRow| {
            let (_, sums) = row.callers.iter().find(|(caller, _)| caller == function)?;
            Some((row.function.clone(), *sums))
        };
        self.rows.iter().filter_map(calls).collect()
    }

    /// Adds the functions of another trace.
    pub fn add(&mut self, other: Self) {
        for row in other.rows {
            self.add_calls(&row.function, row.sums);
            self.add_callers(&row.function, row.callers);
        }
        self.order.clear();
    }

    /// The same with files by their last name. Functions that then look the same are one.
    #[must_use]
    pub fn without_folders(self) -> Self {
        let strip = |function: FunctionName| {
            let file = function.file.rsplit('/').next().unwrap_or_default().to_owned();
            FunctionName { file, ..function }
        };
        let mut stripped = Self::default();
        for row in self.rows {
            let function = strip(row.function);
            stripped.add_calls(&function, row.sums);
            stripped
                .add_callers(&function, row.callers.into_iter().map(|(caller, sums)| (strip(caller), sums)));
        }
        stripped
    }
}
