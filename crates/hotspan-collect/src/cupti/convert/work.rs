//! Work of devices: kernels, copies and fills, the flows from the calls that launched them, and annotations around them.

use hotspan_store::{
    Arg, Args, Duration, EventRow, FlowPhase, FlowRow, SpanRow, StringId, Timestamp, TrackId, keys,
};

use super::{Converter, Launch};
use crate::cupti::names;
use crate::cupti::occupancy::Needs;
use crate::cupti::records::{Peers, Work, WorkKind};

impl Converter<'_> {
    pub(super) fn work(&mut self, work: &Work, kernels: &[StringId]) {
        let track = self.stream(work.device, work.stream);
        let launch = self.launches.get(&work.correlation).copied();
        let around = launch.map(|launch| launch.around).unwrap_or_default();
        let external = around.innermost.map(|span| Arg::Int(span.external));
        let (category, name, args) = match work.kind {
            WorkKind::Kernel { name, .. } => {
                let args = self.kernel_args(work, external);
                ("kernel", kernels.get(name as usize).copied().unwrap_or_default(), args)
            }
            WorkKind::Copy { kind, source, destination, bytes, peers } => {
                let args = self.copy_args(work, external, bytes, peers);
                ("gpu_memcpy", self.builder.intern(&names::copy(kind, source, destination)), args)
            }
            WorkKind::Fill { memory, bytes } => {
                let args = self.copy_args(work, external, bytes, None);
                ("gpu_memset", self.builder.intern(&names::fill(memory)), args)
            }
        };
        let category = self.builder.category(category);
        let time = self.span(category, name, track, (work.start, work.end), args);
        if let Some(annotation) = around.annotation {
            let end = time.0 + self.duration(work.start, work.end).0;
            let key = (work.device, work.stream, annotation.external);
            let range = self.annotated.entry(key).or_insert((annotation.name, time.0, end));
            range.1 = range.1.min(time.0);
            range.2 = range.2.max(end);
        }
        if let Some(launch) = launch {
            self.flow(work.correlation, launch, track, time);
        }
    }

    /// From the call to its work; a call that launches a graph has one beginning and many ends.
    fn flow(&mut self, correlation: u32, launch: Launch, track: TrackId, time: Timestamp) {
        let name = self.builder.intern("ac2g");
        let category = self.builder.category("ac2g");
        let args = self.builder.no_args();
        let id = self.first_correlation + i64::from(correlation);
        let mut push = |phase, time, track| {
            let event = EventRow { time, name, category, track, args };
            self.builder.push_flow(FlowRow { event, id, phase, binds_enclosing: phase == FlowPhase::End });
        };
        if !launch.has_work {
            push(FlowPhase::Start, launch.time, launch.track);
            self.launches.insert(correlation, Launch { has_work: true, ..launch });
        }
        push(FlowPhase::End, time, track);
    }

    fn kernel_args(&mut self, work: &Work, external: Option<Arg>) -> Args {
        let WorkKind::Kernel { grid, block, registers, static_shared, dynamic_shared, .. } = work.kind else {
            return self.builder.no_args();
        };
        let needs = Needs { grid, block, registers: u32::from(registers), static_shared, dynamic_shared };
        let fill = self.devices.get(work.device).and_then(|device| needs.on(device));
        let shared = i64::from(static_shared) + i64::from(dynamic_shared);
        let (grid, block) = (self.side(grid), self.side(block));
        let [graph, node] = graph_args(work);
        let int = |value: u32| Some(Arg::Int(i64::from(value)));
        self.args(
            2,
            [
                (keys::EXTERNAL_ID, external),
                ("queued", int(0)),
                (keys::DEVICE, int(work.device)),
                ("context", int(work.context)),
                ("stream", int(work.stream)),
                (keys::CORRELATION, Some(self.correlation(work.correlation))),
                ("registers per thread", int(u32::from(registers))),
                ("shared memory", Some(Arg::Int(shared))),
                (keys::BLOCKS_PER_SM, fill.map(|fill| Arg::Float(fill.blocks_per_sm))),
                ("warps per SM", fill.map(|fill| Arg::Float(fill.warps_per_sm))),
                ("grid", Some(grid)),
                ("block", Some(block)),
                (keys::OCCUPANCY, fill.map(|fill| Arg::Int(fill.occupancy))),
                ("graph id", graph),
                ("graph node id", node),
            ],
        )
    }

    fn copy_args(&mut self, work: &Work, external: Option<Arg>, bytes: u64, peers: Option<Peers>) -> Args {
        let nanos = self.duration(work.start, work.end).0;
        let bandwidth = (nanos > 0).then(|| Arg::Float(bytes as f64 / nanos as f64));
        let [graph, node] = graph_args(work);
        let int = |value: u32| Some(Arg::Int(i64::from(value)));
        let of_peers = |pick: fn(Peers) -> u32| peers.map(|peers| Arg::Int(i64::from(pick(peers))));
        self.args(
            3,
            [
                (keys::EXTERNAL_ID, external),
                ("fromDevice", of_peers(|peers| peers.from[0])),
                ("inDevice", peers.and(int(work.device))),
                ("toDevice", of_peers(|peers| peers.to[0])),
                ("fromContext", of_peers(|peers| peers.from[1])),
                ("inContext", peers.and(int(work.context))),
                ("toContext", of_peers(|peers| peers.to[1])),
                (keys::DEVICE, int(work.device)),
                ("context", int(work.context)),
                ("stream", int(work.stream)),
                (keys::CORRELATION, Some(self.correlation(work.correlation))),
                (keys::COPY_BYTES, Some(Arg::Int(bytes as i64))),
                ("memory bandwidth (GB/s)", bandwidth),
                ("graph id", graph),
                ("graph node id", node),
            ],
        )
    }

    fn side(&mut self, side: [i32; 3]) -> Arg {
        let builder = &mut *self.builder;
        let [x, y, z] = side;
        Arg::Json(*self.sides.entry(side).or_insert_with(|| builder.intern(&format!("[{x}, {y}, {z}]"))))
    }

    /// Annotations as the device saw them: from the first to the last of their work on each stream.
    pub(super) fn annotations(&mut self) {
        let mut ranges: Vec<_> = std::mem::take(&mut self.annotated).into_iter().collect();
        ranges.sort_unstable_by_key(|&((device, stream, external), _)| (device, stream, external));
        let category = self.builder.category("gpu_user_annotation");
        for ((device, stream, external), (name, start, end)) in ranges {
            let track = self.stream(device, stream);
            let args = self.args(4, [(keys::EXTERNAL_ID, Some(Arg::Int(external)))]);
            let event = EventRow { time: Timestamp(start), name, category, track, args };
            self.builder.push_span(SpanRow { event, duration: Duration(end - start) });
        }
    }
}

/// The graph and its node, for work of a graph.
fn graph_args(work: &Work) -> [Option<Arg>; 2] {
    let is_of_graph = work.graph != 0;
    [
        is_of_graph.then(|| Arg::Int(i64::from(work.graph))),
        is_of_graph.then_some(Arg::Int(work.graph_node as i64)),
    ]
}
