//! Rows of the time line: threads that made calls, and the streams of devices, named as Kineto names them.

use hotspan_store::{Ident, TrackId};

use super::{Converter, NONE};

/// Kineto sorts devices after all processes of the host.
const DEVICE_SORT_INDEX: i64 = 5_000_000;

impl Converter<'_> {
    pub(super) fn thread(&mut self, thread: u32) -> TrackId {
        let track = self.builder.track(self.process, Ident::Int(i64::from(thread)));
        if self.builder.track_mut(track).name.is_none() {
            let name = std::fs::read_to_string(format!("/proc/self/task/{thread}/comm")).unwrap_or_default();
            let name = self.builder.intern(&format!("thread {thread} ({})", name.trim_end()));
            let described = self.builder.track_mut(track);
            described.name = Some(name);
            described.sort_index = Some(i64::from(thread));
        }
        track
    }

    pub(super) fn stream(&mut self, device: u32, stream: u32) -> TrackId {
        let ident = Ident::Int(if stream == NONE { -1 } else { i64::from(stream) });
        let track = self.builder.track(Ident::Int(i64::from(device)), ident);
        if self.builder.track_mut(track).name.is_some() {
            return track;
        }
        let name = if stream == NONE { format!("Device {device}") } else { format!("stream {stream} ") };
        let name = self.builder.intern(&name);
        let described = self.builder.track_mut(track);
        described.name = Some(name);
        described.sort_index = Some(if stream == NONE { -1 } else { i64::from(stream) });
        let process = self.builder.process(Ident::Int(i64::from(device)));
        let program = std::fs::read_to_string("/proc/self/comm").unwrap_or_default();
        let program = self.builder.intern(program.trim_end());
        let labels = self.builder.intern(&format!("GPU {device}"));
        let described = self.builder.process_mut(process);
        described.name = Some(program);
        described.labels = Some(labels);
        described.sort_index = Some(DEVICE_SORT_INDEX + i64::from(device));
        track
    }
}
