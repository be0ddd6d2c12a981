//! NVML's readings as counters.

use hotspan_store::args::PendingArgs;
use hotspan_store::{Arg, ArgOrigin, EventRow, Ident, Timestamp, TraceBuilder};

use crate::clock::Calibration;
use crate::cupti::nvml::{Reading, Samples};

/// NVML's readings, each figure a counter of its device.
pub(super) fn add_counters(
    builder: &mut TraceBuilder,
    samples: &Samples,
    calibration: &Calibration,
    base: i64,
) {
    let category = builder.category("hardware_counters");
    let mut pending = PendingArgs::default();
    for &(ticks, device, reading) in samples {
        let time = Timestamp(calibration.unix(ticks).0 - base);
        let process = Ident::Text(builder.intern(&format!("GPU {device} Counters")));
        let track = builder.track(process, Ident::Int(0));
        let number = |value: Option<u32>| value.map(|value| Arg::Int(i64::from(value)));
        let Reading {
            utilisation,
            memory_utilisation,
            memory_used,
            power_milliwatts,
            sm_clock,
            memory_clock,
            temperature,
        } = reading;
        let power = power_milliwatts.map(|power| Arg::Float(f64::from(power) / 1000.0));
        let figures = [
            ("GPU utilization", "%", number(utilisation)),
            ("GPU memory utilization", "%", number(memory_utilisation)),
            ("GPU memory used", "bytes", memory_used.map(|bytes| Arg::Int(bytes as i64))),
            ("GPU power", "W", power),
            ("GPU SM clock", "MHz", number(sm_clock)),
            ("GPU memory clock", "MHz", number(memory_clock)),
            ("GPU temperature", "C", number(temperature)),
        ];
        for (name, unit, value) in figures {
            let Some(value) = value else { continue };
            builder.push_arg(&mut pending, ArgOrigin::Args, unit.as_bytes(), value);
            let args = builder.commit_args(&mut pending);
            pending.clear();
            let name = builder.intern(name);
            builder.push_counter(EventRow { time, name, category, track, args });
        }
    }
}
