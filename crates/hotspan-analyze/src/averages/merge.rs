//! Several tables as one: rows that share everything but their numbers are added up.

use hashbrown::HashMap;

use crate::averages::compute::Times;
use crate::averages::{Average, DeviceKind, Distribution, KeyAverages};

/// What tells rows apart.
type Identity = (
    (String, String, DeviceKind, bool),
    (Option<Vec<Vec<i64>>>, Vec<String>, Option<String>, Option<String>, Option<i64>),
);

fn identity(row: &Average) -> Identity {
    let name = (row.key.clone(), row.overload_name.clone(), row.device, row.is_user_annotation);
    let group = (
        row.input_shapes.clone(),
        row.stack.clone(),
        row.module.clone(),
        row.thread.clone(),
        row.device_index,
    );
    (name, group)
}

/// Adds up tables; rows stand in the order in which they are first seen.
pub(super) fn merge(parts: impl Iterator<Item = (KeyAverages, Times)>) -> KeyAverages {
    let mut merged = KeyAverages {
        rows: Vec::new(),
        use_device: None,
        profile_memory: false,
        with_flops: false,
        wall_time: hotspan_store::Duration::ZERO,
        unattributed_device_spans: 0,
    };
    let mut indices: HashMap<Identity, usize> = HashMap::new();
    let mut all_times: Vec<Vec<i64>> = Vec::new();
    for (part, times) in parts {
        merged.use_device = merged.use_device.or(part.use_device);
        merged.profile_memory |= part.profile_memory;
        merged.with_flops |= part.with_flops;
        merged.wall_time += part.wall_time;
        merged.unattributed_device_spans += part.unattributed_device_spans;
        for (number, row) in part.rows.into_iter().enumerate() {
            let index = *indices.entry(identity(&row)).or_insert(merged.rows.len());
            match merged.rows.get_mut(index) {
                Some(known) => known.add(&row),
                None => {
                    merged.rows.push(row);
                    all_times.push(Vec::new());
                }
            }
            all_times[index].extend_from_slice(times.of_row(number));
        }
    }
    for (row, times) in merged.rows.iter_mut().zip(&mut all_times) {
        row.calls = Distribution::of(times);
    }
    merged
}
