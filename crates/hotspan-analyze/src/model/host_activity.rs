//! What the host does, as far as it matters to a device: loading data, communicating, asking for memory, waiting,
//! copying, calling the runtime, computing, running Python.

use hotspan_store::{Category, SpanId, TrackId};

use super::Model;
use super::runtime_calls::CallKind;

/// What a host span stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HostKind {
    /// A `ProfilerStep#` mark.
    Step,
    /// Waiting for the next batch of a DataLoader or DataPipe.
    DataLoader,
    /// A call of a communication library.
    Communication,
    /// A runtime or driver call.
    Call(CallKind),
    /// A torch operator.
    Operator,
    /// A Python function.
    Python,
    /// A mark that a person or a library made, or nothing of the host.
    Other,
}

/// Beginnings of names of communication calls.
const COMMUNICATION: [&str; 6] = ["nccl:", "gloo:", "mpi:", "ucc:", "c10d::", "record_param_comms"];

impl HostKind {
    /// The kind of a span by its category and name.
    #[must_use]
    pub fn of(category: Category, name: &str) -> Self {
        match category {
            Category::Operator | Category::UserAnnotation => {
                if name.starts_with("ProfilerStep#") {
                    Self::Step
                } else if name.starts_with("enumerate(DataLoader)") || name.starts_with("enumerate(DataPipe)")
                {
                    Self::DataLoader
                } else if COMMUNICATION.iter().any(|prefix| name.starts_with(prefix)) {
                    Self::Communication
                } else if category == Category::Operator && !name.starts_with("Optimizer.") {
                    // Kineto of 2021 wrote annotations as operators.
                    Self::Operator
                } else {
                    Self::Other
                }
            }
            Category::Runtime | Category::Driver => Self::Call(CallKind::of(name)),
            Category::PythonFunction => Self::Python,
            _ => Self::Other,
        }
    }
}

/// The kind of every host span, and which threads drive a device.
#[derive(Clone, Debug)]
pub struct HostActivity {
    kinds: Vec<HostKind>,
    drives: Vec<bool>,
}

impl HostActivity {
    /// Reads the names and categories of a trace.
    pub(super) fn of(model: &Model) -> Self {
        let spans = model.spans();
        let mut by_name: Vec<Option<(Category, HostKind)>> = vec![None; model.strings().len()];
        let mut drives = vec![false; model.tracks().len()];
        for thread in model.launch_calls().threads() {
            drives[thread.index()] = true;
        }
        let mut kinds = Vec::with_capacity(spans.len());
        for span in spans.ids() {
            let (category, name) = (model.span_category(span), spans.name(span));
            let last = &mut by_name[name.index()];
            let kind = match *last {
                Some((same, kind)) if same == category => kind,
                _ => HostKind::of(category, model.str(name)),
            };
            *last = Some((category, kind));
            // Nobody is in a range that goes on by itself.
            let kind = if model.events().is_async(span) { HostKind::Other } else { kind };
            if matches!(kind, HostKind::Step | HostKind::DataLoader) {
                drives[spans.track(span).index()] = true;
            }
            kinds.push(kind);
        }
        Self { kinds, drives }
    }

    /// What a span stands for.
    #[must_use]
    pub fn kind(&self, span: SpanId) -> HostKind {
        self.kinds[span.index()]
    }

    /// Whether a thread launches device work, marks steps or loads data.
    #[must_use]
    pub fn drives(&self, thread: TrackId) -> bool {
        self.drives[thread.index()]
    }
}
