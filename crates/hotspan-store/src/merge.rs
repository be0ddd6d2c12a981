//! Several traces as one: the processes of a job, the parts of a recording.
//!
//! Every id is translated. Numbers that events find each other by (`correlation`, `External id`, ids of Python calls and of
//! flows) count per process, so each trace gets a range of its own. A process counts the devices that it sees from 0, so device 0
//! of one trace is another than device 0 of the next. Traces that know Unix time are put on one clock.
//!
//! Traces that lie in memory are merged here, files that may be larger than memory in `files`, both by `translate`.

mod files;
mod translate;

use std::borrow::Borrow;

use hashbrown::HashMap;

use crate::args::tables::ArgTables;
use crate::builder::TraceBuilder;
use crate::content::Content;
use crate::ids::Ident;
use crate::losses::LossCount;
use crate::metadata::{Metadata, Source};
use crate::trace::Trace;

pub use files::{FileMerge, Survey};
use translate::Translation;

/// Has a better name for a native frame, given its library and its name; `None` where there is none.
pub(crate) type Rename<'a> = dyn FnMut(&str, &str) -> Option<String> + 'a;

/// One trace with all that the given ones hold.
///
/// The first trace's metadata counts where several say something different. Losses are added up.
#[must_use]
pub fn merge(traces: &[impl Borrow<Trace>]) -> Trace {
    merge_with_names(traces, &mut |_, _| None)
}

/// The same, with other names for native frames: `name` is given the library and the name of each, and may have a better one.
pub fn merge_with_names(
    traces: &[impl Borrow<Trace>],
    name: &mut dyn FnMut(&str, &str) -> Option<String>,
) -> Trace {
    let traces: Vec<&Trace> = traces.iter().map(Borrow::borrow).collect();
    let mut builder = TraceBuilder::new();
    let on_one_clock = traces.iter().all(|trace| trace.clock().unix_origin().is_some());
    if on_one_clock {
        builder.clock.base_unix = Some(0);
    } else if let Some(first) = traces.first() {
        builder.clock = first.clock();
    }
    let mut owners = DeviceOwners::default();
    for trace in traces {
        let shift = if on_one_clock { trace.clock().unix_origin().unwrap_or(0) } else { 0 };
        let devices = owners.keep_apart(&mut builder, &members(trace));
        builder.append_with_names(trace, shift, devices, name);
    }
    builder.finish()
}

impl TraceBuilder {
    /// Adds all that a trace holds, its times later by `shift` nanoseconds.
    pub fn append(&mut self, trace: &Trace, shift: i64) {
        self.append_with_names(trace, shift, Vec::new(), &mut |_, _| None);
    }

    fn append_with_names(
        &mut self,
        trace: &Trace,
        shift: i64,
        devices: Vec<Option<Ident>>,
        name: &mut Rename<'_>,
    ) {
        let mut translation = Translation::new(shift, self.last_appended_id, devices);
        let content = Content::of_trace(trace);
        translation.add(self, &content, ArgTables::Frozen(&trace.arg_schemas), name);
        translation.describe(self, &content);
        self.last_appended_id = translation.last_id();
        self.add_words(trace.metadata(), trace.source());
        self.add_losses(trace.losses().counts());
    }

    /// Takes over what a trace says about itself, where no other said it before.
    fn add_words(&mut self, metadata: &Metadata, source: &Source) {
        for (key, value) in metadata.iter() {
            if self.metadata.get(key).is_none() {
                self.metadata.set(key, value);
            }
        }
        if self.source.format.is_empty() {
            self.source = source.clone();
        }
    }

    fn add_losses<'a>(&mut self, counts: impl IntoIterator<Item = &'a LossCount>) {
        counts.into_iter().for_each(|known| self.losses.add_many(known.loss, known.count, None));
    }

    /// The largest number by which events of traces that were appended find each other. Who numbers events of its own
    /// begins after it, and says with [`Self::reserve_ids`] how far it came.
    #[must_use]
    pub fn last_id(&self) -> i64 {
        self.last_appended_id
    }

    /// Keeps numbers up to this one from traces that will be appended.
    pub fn reserve_ids(&mut self, last: i64) {
        self.last_appended_id = self.last_appended_id.max(last);
    }
}

/// A process of a trace that is to be merged.
#[derive(Clone, Debug)]
struct Member {
    /// Its id in words.
    ident: String,
    number: Option<i64>,
    is_device: bool,
}

fn members(trace: &Trace) -> Vec<Member> {
    let mut is_device = vec![false; trace.processes().len()];
    for span in trace.spans().ids().filter(|&span| trace.span_category(span).is_device()) {
        is_device[trace.track(trace.spans().track(span)).process.index()] = true;
    }
    let processes = trace.processes().iter().zip(is_device);
    let member = |(process, is_device): (&crate::trace::Process, bool)| Member {
        ident: process.ident.display(trace.strings()),
        number: process.ident.number(),
        is_device,
    };
    processes.map(member).collect()
}

/// Whose devices have which ids, among traces that are merged.
#[derive(Debug, Default)]
struct DeviceOwners {
    owners: HashMap<String, String>,
}

impl DeviceOwners {
    /// For each process of a trace that is a device, and whose id is that of another process's device: an id of its own.
    fn keep_apart(&mut self, builder: &mut TraceBuilder, members: &[Member]) -> Vec<Option<Ident>> {
        let mut hosts = members.iter().filter(|member| !member.is_device);
        let host = hosts.find_map(|member| member.number);
        let host = host.map_or_else(String::new, |host| host.to_string());
        let mut ident = |member: &Member| {
            let device = member.is_device.then_some(&member.ident)?;
            let owner = self.owners.entry(device.clone()).or_insert_with(|| host.clone());
            (*owner != host).then(|| Ident::Text(builder.intern(&format!("{device} of process {host}"))))
        };
        members.iter().map(&mut ident).collect()
    }
}
