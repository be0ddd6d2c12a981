//! The roofline: what an operator would take at best on its device, from its operations and bytes, and what it took. The
//! difference is the time that a better kernel, layout or precision could save.
//!
//! Needs shapes (`record_shapes=True`). Operations come from [`crate::flops`], bytes from the inputs' shapes and types,
//! peaks from a table of devices. An operator inside one that is counted is not counted again.

mod bytes;
mod peaks;

use hashbrown::HashMap;
use hotspan_store::{Duration, SpanId, StringId};

use crate::flops::Flops;
use crate::model::Model;
use crate::model::device_work::{DeviceId, DeviceWork, WorkKind};
use crate::model::events::Role;
use crate::tensor_cores::uses_tensor_cores;

use bytes::Tensors;
pub(crate) use bytes::element_size;
pub use peaks::{Peaks, Precision, peaks};

/// Kernels shorter than this are ruled by latency, whatever they do.
const LATENCY: Duration = Duration(5_000);

/// What holds an operator back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Operations.
    Compute,
    /// Bytes.
    Memory,
    /// Neither: its kernels are too short.
    Latency,
}

/// An operator, on one device and in one precision.
#[derive(Clone, Debug, PartialEq)]
pub struct RooflineRow {
    /// Which device.
    pub device: DeviceId,
    /// The operator.
    pub operator: String,
    /// What its numbers are made of; `None` when the trace does not say.
    pub precision: Option<Precision>,
    /// How many calls.
    pub calls: u64,
    /// How many kernels.
    pub kernels: u64,
    /// The time of its computing kernels, added up.
    pub time: Duration,
    /// Operations of all calls.
    pub flops: u64,
    /// Bytes of all calls.
    pub bytes: u64,
    /// What all calls would take at best, in nanoseconds; `None` for devices that are not in the table.
    pub best: Option<f64>,
    /// Operations over the device's peak in this precision, in nanoseconds.
    pub flops_time: Option<f64>,
    /// Bytes over the device's peak, in nanoseconds.
    pub bytes_time: Option<f64>,
}

impl RooflineRow {
    /// The time beyond the best; none below zero, since small tensors may stay in a cache.
    #[must_use]
    pub fn wasted(&self) -> Option<Duration> {
        Some(Duration((self.time.0 as f64 - self.best?).max(0.0) as i64))
    }

    /// What holds it back.
    #[must_use]
    pub fn bound(&self) -> Option<Bound> {
        let kernels = i64::try_from(self.kernels.max(1)).unwrap_or(i64::MAX);
        if self.time.0 / kernels < LATENCY.0 {
            return Some(Bound::Latency);
        }
        let (flops, bytes) = (self.flops_time.unwrap_or(0.0), self.bytes_time?);
        Some(if flops > bytes { Bound::Compute } else { Bound::Memory })
    }
}

/// How much of a device's peak was used over the whole recording.
#[derive(Clone, Debug, PartialEq)]
pub struct FlopsUtilisation {
    /// Which device.
    pub device: DeviceId,
    /// The device in the table of peaks; `None` when it is not there.
    pub peaks: Option<&'static str>,
    /// Operations of all operators that count.
    pub flops: u64,
    /// The recording.
    pub window: Duration,
    /// The time of computing kernels, added up.
    pub compute: Duration,
    /// That of operators with a formula.
    pub covered: Duration,
    /// Model FLOPs utilisation: what the operations would take at the device's peak in their precision, in percent of the
    /// recording. Recomputed activations count, since a trace cannot tell them apart.
    pub percent: Option<f64>,
}

impl FlopsUtilisation {
    /// How much of the computing time belongs to operators with a formula, in percent.
    #[must_use]
    pub fn coverage(&self) -> Option<f64> {
        (self.compute.0 > 0).then(|| self.covered.0 as f64 * 100.0 / self.compute.0 as f64)
    }
}

/// What operators could have taken at best.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Roofline {
    /// Operators, most wasted time first; without peaks, most time first.
    pub rows: Vec<RooflineRow>,
    /// Each device.
    pub devices: Vec<FlopsUtilisation>,
}

/// A call that is counted.
#[derive(Clone, Copy, Debug)]
struct Call {
    operator: StringId,
    precision: Option<Precision>,
    flops: u64,
    bytes: u64,
}

/// An operator, its shapes, its types and its operations: calls of one signature are alike.
type Signature = (StringId, u32, u32, u64);

/// The calls that are counted, and for each span the one it is part of.
struct Calls {
    calls: Vec<Call>,
    /// For each span, an index into `calls` plus one.
    of_span: Vec<u32>,
}

impl Calls {
    fn of(model: &Model) -> Self {
        let (events, nesting) = (model.events(), model.nesting());
        let (shapes, dtypes, flops) = (model.shapes(), model.dtypes(), Flops::of(model, nesting));
        let mut signatures: HashMap<Signature, Option<Call>> = HashMap::new();
        let mut found = Self { calls: Vec::new(), of_span: vec![0; model.spans().len()] };
        for &span in nesting.order() {
            let outer = nesting.parent(span).map_or(0, |parent| found.of_span[parent.index()]);
            found.of_span[span.index()] = outer;
            if outer != 0 || events.role(span) != Role::Operator {
                continue;
            }
            let (operator, amount) = (events.name(model, span).key, flops.of_span(span));
            let key = (operator, shapes.id(span), dtypes.id(span), amount);
            let call = *signatures.entry(key).or_insert_with(|| {
                let tensors = Tensors { shapes: shapes.of_span(span), dtypes: dtypes.of_span(span) };
                let bytes = tensors.bytes(events.names.get(operator), amount);
                let precision = precision(tensors.dtypes);
                let counts = amount > 0 || bytes.is_some();
                counts.then_some(Call { operator, precision, flops: amount, bytes: bytes.unwrap_or(0) })
            });
            if let Some(call) = call {
                found.calls.push(call);
                found.of_span[span.index()] = found.calls.len() as u32;
            }
        }
        found
    }
}

