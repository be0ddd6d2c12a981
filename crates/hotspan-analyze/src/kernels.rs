//! Device time by kernel: how often, how long, and how well each filled the device.

use hashbrown::HashMap;
use hotspan_store::{Duration, SpanId, StringId};

use crate::model::Model;
use crate::tensor_cores::uses_tensor_cores;

/// One kernel, copy or fill by name.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelRow {
    /// Its name.
    pub name: String,
    /// How many times it ran.
    pub calls: u64,
    /// How long in all.
    pub total: Duration,
    /// The shortest run.
    pub min: Duration,
    /// The longest run.
    pub max: Duration,
    /// Blocks per multiprocessor, weighted by duration; `None` when no run says.
    pub blocks_per_sm: Option<f64>,
    /// Estimated achieved occupancy in percent, weighted by duration; `None` when no run says.
    pub occupancy: Option<f64>,
    /// Whether its name says that it uses tensor cores.
    pub tensor_cores: bool,
}

impl KernelRow {
    /// The mean run.
    #[must_use]
    pub fn mean(&self) -> Duration {
        Duration(self.total.0 / i64::try_from(self.calls.max(1)).unwrap_or(i64::MAX))
    }
}

/// All device work by name, most time first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kernels {
    /// The rows.
    pub rows: Vec<KernelRow>,
    /// Time of all rows.
    pub total: Duration,
}

/// A mean weighted by duration. Runs that take no measurable time still count a little.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Weighted {
    sum: f64,
    weight: f64,
}

impl Weighted {
    pub(crate) fn add(&mut self, value: Option<f64>, duration: Duration) {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            let weight = duration.0.max(1) as f64;
            self.sum += value * weight;
            self.weight += weight;
        }
    }

    pub(crate) fn mean(self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.sum / self.weight)
    }
}

/// The runs of a kernel, copy or fill, in the order of the file.
#[must_use]
pub fn runs_of(model: &Model, kernel: &str) -> Vec<SpanId> {
    let Some(name) = model.strings().find(kernel) else { return Vec::new() };
    let spans = model.spans();
    let is_run = |&span: &SpanId| spans.name(span) == name && model.span_category(span).is_device();
    spans.ids().filter(is_run).collect()
}

/// Sums up the kernels, copies and fills of a trace.
#[must_use]
pub fn kernels(model: &Model) -> Kernels {
    let spans = model.spans();
    let (blocks, occupancy) = (model.blocks_per_sm(), model.occupancy());
    let is_work: Vec<bool> = model.categories().map(|(_, _, category)| category.is_device()).collect();
    let mut by_name: HashMap<StringId, usize> = HashMap::new();
    let mut rows: Vec<(KernelRow, Weighted, Weighted)> = Vec::new();
    for span in spans.ids().filter(|&span| is_work.get(spans.category(span).index()) == Some(&true)) {
        let (name, duration) = (spans.name(span), spans.duration(span));
        let index = *by_name.entry(name).or_insert_with(|| {
            let row = KernelRow {
                name: model.str(name).to_owned(),
                calls: 0,
                total: Duration::ZERO,
                min: duration,
                max: duration,
                blocks_per_sm: None,
                occupancy: None,
                tensor_cores: uses_tensor_cores(model.str(name)),
            };
            rows.push((row, Weighted::default(), Weighted::default()));
            rows.len() - 1
        });
        let (row, row_blocks, row_occupancy) = &mut rows[index];
        row.calls += 1;
        row.total += duration;
        row.min = row.min.min(duration);
        row.max = row.max.max(duration);
        row_blocks.add(blocks.of(span), duration);
        row_occupancy.add(occupancy.of(span), duration);
    }
    let finished = rows.into_iter().map(|(row, blocks, occupancy)| KernelRow {
        blocks_per_sm: blocks.mean(),
        occupancy: occupancy.mean(),
        ..row
    });
    let mut rows: Vec<KernelRow> = finished.collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.total));
    let total = rows.iter().map(|row| row.total).sum();
    Kernels { rows, total }
}
