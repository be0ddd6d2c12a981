//! Why a device was idle: every gap between its work, cut into pieces with a cause each. The pieces of all gaps add up to
//! the idle time, exactly.
//!
//! A gap ends when the next work begins. Until that work was launched, the host was late: what it did meanwhile is
//! the cause. From then on the device itself took its time. A wait for the device makes the host late after it
//! has returned, too: it could have launched ahead instead. So in a gap that opens during a synchronising
//! call or a blocking copy, host time counts as that call's, for as long as the call had waited until then.

mod cut;
mod report;

use std::ops::Range;

use hotspan_store::{Duration, SpanId};

use crate::intervals::Interval;
use crate::model::Model;
use crate::model::columns::Texts;
use crate::model::device_work::DeviceId;
use crate::model::events::Role;
use crate::model::source::{file_and_line, is_users};
use crate::report::door::Door;

pub(crate) use report::{CULPRIT, GAP, culprit_door, gap_door};
pub use report::{causes, culprits, gaps};

/// Why a device had nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// The host had not launched the next work yet: it ran operators or Python.
    HostLate,
    /// The host waited for the device, and launched only afterwards.
    Synchronise,
    /// The host waited for the next batch.
    DataLoader,
    /// The host copied memory to or from the device.
    Copy,
    /// The host was in a call of a communication library.
    Communication,
    /// The host asked the driver for memory, or gave it back.
    Allocator,
    /// The work was launched, and the device had not begun it: launch latency, the way from one kernel to the next, a
    /// dependency between streams.
    Dispatch,
    /// The trace does not say what launched the next work.
    Unknown,
}

impl Cause {
    /// All causes, in the order of tables.
    pub const ALL: [Self; 8] = [
        Self::HostLate,
        Self::Synchronise,
        Self::DataLoader,
        Self::Copy,
        Self::Communication,
        Self::Allocator,
        Self::Dispatch,
        Self::Unknown,
    ];

    /// What programs call it.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::HostLate => "host_late",
            Self::Synchronise => "synchronise",
            Self::DataLoader => "data_loader",
            Self::Copy => "copy",
            Self::Communication => "communication",
            Self::Allocator => "allocator",
            Self::Dispatch => "dispatch",
            Self::Unknown => "unknown",
        }
    }

    /// What people call it.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::HostLate => "Host too slow to launch",
            Self::Synchronise => "Synchronising call",
            Self::DataLoader => "DataLoader",
            Self::Copy => "Copy",
            Self::Communication => "Communication call",
            Self::Allocator => "Allocator",
            Self::Dispatch => "Launched, not started",
            Self::Unknown => "Unknown",
        }
    }
}

/// A part of a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// When.
    pub interval: Interval,
    /// Why.
    pub cause: Cause,
    /// The host span behind it: the operator that launched late, the call that waited or allocated.
    pub culprit: Option<SpanId>,
}

impl Piece {
    /// The span behind it, where its name tells something: names of work do not tell why it was not begun.
    #[must_use]
    pub fn named(&self) -> Option<SpanId> {
        self.culprit.filter(|_| self.cause != Cause::Dispatch)
    }
}

/// A time in which a device did nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// When.
    pub interval: Interval,
    /// The work that ends it; `None` at the end of the recording.
    pub next: Option<SpanId>,
    /// The operator or annotation that launched that work.
    pub operator: Option<SpanId>,
    /// The Python function around the launch, where Python was recorded; user code before library code.
    pub python: Option<SpanId>,
    /// The call in that function, if it is known which one led to the launch.
    pub site: Option<SpanId>,
    /// Its pieces in [`DeviceIdle::pieces`].
    pub pieces: Range<usize>,
}

/// The idle time of one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceIdle {
    /// Which device.
    pub device: DeviceId,
    /// The time that was recorded.
    pub window: Interval,
    /// How much of it was idle.
    pub idle: Duration,
    /// The gaps in order of time.
    pub gaps: Vec<Gap>,
    /// The pieces of all gaps in order of time.
    pub pieces: Vec<Piece>,
}

impl DeviceIdle {
    /// The idle time of one cause.
    #[must_use]
    pub fn total(&self, cause: Cause) -> Duration {
        let pieces = self.pieces.iter().filter(|piece| piece.cause == cause);
        pieces.map(|piece| piece.interval.length()).sum()
    }

    /// The door to one of its gaps.
    #[must_use]
    pub fn door(&self, gap: &Gap) -> Door {
        gap_door(self, gap)
    }

    /// The cause of most of a gap.
    #[must_use]
    pub fn main_piece(&self, gap: &Gap) -> Option<&Piece> {
        self.pieces.get(gap.pieces.clone())?.iter().max_by_key(|piece| piece.interval.length())
    }
}

/// Finds every gap of every device and says why.
pub(crate) fn find(model: &Model) -> Vec<DeviceIdle> {
    let (devices, events, nesting) = (model.device_work(), model.events(), model.nesting());
    if devices.is_empty() {
        return Vec::new();
    }
    let is_python = |span: SpanId| events.role(span) == Role::Python;
    let called_from = model.called_from();
    let around = cut::Around {
        operator: nesting.innermost(|span| matches!(events.role(span), Role::Operator | Role::Annotation)),
        python: nesting.innermost(is_python),
        user_code: nesting.innermost(|span| is_python(span) && is_user_code(model.span_name(span))),
        site: nesting.innermost(|span| is_python(span) && call_site(&called_from, span).is_some()),
    };
    let mut found = Vec::with_capacity(devices.len());
    for same_host in devices.chunk_by(|one, two| one.id.process == two.id.process) {
        let timeline = cut::timeline(model, same_host[0].id.process);
        let cutter = cut::Cutter { model, around: &around, timeline: &timeline };
        found.extend(same_host.iter().map(|device| cutter.device(device, *model.recording())));
    }
    found
}

/// Whether a Python function, as Kineto names it (`file.py(12): name`), is the user's own.
fn is_user_code(name: &str) -> bool {
    file_and_line(name).is_some_and(|(file, _)| is_users(file))
}

/// The file and the line that a function was called from, where that is the user's own.
fn call_site<'m>(called_from: &Texts<'m>, function: SpanId) -> Option<(&'m str, &'m str)> {
    called_from.of(function)?.rsplit_once(':').filter(|(file, _)| is_users(file))
}
