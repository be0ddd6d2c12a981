"""Every sample trace: what hotspan finds in it, writes back and saves is what an independent count finds."""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

import hotspan
from conftest import SHARED_TRACES, shared_trace_files
from independent_count import Count, NotATraceError, count

FILES = shared_trace_files()

# Files that are no timelines: two execution traces (Chakra) and a memory timeline.
NOT_TRACES = {
    "param/resnet_2gpu_et.json.gz",
    "param/resnet_et.json.gz",
    "hta/memory_analysis/memory_timeline.raw.gz",
}


def name_of(path: Path) -> str:
    return path.relative_to(SHARED_TRACES).as_posix()


TRACES = [path for path in FILES if name_of(path) not in NOT_TRACES]

if not FILES:
    pytest.skip(
        "44 sample traces are not there to import: shared/traces does not lie beside the repository",
        allow_module_level=True,
    )


@pytest.fixture(scope="module", params=TRACES, ids=map(name_of, TRACES))
def path(request: pytest.FixtureRequest) -> Path:
    return request.param


@pytest.fixture(scope="module")
def expected(path: Path) -> Count:
    return count(path)


@pytest.fixture(scope="module")
def trace(path: Path) -> hotspan.Trace:
    return hotspan.open(path)


def sums_by_name(trace: hotspan.Trace) -> dict[str, tuple[int, int]]:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(trace.spans)
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for name, duration in zip(table["name"].to_pylist(), table["duration_ns"].to_pylist(), strict=True):
        sums[name][0] += 1
        sums[name][1] += duration
    return {name: (both[0], both[1]) for name, both in sums.items()}


def test_spans_and_categories_are_counted_right(trace: hotspan.Trace, expected: Count) -> None:
    assert len(trace.spans) == expected.spans
    assert trace.categories == expected.categories


def test_every_name_has_its_count_and_time(trace: hotspan.Trace, expected: Count) -> None:
    assert sums_by_name(trace) == expected.names


def test_nothing_is_lost(trace: hotspan.Trace) -> None:
    assert trace.losses == {}


def test_metadata_is_kept(trace: hotspan.Trace, expected: Count) -> None:
    assert expected.metadata - {"baseTimeNanoseconds"} <= set(trace.metadata)


def test_the_exported_trace_holds_the_same(trace: hotspan.Trace, expected: Count, tmp_path: Path) -> None:
    exported = tmp_path / "exported.json.gz"
    trace.export_chrome_trace(exported)
    assert count(exported) == expected
    again = hotspan.open(exported)
    assert again.categories == expected.categories
    assert list(again.metadata.items()) == list(trace.metadata.items())


def test_the_saved_trace_holds_the_same(trace: hotspan.Trace, expected: Count, tmp_path: Path) -> None:
    saved = tmp_path / "trace.hotspan"
    trace.save(saved)
    again = hotspan.open(saved)
    assert len(again.spans) == expected.spans
    assert again.categories == expected.categories
    assert list(again.metadata.items()) == list(trace.metadata.items())
    assert again.losses == trace.losses
    exported = tmp_path / "exported.json"
    again.export_chrome_trace(exported)
    assert count(exported) == expected


def test_averages_hold_every_span_that_counts(trace: hotspan.Trace, expected: Count) -> None:
    """The operator table sums up host calls and device work: each kernel exactly once."""
    kernels = {"kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset", "mtia_ccp_events"}
    wanted = sum(spans for category, (spans, _) in expected.categories.items() if category in kernels)
    rows = trace.key_averages()
    found = sum(row.count for row in rows if row.device_type != "CPU" and not row.is_user_annotation)
    assert found == wanted


def test_the_command_counts_the_same(
    hotspan_command: Callable[..., subprocess.CompletedProcess[str]], path: Path, expected: Count
) -> None:
    told = json.loads(hotspan_command("info", "--json", path).stdout)[0]
    assert told["spans"] == expected.spans
    assert told["instants"] == sum(expected.instants.values())
    assert told["flows"] == sum(expected.flows.values())
    assert told["counters"] == expected.counters
    assert {
        name: (sums["spans"], sums["total_ns"]) for name, sums in told["categories"].items()
    } == expected.categories


@pytest.mark.parametrize("name", sorted(NOT_TRACES))
def test_other_json_is_refused_with_a_reason(name: str) -> None:
    path = SHARED_TRACES / name
    with pytest.raises(NotATraceError):
        count(path)
    with pytest.raises(hotspan.TraceFormatError) as refused:
        hotspan.open(path)
    message = str(refused.value)
    assert path.name in message
    assert "byte" in message


def test_all_sample_traces_were_taken(request: pytest.FixtureRequest) -> None:
    """Names the number, so that a run says how many files it imported."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print(f"\nimported {len(TRACES)} sample traces, refused {len(NOT_TRACES)} files that are none")
    assert len(TRACES) + len(NOT_TRACES) == len(FILES)
