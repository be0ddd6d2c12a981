//! Sorting by a column: torch's keys, and those of the columns torch does not have.

use std::cmp::Ordering;

use crate::averages::{Average, KeyAverages};
use crate::table::TableError;

/// What a table can be sorted by. `cuda`, `xpu` and `privateuse1` in a key mean `device`.
pub const SORT_KEYS: [&str; 22] = [
    "key",
    "count",
    "cpu_time",
    "cpu_time_total",
    "self_cpu_time_total",
    "device_time",
    "device_time_total",
    "self_device_time_total",
    "cpu_memory_usage",
    "self_cpu_memory_usage",
    "device_memory_usage",
    "self_device_memory_usage",
    "flops",
    "input_shapes",
    "overload_name",
    "stack",
    "min",
    "p50",
    "p99",
    "max",
    "wall",
    "scope",
];

/// The rows, largest first; rows that are equal keep their order.
pub(super) fn sorted<'a>(
    averages: &'a KeyAverages,
    key: Option<&str>,
) -> Result<Vec<&'a Average>, TableError> {
    let mut rows: Vec<&Average> = averages.rows.iter().collect();
    if let Some(key) = key {
        let compare = comparison(key)?;
        rows.sort_by(|left, right| compare(right, left));
    }
    Ok(rows)
}

/// Sorts the rows themselves, largest first; rows that are equal keep their order.
///
/// # Errors
/// When there is no such column; see [`SORT_KEYS`].
pub fn sort(averages: &mut KeyAverages, key: &str) -> Result<(), TableError> {
    let compare = comparison(key)?;
    averages.rows.sort_by(|left, right| compare(right, left));
    Ok(())
}

type Comparison = fn(&Average, &Average) -> Ordering;

fn comparison(key: &str) -> Result<Comparison, TableError> {
    macro_rules! by {
        ($value:expr) => {{
            fn compare(left: &Average, right: &Average) -> Ordering {
                let value = $value;
                Ord::cmp(&value(left), &value(right))
            }
            compare as Comparison
        }};
    }
    let device_key = key.replace("cuda", "device").replace("xpu", "device").replace("privateuse1", "device");
    Ok(match device_key.as_str() {
        "key" | "name" => |left, right| left.key.cmp(&right.key),
        "input_shapes" => |left, right| left.input_shapes.cmp(&right.input_shapes),
        "overload_name" => |left, right| left.overload_name.cmp(&right.overload_name),
        "stack" => |left, right| left.stack.cmp(&right.stack),
        "cpu_time" => |left, right| left.cpu_time().total_cmp(&right.cpu_time()),
        "device_time" => |left, right| left.device_time().total_cmp(&right.device_time()),
        "count" => by!(|row: &Average| row.count),
        "cpu_time_total" => by!(|row: &Average| row.cpu_time_total),
        "self_cpu_time_total" => by!(|row: &Average| row.self_cpu_time_total),
        "device_time_total" => by!(|row: &Average| row.device_time_total),
        "self_device_time_total" => by!(|row: &Average| row.self_device_time_total),
        "cpu_memory_usage" => by!(|row: &Average| row.cpu_memory_usage),
        "self_cpu_memory_usage" => by!(|row: &Average| row.self_cpu_memory_usage),
        "device_memory_usage" => by!(|row: &Average| row.device_memory_usage),
        "self_device_memory_usage" => by!(|row: &Average| row.self_device_memory_usage),
        "flops" => by!(|row: &Average| row.flops),
        "min" => by!(|row: &Average| row.calls.min),
        "p50" => by!(|row: &Average| row.calls.p50),
        "p99" => by!(|row: &Average| row.calls.p99),
        "max" => by!(|row: &Average| row.calls.max),
        "wall" => by!(Average::own_time_total),
        "scope" => by!(|row: &Average| row.scope as u8),
        _ => return Err(TableError::UnknownSortKey { key: key.to_owned(), valid: SORT_KEYS.to_vec() }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_key_works_and_an_unknown_one_lists_them() {
        for key in SORT_KEYS {
            assert!(comparison(key).is_ok(), "{key}");
        }
        assert!(comparison("self_cuda_time_total").is_ok());
        let error = comparison("speed").unwrap_err().to_string();
        assert!(error.starts_with("cannot sort by `speed`; valid keys: key, count, cpu_time,"), "{error}");
    }
}
