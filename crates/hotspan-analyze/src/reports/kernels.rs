//! Device time by kernel.

use super::{DEVICE, Report};
use crate::kernels::{KernelRow, Kernels, kernels};
use crate::report::Table;
use crate::report::door::Door;
use crate::report::schema::{Schema, share};

pub(super) const REPORTS: &[Report] = &[Report {
    id: "kernels",
    by: Some(("kernel", "A kernel, copy or fill on the device")),
    record: DEVICE,
    tables: |model, options| {
        let kernels = kernels(model);
        Ok(vec![kernels.schema().show(&kernels.rows, options)?])
    },
}];

/// The kind of doors to kernels.
pub(crate) const KERNEL: &str = "kernel";

/// The door to a kernel.
pub(crate) fn kernel_door(name: &str) -> Door {
    Door::new(KERNEL).with("name", name)
}

impl Kernels {
    /// The rows, as a table.
    #[must_use]
    pub fn report(&self) -> Table {
        self.schema().table(&self.rows)
    }

    pub(crate) fn schema(&self) -> Schema<'_, KernelRow> {
        Schema::<KernelRow>::new("kernels", "Kernels")
            .text("name", "Name", |row| &row.name)
            .help("The kernel, or the kind of copy or fill.")
            .count("calls", "Calls", |row| row.calls)
            .help("How many times it ran.")
            .duration("total", "Total", |row| row.total)
            .help("All its runs added up.")
            .percent("share", "Device %", |row| share(row.total, self.total))
            .help("Its total as a share of that of all kernels, copies and fills.")
            .duration("mean", "Mean", KernelRow::mean)
            .help("The mean run.")
            .duration("min", "Min", |row| row.min)
            .help("The shortest run.")
            .duration("max", "Max", |row| row.max)
            .help("The longest run.")
            .number("blocks_per_sm", "Mean Blocks Per SM", |row| row.blocks_per_sm)
            .help("Blocks per multiprocessor, the mean of its runs weighted by their duration.")
            .if_any()
            .percent("occupancy", "Mean Est. Achieved Occupancy", |row| row.occupancy)
            .help("The part of the warps a multiprocessor can hold that were there, as the trace estimates it, weighted by duration.")
            .if_any()
            .text("tensor_cores", "Tensor Cores", |row| if row.tensor_cores { "yes" } else { "no" })
            .help("Whether its name says that it uses tensor cores (matrix cores on AMD).")
            .when(self.rows.iter().any(|row| row.tensor_cores))
            .door(|row| Some(kernel_door(&row.name)))
    }
}
