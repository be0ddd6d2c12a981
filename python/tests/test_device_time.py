"""Device time on every sample trace: parts add up to the nanosecond and agree with plain Python."""

from __future__ import annotations

import json
import logging
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

import hotspan
from conftest import SHARED_TRACES, shared_trace_files
from independent_count import load_json, nanoseconds

DEVICE = {"kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset", "mtia_ccp_events"}
COPIES = {"gpu_memcpy", "Memcpy", "gpu_memset", "Memset"}
# Best first: what runs beside a better one is not exposed.
KINDS = ("compute", "communication", "copy")


@dataclass(frozen=True)
class Work:
    """A device span; times in nanoseconds of the file's own clock."""

    device: str
    name: str
    kind: str
    begin: int
    end: int


def work_of(path: Path) -> list[Work]:
    content = load_json(path)
    if not isinstance(content, dict):
        return []
    work = []
    for event in content.get("traceEvents", []):
        if event.get("ph") != "X" or event.get("cat") not in DEVICE:
            continue
        name = event["name"]
        kind = "communication" if "nccl" in name.lower() else "compute"
        begin = nanoseconds(event["ts"])
        work.append(
            Work(
                device=str(event["pid"]),
                name=name,
                kind="copy" if event["cat"] in COPIES else kind,
                begin=begin,
                end=begin + nanoseconds(event["dur"]),
            )
        )
    return work


def exposed(work: Iterable[Work], begin: int, end: int) -> dict[str, int]:
    """Nanoseconds of each kind between two moments, found by counting what is open as time passes."""
    changes = []
    for one in work:
        first, last = max(one.begin, begin), min(one.end, end)
        if first < last:
            changes += [(first, 1, one.kind), (last, -1, one.kind)]
    changes.sort()
    times = dict.fromkeys((*KINDS, "idle"), 0)
    is_open = dict.fromkeys(KINDS, 0)
    now = begin
    for moment, change, kind in [*changes, (end, 0, "compute")]:
        best = next((kind for kind in KINDS if is_open[kind]), "idle")
        times[best] += moment - now
        is_open[kind] += change
        now = moment
    return times


def name_of(path: Path) -> str:
    return path.relative_to(SHARED_TRACES).as_posix()


# Told from the text, since parsing every file to list the tests would take as long as the tests.
NO_DEVICE_WORK = (
    "_et.json",
    "cpu_only",
    "cupti_profiler",
    "distributed_info",
    "memory_timeline",
    "rank_non",
    "rank_un",
)
FILES = [path for path in shared_trace_files() if not any(part in name_of(path) for part in NO_DEVICE_WORK)]

if not FILES:
    pytest.skip("the sample traces do not lie beside the repository", allow_module_level=True)


@pytest.fixture(scope="module", params=FILES, ids=map(name_of, FILES))
def path(request: pytest.FixtureRequest) -> Path:
    return request.param


@pytest.fixture(scope="module")
def work(path: Path) -> list[Work]:
    found = work_of(path)
    assert found, "no device did anything here: name the file in NO_DEVICE_WORK"
    return found


@pytest.fixture(scope="module")
def trace(path: Path) -> hotspan.Trace:
    return hotspan.open(path)


@pytest.fixture(scope="module")
def gpu(trace: hotspan.Trace) -> dict[str, list[hotspan.Row]]:
    return trace.gpu()


def test_kernels_are_counted_right(trace: hotspan.Trace, work: list[Work]) -> None:
    expected: dict[str, list[int]] = defaultdict(list)
    for one in work:
        expected[one.name].append(one.end - one.begin)
    found = {row.name: row for row in trace.kernels()}
    assert found.keys() == expected.keys()
    for name, times in expected.items():
        row = found[name]
        assert row.calls == len(times)
        assert [row.total_ns, row.min_ns, row.max_ns] == [sum(times), min(times), max(times)]


def test_steps_add_up_and_agree(trace: hotspan.Trace, work: list[Work]) -> None:
    steps = trace.step_breakdown()
    rows = steps["devices"]
    devices = {one.device for one in work}
    assert rows
    assert len(rows) % len(devices) == 0
    # Where the trace's own time begins on the file's clock.
    first = min(event.start_ns for event in trace.events() if event.category in DEVICE)
    origin = min(one.begin for one in work) - first
    for row in rows:
        assert row.compute_ns + row.communication_ns + row.copy_ns + row.idle_ns == row.time_ns
        if len(devices) == 1:
            begin = row.begin_ns + origin
            expected = exposed(work, begin, begin + row.time_ns)
            assert {kind: getattr(row, f"{kind}_ns") for kind in expected} == expected
    for row in steps["host"]:
        names = ("data_loader", "waiting", "runtime", "operators", "python", "other")
        parts = [getattr(row, f"{name}_ns") for name in names]
        assert sum(parts) == row.time_ns
        assert min(parts) >= 0