/// The widest floating point type among the inputs.
fn precision(dtypes: &[String]) -> Option<Precision> {
    let one = |name: &str| match name.strip_prefix("c10::").unwrap_or(name) {
        "double" => Some(Precision::Fp64),
        "float" => Some(Precision::Fp32),
        "Half" | "BFloat16" => Some(Precision::Half),
        name if name.starts_with("Float8") => Some(Precision::Fp8),
        _ => None,
    };
    // The order of precisions is from wide to narrow.
    dtypes.iter().filter_map(|name| one(name)).min()
}

/// Compares the operators of a trace with the best their devices could do.
#[must_use]
pub fn roofline(model: &Model) -> Roofline {
    if !model.shapes().is_recorded() {
        return Roofline::default();
    }
    let (calls, window) = (Calls::of(model), model.recording().length());
    let mut roofline = Roofline::default();
    for device in model.device_work() {
        let peaks = device.name.as_deref().and_then(peaks);
        let (rows, covered) = of_device(model, device, &calls, peaks.as_ref());
        let compute = device.work.iter().filter(|work| work.kind == WorkKind::Compute);
        let at_peak: Option<f64> = peaks.map(|_| rows.iter().filter_map(|row| row.flops_time).sum());
        roofline.devices.push(FlopsUtilisation {
            device: device.id,
            peaks: peaks.map(|peaks| peaks.name),
            flops: rows.iter().fold(0, |sum, row| sum.saturating_add(row.flops)),
            window,
            compute: compute.map(|work| work.interval.length()).sum(),
            covered,
            percent: at_peak.filter(|_| window.0 > 0).map(|time| time * 100.0 / window.0 as f64),
        });
        roofline.rows.extend(rows);
    }
    roofline.devices.retain(|device| device.flops > 0);
    roofline.rows.sort_by_key(|row| std::cmp::Reverse((row.wasted(), row.time)));
    roofline
}

fn of_device(
    model: &Model,
    device: &DeviceWork,
    calls: &Calls,
    peaks: Option<&Peaks>,
) -> (Vec<RooflineRow>, Duration) {
    #[derive(Clone, Copy, Default)]
    struct Used {
        time: Duration,
        kernels: u64,
        tensor_cores: bool,
    }
    let owner = |span: SpanId| model.launches().owner(span).map_or(0, |owner| calls.of_span[owner.index()]);
    let mut used: Vec<Used> = vec![Used::default(); calls.calls.len()];
    let mut covered = Duration::ZERO;
    let mut tensor: HashMap<StringId, bool> = HashMap::new();
    // Copies between the computer and the device are not bound by the device's memory.
    for work in device.work.iter().filter(|work| work.kind == WorkKind::Compute) {
        let Some(used) = (owner(work.span) as usize).checked_sub(1).and_then(|call| used.get_mut(call))
        else {
            continue;
        };
        let name = model.spans().name(work.span);
        used.time += work.interval.length();
        used.kernels += 1;
        used.tensor_cores |= *tensor.entry(name).or_insert_with(|| uses_tensor_cores(model.str(name)));
        covered += work.interval.length();
    }
    let mut rows: Vec<RooflineRow> = Vec::new();
    let mut by_operator: HashMap<(StringId, Option<Precision>), usize> = HashMap::new();
    for (call, used) in calls.calls.iter().zip(used).filter(|(_, used)| used.kernels > 0) {
        let precision = match call.precision {
            Some(Precision::Fp32) if used.tensor_cores => Some(Precision::Tf32),
            other => other,
        };
        let index = *by_operator.entry((call.operator, precision)).or_insert_with(|| {
            rows.push(RooflineRow {
                device: device.id,
                operator: model.events().names.get(call.operator).to_owned(),
                precision,
                calls: 0,
                kernels: 0,
                time: Duration::ZERO,
                flops: 0,
                bytes: 0,
                best: peaks.map(|_| 0.0),
                flops_time: peaks.map(|_| 0.0),
                bytes_time: peaks.map(|_| 0.0),
            });
            rows.len() - 1
        });
        let row = &mut rows[index];
        row.calls += 1;
        row.kernels += used.kernels;
        row.time += used.time;
        row.flops = row.flops.saturating_add(call.flops);
        row.bytes = row.bytes.saturating_add(call.bytes);
        if let Some(peaks) = peaks {
            // A precision the device has no cores for runs on its ordinary ones.
            let rate =
                precision.and_then(|precision| peaks.flops(precision)).or(peaks.flops(Precision::Fp32));
            let flops = rate.map_or(0.0, |rate| call.flops as f64 / rate);
            let bytes = call.bytes as f64 / peaks.memory;
            row.flops_time = row.flops_time.map(|time| time + flops);
            row.bytes_time = row.bytes_time.map(|time| time + bytes);
            row.best = row.best.map(|time| time + flops.max(bytes));
        }
    }
    (rows, covered)
}
