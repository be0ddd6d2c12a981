//! What Kineto calls copies, fills, waits and overheads.

const MEMORY: [&str; 8] =
    ["Unknown", "Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static"];
const COPY: [&str; 11] =
    ["Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"];
const SYNC: [&str; 5] = ["Unknown", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync"];

fn memory(kind: u16) -> &'static str {
    MEMORY.get(usize::from(kind)).copied().unwrap_or("Unrecognized")
}

/// A copy: `Memcpy HtoD (Pinned -> Device)`.
pub(crate) fn copy(kind: u8, source: u8, destination: u8) -> String {
    let kind = COPY.get(usize::from(kind)).copied().unwrap_or("Unknown");
    format!("Memcpy {kind} ({} -> {})", memory(source.into()), memory(destination.into()))
}

/// A fill: `Memset (Device)`.
pub(crate) fn fill(kind: u16) -> String {
    format!("Memset ({})", memory(kind))
}

/// Who waits for what.
pub(crate) fn sync(kind: u32) -> &'static str {
    SYNC.get(kind as usize).copied().unwrap_or("Unknown")
}

/// The wait of a stream, not of the program.
pub(crate) const STREAM_WAIT_EVENT: u32 = 2;

/// What cost time besides the program.
pub(crate) fn overhead(kind: u32) -> &'static str {
    const OF_CUPTI: [&str; 9] = [
        "Unknown",
        "Buffer Flush",
        "Instrumentation",
        "Resource",
        "Runtime Triggered Module Loading",
        "Lazy Function Loading",
        "Command Buffer Full",
        "Activity Buffer Request",
        "UVM Activity Init",
    ];
    match kind {
        1 => "Driver Compiler",
        _ => OF_CUPTI.get((kind >> 16) as usize).copied().unwrap_or("Unknown"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_kineto() {
        assert_eq!(copy(1, 2, 3), "Memcpy HtoD (Pinned -> Device)");
        assert_eq!(copy(2, 3, 1), "Memcpy DtoH (Device -> Pageable)");
        assert_eq!(copy(200, 200, 0), "Memcpy Unknown (Unrecognized -> Unknown)");
        assert_eq!(fill(3), "Memset (Device)");
        assert_eq!(sync(4), "Context Sync");
        assert_eq!(overhead(7 << 16), "Activity Buffer Request");
        assert_eq!(overhead(1), "Driver Compiler");
    }
}