def test_idle_time_has_a_cause(
    trace: hotspan.Trace, gpu: dict[str, list[hotspan.Row]], work: list[Work]
) -> None:
    # All work is in the recording, so what is not idle is the union of the work.
    busy = exposed(work, min(one.begin for one in work), max(one.end for one in work))
    for device in gpu["devices"]:
        index = device.device
        time = {row.part: row.total_ns for row in gpu["time"] if row.device == index}
        assert sum(time.values()) == device.time_ns
        assert device.busy_ns + time["idle"] == device.time_ns
        for table in ("idle", "culprits"):
            assert sum(row.total_ns for row in gpu.get(table, []) if row.device == index) == time["idle"]
        gaps = [row for row in trace.idle() if row.device == index]
        assert sum(row.length_ns for row in gaps) == time["idle"]
        if len(gpu["devices"]) == 1:
            assert device.busy_ns == sum(busy[kind] for kind in KINDS)
            assert time["compute"] == busy["compute"]


def test_streams_and_launches_hold_all_work(
    trace: hotspan.Trace, gpu: dict[str, list[hotspan.Row]], work: list[Work]
) -> None:
    assert sum(row.kernels + row.copies for row in gpu["streams"]) == len(work)
    assert sum(row.work for row in gpu["launches"]) == len(work)
    copies = [one for one in work if one.kind == "copy"]
    rows = trace.copies()
    assert sum(row.calls for row in rows) == len(copies)
    assert sum(row.total_ns for row in rows) == sum(one.end - one.begin for one in copies)


@pytest.mark.filterwarnings("ignore")
def test_hta_agrees_where_it_looks_at_the_same_spans() -> None:
    """One step, no waits with a stream: there HTA's union of all rows on streams is the union of the work."""
    analysis = pytest.importorskip("hta.trace_analysis", reason="HolisticTraceAnalysis is not installed")
    logging.getLogger("hta").setLevel(logging.ERROR)
    folder = SHARED_TRACES / "param" / "dlrm_8ranks"
    paths = sorted(folder.glob("worker[01]_*.json.gz"))
    assert len(paths) == 2
    theirs = analysis.TraceAnalysis(trace_files=dict(enumerate(map(str, paths))), trace_dir=str(folder))
    times = theirs.get_temporal_breakdown(visualize=False).set_index("rank")
    overlaps = theirs.get_comm_comp_overlap(visualize=False).set_index("rank")
    for rank, path in enumerate(paths):
        gpu = hotspan.open(path).gpu()
        ours = {row.part: row.total_ns / 1000 for row in gpu["time"]}
        assert times.loc[rank, "compute_time(us)"] == ours["compute"]
        beside = ours["exposed communication"] + ours["exposed copy"]
        assert times.loc[rank, "non_compute_time(us)"] == beside
        assert overlaps.loc[rank, "comp_comm_overlap_pctg"] == pytest.approx(
            gpu["communication"][0].overlap, abs=0.005
        )
        # HTA's recording begins and ends with the device's work; ours with the step.
        work = work_of(path)
        span = max(one.end for one in work) - min(one.begin for one in work)
        assert times.loc[rank, "idle_time(us)"] == span / 1000 - ours["compute"] - beside


def test_ranks_wait_for_the_last_one(
    hotspan_command: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    """Eight ranks with the same eight collectives in the same order: the shortest kernel of each is the transfer."""
    folder = SHARED_TRACES / "param" / "dlrm_8ranks"
    told = json.loads(hotspan_command("ranks", folder, "--json").stdout)
    kernels = []
    for path in sorted(folder.glob("*.json.gz")):
        found = sorted((one.begin, one.end) for one in work_of(path) if one.kind == "communication")
        kernels.append([end - begin for begin, end in found])
    shortest = [min(times) for times in zip(*kernels, strict=True)]
    assert len(told["ranks"]) == len(kernels) == 8
    for row, times in zip(told["ranks"], kernels, strict=True):
        assert row["collectives"] == len(times)
        assert row["transfer"] == sum(shortest)
        assert row["wait"] == sum(times) - sum(shortest)
    assert sum(row["last"] for row in told["ranks"]) == len(shortest)
    assert sum(row["calls"] for row in told["collectives"]) == len(shortest)
