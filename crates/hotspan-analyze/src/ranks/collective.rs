//! The collectives of one rank: communication kernels with what they do, for whom, and how much they move.

use hashbrown::HashMap;
use hotspan_store::{ArgReader, Duration, SpanId, Trace};
use serde_json::Value;

use crate::device_work::{DeviceWork, Work, WorkKind};
use crate::events::Events;
use crate::flops::shapes::{product, shapes_of_json};
use crate::launches::Launches;
use crate::nesting::Nesting;
use crate::roofline::element_size;

/// Which collective of which group: the same on every rank that takes part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CollectiveKey {
    /// The process group; empty when the trace does not say.
    pub group: String,
    /// What it does, in NCCL's words without punctuation: `allreduce`, `alltoall`, `allgather` …
    pub kind: String,
    /// Its number in the group: the recorded one, or the order.
    pub number: i64,
    /// Counts kernels that share all of the above.
    pub repeat: u32,
}

/// One collective on one rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collective {
    /// Which one.
    pub key: CollectiveKey,
    /// How long the kernel ran, waiting for others included.
    pub time: Duration,
    /// Bytes of its input; `None` when the trace does not say.
    pub bytes: Option<u64>,
    /// How many ranks take part, as the trace says.
    pub group_size: Option<u64>,
}

/// The collectives of all devices of a trace, in order of time.
pub(super) fn collectives(trace: &Trace, devices: &[DeviceWork]) -> Vec<Collective> {
    let all = devices.iter().flat_map(|device| &device.work);
    let mut kernels: Vec<&Work> = all.filter(|work| work.kind == WorkKind::Communication).collect();
    if kernels.is_empty() {
        return Vec::new();
    }
    kernels.sort_by_key(|work| work.interval.begin);
    let events = Events::of(trace);
    let nesting = Nesting::of(trace, &events);
    let launches = Launches::of(trace, &events, &nesting);
    let reader = Reader::of(trace);
    let mut orders: HashMap<String, i64> = HashMap::new();
    let mut repeats: HashMap<(String, String, i64), u32> = HashMap::new();
    let mut found = Vec::with_capacity(kernels.len());
    for work in kernels {
        // Newer traces say everything on the kernel, all say something on the operator.
        let places = [Some(work.span), launches.owner(work.span)];
        let spans = || places.into_iter().flatten();
        let group = spans().find_map(|span| reader.text(&reader.group, span)).unwrap_or_default();
        let kind = reader.kind(work.span, places[1]);
        let order = orders.entry(group.clone()).or_insert(0);
        let number = spans().find_map(|span| reader.int(&reader.sequence, span)).unwrap_or(*order);
        *order += 1;
        let repeat = repeats.entry((group.clone(), kind.clone(), number)).or_insert(0);
        let key = CollectiveKey { group, kind, number, repeat: *repeat };
        *repeat += 1;
        found.push(Collective {
            key,
            time: work.interval.length(),
            bytes: spans().find_map(|span| reader.bytes(span)),
            group_size: spans().find_map(|span| u64::try_from(reader.int(&reader.group_size, span)?).ok()),
        });
    }
    found
}

struct Reader<'a> {
    trace: &'a Trace,
    group: ArgReader<'a>,
    name: ArgReader<'a>,
    sequence: ArgReader<'a>,
    elements: ArgReader<'a>,
    element: ArgReader<'a>,
    group_size: ArgReader<'a>,
    dims: ArgReader<'a>,
    types: ArgReader<'a>,
}

impl<'a> Reader<'a> {
    fn of(trace: &'a Trace) -> Self {
        Self {
            trace,
            group: trace.arg("Process Group Name"),
            name: trace.arg("Collective name"),
            sequence: trace.arg("Seq"),
            elements: trace.arg("In msg nelems"),
            element: trace.arg("dtype"),
            group_size: trace.arg("Group size"),
            dims: trace.arg("Input Dims"),
            types: trace.arg("Input type"),
        }
    }

    fn text(&self, key: &ArgReader<'_>, span: SpanId) -> Option<String> {
        match key.json(self.trace.spans().args(span))? {
            Value::String(text) => Some(text),
            other => Some(other.to_string()),
        }
    }

    fn int(&self, key: &ArgReader<'_>, span: SpanId) -> Option<i64> {
        key.int(self.trace.spans().args(span))
    }

    /// The collective's name, the operator's, or that in the kernel's name.
    fn kind(&self, kernel: SpanId, owner: Option<SpanId>) -> String {
        let plain = |name: &str| -> String {
            name.chars()
                .filter(char::is_ascii_alphanumeric)
                .map(|letter| letter.to_ascii_lowercase())
                .collect()
        };
        if let Some(name) = self.text(&self.name, kernel).or_else(|| self.text(&self.name, owner?)) {
            return plain(name.trim_start_matches('_'));
        }
        let called =
            owner.map(|owner| self.trace.span_name(owner)).and_then(|name| name.strip_prefix("nccl:"));
        if let Some(name) = called {
            return plain(name);
        }
        let name = self.trace.span_name(kernel);
        let word = name.split('_').nth(1).unwrap_or(name);
        plain(word.split('(').next().unwrap_or(word))
    }

    fn bytes(&self, span: SpanId) -> Option<u64> {
        let args = self.trace.spans().args(span);
        if let Some(elements) = self.elements.int(args).and_then(|count| u64::try_from(count).ok()) {
            let element = self.text(&self.element, span)?;
            let size = element_size(&element).or_else(|| match element.to_ascii_lowercase().as_str() {
                "bfloat16" | "half" | "float16" => Some(2),
                "byte" | "char" | "uint8" | "int8" => Some(1),
                _ => None,
            })?;
            return elements.checked_mul(size);
        }
        let shapes = shapes_of_json(&self.dims.json(args)?);
        let Value::Array(types) = self.types.json(args)? else { return None };
        let sizes = types.iter().map(|kind| kind.as_str().and_then(element_size).unwrap_or(0));
        let tensors = shapes.iter().zip(sizes).filter(|(shape, _)| !shape.is_empty());
        let bytes: u64 = tensors.filter_map(|(shape, size)| product(shape)?.checked_mul(size)).sum();
        (bytes > 0).then_some(bytes)
    }
}
