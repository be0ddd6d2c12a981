"""Bad input: a clear error that names the file and the place, or a trace with named losses. Never a crash."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hotspan
from conftest import complete

Write = Callable[..., Path]

GOOD = {
    "schemaVersion": 1,
    "deviceProperties": [{"id": 0, "name": "GPU"}],
    "traceEvents": [
        complete("aten::mm", 10, 5, args={"Input Dims": [[2, 3], [3, 4]], "External id": 1}),
        {"ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": 11, "args": {"Bytes": 64}},
        {"ph": "s", "id": 4, "pid": 1, "tid": 1, "ts": 12, "cat": "ac2g", "name": "ac2g"},
        {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "ts": 0, "args": {"name": 'quo"ted \\ name'}},
        complete("gemm", 20, 4, cat="kernel", pid=0, tid=7),
    ],
    "traceName": "somewhere/trace.json",
}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_bytes(content: bytes | str, name: str = "trace.json") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_bytes


def with_events(events: str) -> str:
    """A trace around events given as JSON text."""
    return f'{{"schemaVersion": 1, "traceEvents": [{events}]}}'


def refused(path: Path) -> str:
    """The message with which a file is refused; it names the file."""
    with pytest.raises(hotspan.TraceFormatError) as error:
        hotspan.open(path)
    assert isinstance(error.value, hotspan.HotspanError)
    message = str(error.value)
    assert path.name in message
    return message


def survives_everything(trace: hotspan.Trace, folder: Path) -> None:
    """A trace that was opened can be analysed, shown, exported and saved."""
    for by_shape in (False, True):
        averages = trace.key_averages(group_by_input_shape=by_shape)
        averages.table(sort_by="cpu_time_total")
        averages.total_average()
    exported, saved = folder / "again.json", folder / "again.hotspan"
    trace.export_chrome_trace(exported)
    json.loads(exported.read_bytes())
    trace.save(saved)
    assert hotspan.open(exported).categories == trace.categories
    assert hotspan.open(saved).categories == trace.categories


# Files that are no traces.


def test_an_empty_file(write: Write) -> None:
    assert "empty" in refused(write(b""))


@pytest.mark.parametrize("content", [b" ", b"\n\n\t  ", b"\xef\xbb\xbf"], ids=["space", "lines", "mark"])
def test_a_blank_file(write: Write, content: bytes) -> None:
    refused(write(content))


NOT_TRACES = {
    "words": b"hello, world",
    "a number": b"42",
    "null": b"null",
    "an object of something else": b'{"name": "package", "version": "1.0"}',
    "events of the wrong type": b'{"traceEvents": 7}',
    "events as an object": b'{"traceEvents": {"ph": "X"}}',
    "a list of numbers": b"[" + b"1, " * 5000 + b"1]",
    "a list of lists": b"[[1, 2], [3, 4]]",
    "zip": b"PK\x03\x04" + bytes(100),
    "zeros": bytes(100_000),
    "a program": b"\x7fELF" + bytes(range(256)) * 4,
    "a gzip of words": gzip.compress(b"hello, world"),
    "a gzip of nothing": gzip.compress(b""),
    "an open brace": b"{",
    "an open key": b'{"trace',
}


@pytest.mark.parametrize("content", NOT_TRACES.values(), ids=NOT_TRACES)
def test_what_is_no_trace_is_refused(write: Write, content: bytes) -> None:
    message = refused(write(content))
    assert "panicked" not in message


def test_a_refusal_says_where_and_what_to_do(write: Write) -> None:
    message = refused(write(b'{"name": "package", "version": "1.0"}'))
    assert "byte" in message
    assert "traceEvents" in message
    assert "torch.profiler" in message


def test_missing_files_and_folders_are_the_systems_own_errors(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        hotspan.open(tmp_path / "nowhere.json")
    assert "nowhere.json" in str(missing.value)
    with pytest.raises(OSError) as folder:
        hotspan.open(tmp_path)
    assert tmp_path.name in str(folder.value)


def test_a_path_may_be_text_or_a_path_object(write_trace: Write) -> None:
    path = write_trace(GOOD["traceEvents"])
    assert len(hotspan.open(path).spans) == len(hotspan.open(str(path)).spans) == 2
    with pytest.raises(TypeError):
        hotspan.open(3)  # type: ignore[arg-type]


# Files that break off.


def test_json_cut_anywhere_gives_what_came_before_or_a_refusal(write: Write, tmp_path: Path) -> None:
    text = json.dumps(GOOD).encode()
    events_begin = text.index(b'"traceEvents": [') + len(b'"traceEvents": [')
    most_spans = 0
    for length in range(len(text)):
        path = write(text[:length], "cut.json")
        if length < events_begin:
            with pytest.raises(hotspan.TraceFormatError):
                hotspan.open(path)
            continue
        trace = hotspan.open(path)
        assert trace.losses.get("truncated_file") == 1, (length, text[:length])
        assert len(trace.spans) >= most_spans
        most_spans = len(trace.spans)
    assert most_spans == 2
    survives_everything(trace, tmp_path)


def test_gzip_cut_anywhere_gives_what_came_before_or_a_refusal(write: Write) -> None:
    events = [complete(f"op {number * 7919 % 10007}", number, 0.5) for number in range(2000)]
    packed = gzip.compress(json.dumps({"traceEvents": events}).encode())
    opened = 0
    for length in range(1, len(packed) - 1, 97):
        path = write(packed[:length], "cut.json.gz")
        try:
            trace = hotspan.open(path)
        except hotspan.TraceFormatError as error:
            assert path.name in str(error)
            continue
        opened += 1
        assert trace.losses.get("truncated_file") == 1
        assert len(trace.spans) <= 2000
    assert opened > 10


def test_gzip_with_a_flipped_byte(write: Write) -> None:
    events = [complete(f"op {number * 7919 % 10007}", number, 0.5) for number in range(2000)]
    packed = bytearray(gzip.compress(json.dumps({"traceEvents": events}).encode()))
    packed[len(packed) // 2] ^= 0xFF
    trace = hotspan.open(write(bytes(packed), "flipped.json.gz"))
    assert trace.losses
    assert len(trace.spans) < 2000


def test_a_missing_closing_bracket_loses_no_event(write: Write, tmp_path: Path) -> None:
    text = json.dumps(GOOD["traceEvents"])
    trace = hotspan.open(write(text.removesuffix("]")))
    assert len(trace.spans) == 2
    assert trace.losses == {"truncated_file": 1}
    survives_everything(trace, tmp_path)


def test_a_trailing_comma_is_no_matter(write: Write) -> None:
    events = ",".join(json.dumps(event) for event in GOOD["traceEvents"])
    trace = hotspan.open(write(f'{{"traceEvents": [{events},]}}'))
    assert len(trace.spans) == 2
    assert trace.losses == {}


@pytest.mark.parametrize("share", [0.999, 0.9, 0.5, 0.1, 0.001])
def test_a_saved_trace_cut_off_says_what_is_missing(
    write: Write, write_trace: Write, tmp_path: Path, share: float
) -> None:
    path = write_trace([complete(f"op {number}", number, 0.5) for number in range(20_000)])
    hotspan.open(path).save(tmp_path / "whole.hotspan")
    whole = (tmp_path / "whole.hotspan").read_bytes()
    cut = write(whole[: int(len(whole) * share)], "cut.hotspan")
    try:
        trace = hotspan.open(cut)
    except hotspan.TraceFormatError as error:
        assert "cut.hotspan" in str(error)
    else:
        assert set(trace.losses) & {"truncated_file", "damaged_chunk"}
        assert len(trace.spans) <= 20_000


def test_a_saved_trace_with_a_flipped_byte_is_found_out(
    write: Write, write_trace: Write, tmp_path: Path
) -> None:
    path = write_trace([complete(f"op {number}", number, 0.5) for number in range(5_000)])
    trace = hotspan.open(path)
    trace.save(tmp_path / "whole.hotspan")
    whole = (tmp_path / "whole.hotspan").read_bytes()
    for at in range(0, len(whole), len(whole) // 97):
        damaged = bytearray(whole)
        damaged[at] ^= 0x55
        try:
            again = hotspan.open(write(bytes(damaged), "damaged.hotspan"))
        except hotspan.TraceFormatError as error:
            assert "damaged.hotspan" in str(error)
            continue
        # Either the damage is named, or it fell on a byte that means nothing.
        assert again.losses or again.categories == trace.categories, at


# Events that are wrong.


@pytest.mark.parametrize("depth", [10, 90, 5_000, 200_000])
def test_deeply_nested_args(write: Write, tmp_path: Path, depth: int) -> None:
    nested = "[" * depth + "]" * depth
    good = json.dumps(complete("good", 20, 1))
    events = f'{{"ph": "X", "name": "deep", "pid": 1, "tid": 1, "ts": 1, "dur": 2, "args": {{"a": {nested}}}}}, {good}'
    trace = hotspan.open(write(with_events(events)))
    names = [event.name for event in trace.events()]
    if depth <= 90:
        assert names == ["deep", "good"]
    else:
        assert names == ["good"]
        assert trace.losses == {"oversized_event": 1}
    survives_everything(trace, tmp_path)


def test_duplicate_ids(write_trace: Write, tmp_path: Path) -> None:
    """The same External id and correlation on several operators, launches and kernels."""
    args = {"External id": 5, "correlation": 5}
    events = [
        complete("aten::a", 0, 10, args=args),
        complete("aten::b", 20, 10, args=args),
        complete("cudaLaunchKernel", 2, 1, cat="cuda_runtime", args=args),
        complete("cudaLaunchKernel", 22, 1, cat="cuda_runtime", args=args),
        complete("kernel", 30, 3, cat="kernel", pid=0, tid=7, args=args),
        complete("kernel", 40, 4, cat="kernel", pid=0, tid=7, args=args),
        *(
            {"ph": phase, "id": 5, "cat": "ac2g", "name": "ac2g", "pid": 1, "tid": 1, "ts": 2}
            for phase in "ssff"
        ),
    ]
    trace = hotspan.open(write_trace(events))
    survives_everything(trace, tmp_path)
    rows = {row.key: row for row in trace.key_averages()}
    # However they are attributed, device time is counted once.
    assert rows["kernel"].self_device_time_total == 7
    attributed = sum(row.self_device_time_total for key, row in rows.items() if key != "kernel")
    assert attributed <= 7


def test_duplicate_keys_in_one_event(write: Write, tmp_path: Path) -> None:
    events = (
        '{"ph": "X", "name": "one", "name": "two", "pid": 1, "tid": 1, "ts": 1, "ts": 5, "dur": 2, "dur": 3}'
    )
    trace = hotspan.open(write(with_events(events)))
    assert [(event.name, event.duration_ns) for event in trace.events()] == [("two", 3000)]
    survives_everything(trace, tmp_path)


def test_negative_durations(write_trace: Write, tmp_path: Path) -> None:
    trace = hotspan.open(write_trace([complete("back in time", 10, -4), complete("fine", 0, 20)]))
    assert trace.losses == {"negative_duration": 1}
    assert len(trace.spans) == 2
    survives_everything(trace, tmp_path)


def test_unsorted_and_overlapping_spans(write_trace: Write, tmp_path: Path) -> None:
    events = [
        complete("late", 100, 10),
        complete("outer", 0, 50),
        complete("sticks out of outer", 40, 30),
        complete("inner", 10, 10),
        complete("same time", 10, 10),
        complete("empty", 12, 0),
    ]
    trace = hotspan.open(write_trace(events))
    assert trace.losses == {}
    rows = {row.key: row for row in trace.key_averages()}
    assert rows["outer"].cpu_time_total == 50
    assert rows["outer"].self_cpu_time_total <= 40
    assert rows["late"].self_cpu_time_total == 10
    survives_everything(trace, tmp_path)


MISSING = {
    "no phase": '{"name": "x", "ts": 1, "dur": 1}',
    "no name": '{"ph": "X", "ts": 1, "dur": 1}',
    "no time": '{"ph": "X", "name": "x", "dur": 1}',
    "nothing": "{}",
    "a flow with no id": '{"ph": "s", "name": "x", "ts": 1}',
}


@pytest.mark.parametrize("event", MISSING.values(), ids=MISSING)
def test_missing_keys(write: Write, tmp_path: Path, event: str) -> None:
    good = json.dumps(complete("good", 20, 1))
    trace = hotspan.open(write(with_events(f"{event}, {good}")))
    assert trace.losses == {"missing_field": 1}
    assert [event.name for event in trace.events()] == ["good"]
    survives_everything(trace, tmp_path)


def test_no_process_no_thread_no_category_no_duration(write: Write, tmp_path: Path) -> None:
    trace = hotspan.open(write(with_events('{"ph": "X", "name": "bare", "ts": 1}')))
    assert trace.losses == {"missing_duration": 1}
    assert trace.categories == {"": (1, 0)}
    survives_everything(trace, tmp_path)


HUGE = ["1e300", "-1e300", "9" * 40, "9223372036854775807", "-9223372036854775808", "1e-300", "0.1e19"]


@pytest.mark.parametrize("number", HUGE)
@pytest.mark.parametrize("place", ["ts", "dur", "pid", "tid", "args"])
def test_huge_numbers(write: Write, tmp_path: Path, number: str, place: str) -> None:
    fields = {"ts": "1", "dur": "2", "pid": "3", "tid": "4", "args": f'{{"Bytes": {number}}}'}
    if place != "args":
        fields[place] = number
    text = ", ".join(f'"{key}": {value}' for key, value in fields.items())
    good = json.dumps(complete("good", 20, 1))
    trace = hotspan.open(write(with_events(f'{{"ph": "X", "name": "huge", {text}}}, {good}')))
    assert "good" in [event.name for event in trace.events()]
    if len(trace.spans) == 1:
        assert trace.losses == {"bad_timestamp": 1}
    survives_everything(trace, tmp_path)


def test_invalid_utf8(write: Write, tmp_path: Path) -> None:
    event = b'{"ph": "X", "name": "caf\xe9 \xff", "pid": 1, "tid": 1, "ts": 1, "dur": 2, "args": {"k\xfe": "\xc0\xaf"}}'
    trace = hotspan.open(write(b'{"traceEvents": [' + event + b"]}"))
    assert trace.losses["invalid_utf8"] >= 1
    assert trace.events()[0].name.startswith("caf")
    survives_everything(trace, tmp_path)


@pytest.mark.parametrize("value", ["NaN", "nan", "Infinity", "-Infinity", "inf", "-inf"])
def test_not_a_number(write: Write, tmp_path: Path, value: str) -> None:
    args = f'{{"bandwidth": {value}, "a": 1}}'
    event = f'{{"ph": "X", "name": "x", "pid": 1, "tid": 1, "ts": 1, "dur": 2, "args": {args}}}'
    trace = hotspan.open(write(with_events(event)))
    assert [(event.name, event.args["a"]) for event in trace.events()] == [("x", 1)]
    assert trace.losses
    survives_everything(trace, tmp_path)


def test_values_no_json_ever_had_cost_at_most_their_event(write: Write, tmp_path: Path) -> None:
    good = json.dumps(complete("good", 20, 1))
    for value in ("-nan(ind)", "0x1f", "undefined", "'single'", "1.2.3", "+5"):
        event = f'{{"ph": "X", "name": "x", "pid": 1, "tid": 1, "ts": 1, "dur": 2, "args": {{"a": {value}}}}}'
        trace = hotspan.open(write(with_events(f"{event}, {good}")))
        assert trace.losses, value
        assert [event.name for event in trace.events()][-1] == "good", value
        survives_everything(trace, tmp_path)


BROKEN_STRINGS = {
    "a quote in a name": ('void f<"x">(int)', 'void f<"x">(int)'),
    "a path of Windows": (r"C:\Users\dev\python.py(3): run", r"C:\Users\dev\python.py(3): run"),
    "a line break": ("two\nlines", "two\nlines"),
    "a tab": ("a\tb", "a\tb"),
}


@pytest.mark.parametrize(("raw", "meant"), BROKEN_STRINGS.values(), ids=BROKEN_STRINGS)
def test_unescaped_characters_in_names(write: Write, tmp_path: Path, raw: str, meant: str) -> None:
    first, last = json.dumps(complete("first", 1, 1)), json.dumps(complete("last", 9, 1))
    broken = f'{{"ph": "X", "cat": "kernel", "name": "{raw}", "pid": 1, "tid": 1, "ts": 3, "dur": 2}}'
    trace = hotspan.open(write(with_events(f"{first},\n{broken},\n{last}")))
    assert [event.name for event in trace.events()] == ["first", meant, "last"]
    survives_everything(trace, tmp_path)


def test_garbage_between_events_costs_only_itself(write: Write, tmp_path: Path) -> None:
    first, last = json.dumps(complete("first", 1, 1)), json.dumps(complete("last", 9, 1))
    trace = hotspan.open(write(with_events(f'{first},\n7, null, "word", [1],\n{last}')))
    assert [event.name for event in trace.events()] == ["first", "last"]
    assert trace.losses == {"not_an_event": 4}
    survives_everything(trace, tmp_path)


def test_begin_and_end_events_that_do_not_match(write_trace: Write, tmp_path: Path) -> None:
    def mark(phase: str, name: str, time: float) -> dict[str, Any]:
        return {"ph": phase, "name": name, "pid": 1, "tid": 1, "ts": time, "cat": "cpu_op"}

    events = [
        mark("E", "never begun", 1),
        mark("B", "outer", 2),
        mark("B", "inner", 3),
        mark("E", "inner", 4),
    ]
    trace = hotspan.open(write_trace([*events, complete("last", 8, 2)]))
    assert trace.losses == {"unmatched_end": 1, "unfinished_span": 1}
    lengths = {event.name: event.duration_ns for event in trace.events()}
    assert lengths == {"outer": 8000, "inner": 1000, "last": 2000}
    survives_everything(trace, tmp_path)
