//! The collectives of one rank: communication kernels with what they do, for whom, and how much they move.

use hashbrown::HashMap;
use hotspan_store::{Duration, SpanId, Timestamp};

use crate::intervals::{Interval, Intervals};
use crate::model::Model;
use crate::model::device_work::{Work, WorkKind};
use crate::model::host_activity::HostKind;
use crate::model::inputs::product;
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
    /// When this rank joined it.
    pub begin: Timestamp,
    /// How long the kernel ran, waiting for others included.
    pub time: Duration,
    /// Bytes of its input; `None` when the trace does not say.
    pub bytes: Option<u64>,
    /// How many ranks take part, as the trace says.
    pub group_size: Option<u64>,
}

/// When a rank is in a collective while nothing computes: on its devices where these communicate, else on its processors.
pub(super) fn exposed(model: &Model, collectives: &[Collective]) -> Intervals {
    let all = || model.device_work().iter().flat_map(|device| &device.work);
    let computing: Intervals = if all().any(|work| work.kind == WorkKind::Communication) {
        all().filter(|work| work.kind == WorkKind::Compute).map(|work| work.interval).collect()
    } else {
        let (spans, activity) = (model.spans(), model.host_activity());
        let calls = spans.ids().filter(|&span| activity.kind(span) == HostKind::Operator);
        calls.map(|span| Interval::new(spans.time(span), spans.end(span))).collect()
    };
    let collectives = collectives.iter().map(|one| Interval::new(one.begin, one.begin.plus(one.time)));
    collectives.collect::<Intervals>().subtract(&computing)
}

/// The collectives of all devices of a trace, in order of time.
pub(super) fn collectives(model: &Model) -> Vec<Collective> {
    let all = model.device_work().iter().flat_map(|device| &device.work);
    let mut kernels: Vec<&Work> = all.filter(|work| work.kind == WorkKind::Communication).collect();
    if kernels.is_empty() {
        return on_host(model);
    }
    kernels.sort_by_key(|work| work.interval.begin);
    let (groups, numbers, sizes) = (model.process_group(), model.collective_sequence(), model.group_size());
    let mut orders: HashMap<String, i64> = HashMap::new();
    let mut repeats: HashMap<(String, String, i64), u32> = HashMap::new();
    let mut found = Vec::with_capacity(kernels.len());
    for work in kernels {
        // Newer traces say everything on the kernel, all say something on the operator.
        let owner = model.launches().owner(work.span);
        let spans = || [Some(work.span), owner].into_iter().flatten();
        let group = spans().find_map(|span| groups.any(span)).unwrap_or_default();
        let kind = kind(model, work.span, owner);
        let order = orders.entry(group.clone()).or_insert(0);
        let number = spans().find_map(|span| numbers.of(span)).unwrap_or(*order);
        *order += 1;
        let repeat = repeats.entry((group.clone(), kind.clone(), number)).or_insert(0);
        let key = CollectiveKey { group, kind, number, repeat: *repeat };
        *repeat += 1;
        found.push(Collective {
            key,
            begin: work.interval.begin,
            time: work.interval.length(),
            bytes: spans().find_map(|span| bytes(model, span)),
            group_size: spans().find_map(|span| u64::try_from(sizes.of(span)?).ok()),
        });
    }
    found
}

/// Collectives of processors: ranges that last until the work is done. A range ends on all ranks at once only where each gives and takes,
/// so a broadcast tells nothing about who waited.
fn on_host(model: &Model) -> Vec<Collective> {
    const BACKENDS: [&str; 3] = ["gloo:", "mpi:", "ucc:"];
    const MUTUAL: [&str; 5] = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier"];
    let kind = |span: SpanId| {
        let name = model.span_name(span);
        let name = BACKENDS.iter().find_map(|backend| name.strip_prefix(backend))?;
        let kind: String = name.trim_start_matches('_').chars().filter(|letter| *letter != '_').collect();
        MUTUAL.iter().any(|mutual| name.contains(mutual)).then_some(kind)
    };
    let spans = model.spans();
    let mut found: Vec<(SpanId, String)> = spans.ids().filter_map(|span| Some((span, kind(span)?))).collect();
    found.sort_by_key(|(span, _)| spans.time(*span));
    let mut orders: HashMap<String, i64> = HashMap::new();
    let mut collective = |(span, kind): (SpanId, String)| {
        let order = orders.entry(kind.clone()).or_insert(0);
        let key = CollectiveKey { group: String::new(), kind, number: *order, repeat: 0 };
        *order += 1;
        let (begin, time) = (spans.time(span), spans.duration(span));
        Collective { key, begin, time, bytes: None, group_size: None }
    };
    found.into_iter().map(&mut collective).collect()
}

/// The collective's name, the operator's, or that in the kernel's name.
fn kind(model: &Model, kernel: SpanId, owner: Option<SpanId>) -> String {
    let plain = |name: &str| -> String {
        let letters = name.chars().filter(char::is_ascii_alphanumeric);
        letters.map(|letter| letter.to_ascii_lowercase()).collect()
    };
    let names = model.collective();
    if let Some(name) = names.any(kernel).or_else(|| names.any(owner?)) {
        return plain(name.trim_start_matches('_'));
    }
    let called = owner.and_then(|owner| model.span_name(owner).strip_prefix("nccl:"));
    if let Some(name) = called {
        return plain(name);
    }
    let name = model.span_name(kernel);
    let word = name.split('_').nth(1).unwrap_or(name);
    plain(word.split('(').next().unwrap_or(word))
}

fn bytes(model: &Model, span: SpanId) -> Option<u64> {
    let elements = model.collective_elements().of(span);
    if let Some(elements) = elements.and_then(|count| u64::try_from(count).ok()) {
        let element = model.collective_type().any(span)?;
        let size = element_size(&element).or_else(|| match element.to_ascii_lowercase().as_str() {
            "bfloat16" | "half" | "float16" => Some(2),
            "byte" | "char" | "uint8" | "int8" => Some(1),
            _ => None,
        })?;
        return elements.checked_mul(size);
    }
    let sizes = model.dtypes().of_span(span).iter().map(|kind| element_size(kind).unwrap_or(0));
    let tensors = model.shapes().of_span(span).iter().zip(sizes).filter(|(shape, _)| !shape.is_empty());
    let bytes: u64 = tensors.filter_map(|(shape, size)| product(shape)?.checked_mul(size)).sum();
    (bytes > 0).then_some(bytes)
}
