"""Generators of inputs that are hard on readers, analyses and exporters. Each grows with its size in one way only.

``test_growth.py`` runs commands on them at two sizes; ``bench/growth.py`` runs all commands on all of them.
"""

from __future__ import annotations

import json
import marshal
import struct
from collections.abc import Callable, Iterable
from typing import Any

Generator = Callable[[int], bytes]


def trace(events: Iterable[str], extra: str = "") -> bytes:
    """A Chrome trace of events that are JSON texts."""
    return ('{"schemaVersion": 1, ' + extra + '"traceEvents": [' + ",\n".join(events) + "]}").encode()


def span(
    name: str = "a",
    begin: int = 0,
    length: int = 1,
    category: str = "cpu_op",
    process: int = 1,
    thread: int = 1,
    **args: Any,
) -> str:
    """One span as JSON; times are microseconds."""
    event = {
        "ph": "X",
        "cat": category,
        "name": name,
        "ts": begin,
        "dur": length,
        "pid": process,
        "tid": thread,
    }
    return json.dumps(event | {"args": args} if args else event)


def kernel(
    number: int, device: int = 0, stream: int = 7, name: str = "k", length: int = 5, begin: int = 0
) -> str:
    """One kernel on a device."""
    args = {"device": device, "stream": stream, "correlation": number, "External id": number}
    return span(name, begin or number * 10, length, "kernel", device, stream, **args)


def launch(number: int, begin: int = 0) -> str:
    """The call that launches the kernel of a number."""
    args = {"correlation": number, "External id": number}
    return span("cudaLaunchKernel", begin or number * 10, 2, "cuda_runtime", **args)


def names(size: int) -> bytes:
    return trace(span(f"op_{i}", i) for i in range(size))


def threads(size: int) -> bytes:
    return trace(span("a", i, 10, thread=i) for i in range(size))


def processes(size: int) -> bytes:
    return trace(span("a", i, 10, process=i, thread=i) for i in range(size))


def devices(size: int) -> bytes:
    return trace(kernel(i, device=i, stream=i) for i in range(size))


def streams(size: int) -> bytes:
    return trace(event for i in range(size) for event in (launch(i), kernel(i, stream=i)))


def steps(size: int) -> bytes:
    step = (span(f"ProfilerStep#{i}", i * 10, 10, "user_annotation") for i in range(size))
    return trace([*step, *(kernel(i) for i in range(size)), *(launch(i) for i in range(size))])


def nested(size: int) -> bytes:
    return trace(span(f"f{i % 50}", i, 2 * size - 2 * i) for i in range(size))


def nested_calls(size: int, name: Callable[[int], str], *numbered: str) -> bytes:
    """Calls of Python functions inside each other, as torch.profiler writes them with stacks."""

    def call(i: int) -> str:
        args = {"Python parent id": i - 1, **dict.fromkeys(("Python id", *numbered), i)}
        return span(name(i), i, 2 * size - 2 * i, "python_function", **args)

    return trace(call(i) for i in range(size))


def nested_python(size: int) -> bytes:
    return nested_calls(size, lambda i: f"x.py({i % 50}): f{i % 7}")


def nested_modules(size: int) -> bytes:
    return nested_calls(size, lambda i: f"nn.Module: Block_{i}", "Python module id")


def nested_with_kernels(size: int) -> bytes:
    outer = (span(f"f{i % 50}", i, 4 * size - 2 * i, **{"External id": i + 1}) for i in range(size))
    return trace(
        [*outer, *(launch(i + 1, begin=size + i) for i in range(size)), *(kernel(i + 1) for i in range(size))]
    )


def overlapping(size: int) -> bytes:
    return trace(span(f"n{i % 7}", i * 7919 % (size * 10), 1 + i * 104_729 % (size * 5)) for i in range(size))


def overlapping_kernels(size: int) -> bytes:
    return trace(kernel(i, stream=i % 100, length=size * 10) for i in range(size))


def one_correlation(size: int) -> bytes:
    kernels = (
        span("k", i, 3, "kernel", 0, 7, device=0, stream=i % 500, correlation=1, **{"External id": 1})
        for i in range(size)
    )
    return trace([launch(1), *kernels])


def one_launch_many(size: int) -> bytes:
    calls = (
        span("cudaLaunchKernel", i * 10, 2, "cuda_runtime", correlation=1, **{"External id": 1})
        for i in range(size)
    )
    return trace([*calls, kernel(1)])


def keys(size: int) -> bytes:
    return trace(span("a", i, 1, **{f"k{i}": 1, f"j{i}": 2}) for i in range(size))


def keys_of_one(size: int) -> bytes:
    return trace([span("a", 0, 1, **{f"k{i}": i for i in range(size)}), span("b", 1, 1)])


def metadata_keys(size: int) -> bytes:
    return trace([span()], "".join(f'"key {i}": {i}, ' for i in range(size)))


def device_properties(size: int) -> bytes:
    rows = json.dumps([{"id": i, "name": f"GPU {i}", "totalGlobalMem": 1 << 30} for i in range(size)])
    return trace([kernel(1), launch(1)], f'"deviceProperties": {rows}, ')


def categories(size: int) -> bytes:
    return trace(span("a", i, 1, f"category {i}") for i in range(size))


def begins(size: int) -> bytes:
    return trace(
        f'{{"ph":"B","cat":"cpu_op","name":"f{i % 9}","ts":{i},"pid":1,"tid":1}}' for i in range(size)
    )


def asynchronous(size: int) -> bytes:
    event = '{{"ph":"{}","cat":"c","name":"f","id":{},"ts":{},"pid":1,"tid":1}}'
    begin = (event.format("b", i, i) for i in range(size))
    return trace([*begin, *(event.format("e", size - 1 - i, size + i) for i in range(size))])


def flows(size: int) -> bytes:
    event = '{{"ph":"{}","cat":"ac2g","name":"f","id":{},"ts":{},"pid":1,"tid":{}}}'
    spans = (span("a", i, 1, thread=i % 9) for i in range(size))
    return trace([*spans, *(event.format("sf"[i % 2], i % 3, i, i % 9) for i in range(size))])


def memory(size: int) -> bytes:
    def event(i: int) -> str:
        args = {"Addr": i // 2 % 1000, "Bytes": 512 if i % 2 == 0 else -512, "Device Type": 1, "Device Id": 0}
        row = {
            "ph": "i",
            "cat": "cpu_instant_event",
            "name": "[memory]",
            "s": "t",
            "ts": i,
            "pid": 1,
            "tid": 1,
        }
        return json.dumps(row | {"args": args | {"Total Allocated": i, "Total Reserved": 2 * i}})

    return trace(
        [*(event(i) for i in range(size)), *(span(f"op{i % 100}", i * 2, 2) for i in range(size // 2))]
    )


def memory_held(size: int) -> bytes:
    def event(i: int) -> str:
        args = {"Addr": i, "Bytes": 512 + i, "Device Type": i % 2, "Device Id": i % 50}
        row = {
            "ph": "i",
            "cat": "cpu_instant_event",
            "name": "[memory]",
            "s": "t",
            "ts": i,
            "pid": 1,
            "tid": 1,
        }
        return json.dumps(row | {"args": args})

    return trace([*(event(i) for i in range(size)), *(span(f"op{i}", i * 2, 2) for i in range(size // 2))])


def memory_devices(size: int) -> bytes:
    def event(i: int) -> str:
        args = {"Addr": i, "Bytes": 512, "Device Type": 1, "Device Id": i}
        row = {
            "ph": "i",
            "cat": "cpu_instant_event",
            "name": "[memory]",
            "s": "t",
            "ts": i,
            "pid": 1,
            "tid": 1,
        }
        return json.dumps(row | {"args": args})

    return trace(event(i) for i in range(size))


def counters(size: int) -> bytes:
    return trace(
        json.dumps({"ph": "C", "name": f"counter {i}", "ts": i, "pid": 1, "args": {f"series {i}": i}})
        for i in range(size)
    )


def call_stacks(size: int) -> bytes:
    stack = ";".join(f"x.py({i}): f{i}" for i in range(100))
    return trace(span("aten::add", i, 1, **{"Call stack": f"{stack};y.py({i}): g"}) for i in range(size))


def one_call_stack(size: int) -> bytes:
    return trace(
        [
            span("a", 0, 1, **{"Call stack": ";".join(f"x.py({i}): f{i}" for i in range(size))}),
            span("b", 2, 1),
        ]
    )


def shapes(size: int) -> bytes:
    return trace(
        span("aten::mm", i, 1, **{"Input Dims": [[i, 4], [4, i]], "Input type": ["float", "float"]})
        for i in range(size)
    )


def one_shape(size: int) -> bytes:
    return trace([span("aten::cat", 0, 1, **{"Input Dims": [[i, 4] for i in range(size)]}), span("b", 1, 1)])


def collectives(size: int) -> bytes:
    def row(i: int) -> str:
        args = {
            "Collective name": "allreduce",
            "In msg nelems": 8,
            "Group size": 4,
            "Process Group Name": f"{i}",
        }
        args |= {"device": 0, "stream": i % 50, "correlation": i, "Seq": i}
        return span("ncclDevKernel_AllReduce", i * 5, 20, "kernel", 0, i % 50, **args)

    return trace(row(i) for i in range(size))


def device_annotations(size: int) -> bytes:
    outer = (
        span(f"step {i}", i, 4 * size - 2 * i, "gpu_user_annotation", 0, 7, device=0, stream=7)
        for i in range(size)
    )
    return trace([*outer, *(kernel(i) for i in range(size))])


def at_one_moment(size: int) -> bytes:
    return trace(span(f"n{i % 3}", 5, 0) for i in range(size))


def equal_spans(size: int) -> bytes:
    return trace(span("a", 5, 10) for i in range(size))


def thread_names(size: int) -> bytes:
    row = '{{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"worker {}"}}}}'
    return trace([*(row.format(i % 100, i, i) for i in range(size)), span()])


def other_phases(size: int) -> bytes:
    return trace([*(f'{{"ph":"N","name":"o{i}","ts":{i},"pid":1,"tid":1}}' for i in range(size)), span()])


def long_name(size: int) -> bytes:
    return trace([span("n" * size * 50), span("b", 2)])


def broken(size: int) -> bytes:
    start = '{"traceEvents":[{"ph":"X","name":"' + "n" * (400 * size) + '","ts":1,"dur":1,"pid":1,"tid":1},\n'
    return (start + '{"a":nan},' * size + span() + "]}").encode()


def unclosed(size: int) -> bytes:
    return ('{"traceEvents":[' + '{"ph":"X","name":"a","ts":1,"x":' * size).encode()


def quotes(size: int) -> bytes:
    return (
        '{"traceEvents":[{"ph":"X","name":"' + 'a" ' * size + '","ts":1,"dur":1},' + span() + "]}"
    ).encode()


def deep_stacks(size: int) -> bytes:
    stack = ";".join(f"f{i}" for i in range(2_000))
    return b"".join(f"{stack};leaf{i} 1\n".encode() for i in range(size // 50))


def one_deep_stack(size: int) -> bytes:
    # Not more than a line may have.
    return (";".join(f"f{i}" for i in range(size)) + " 3\n").encode()[-1_000_000:]


def prefixes(size: int) -> bytes:
    # Each line is a stack whose frames all took time of their own.
    frames = [f"f{i}" for i in range(size)]
    events = [{"type": "O", "frame": i, "at": i} for i in range(size)]
    events += [{"type": "C", "frame": i, "at": 2 * size - i} for i in reversed(range(size))]
    profile = {"type": "evented", "name": "x", "unit": "microseconds", "events": events}
    profile |= {"startValue": 0, "endValue": 2 * size}
    return json.dumps(
        {"shared": {"frames": [{"name": name} for name in frames]}, "profiles": [profile]}
    ).encode()


def unmatched_ends(size: int) -> bytes:
    opens = [{"type": "O", "frame": 0, "at": i} for i in range(size)]
    ends = [{"type": "C", "frame": 1, "at": size + i} for i in range(size)]
    profile = {"type": "evented", "name": "x", "unit": "microseconds", "events": opens + ends}
    return json.dumps({"shared": {"frames": [{"name": "f"}, {"name": "g"}]}, "profiles": [profile]}).encode()


def many_stacks(size: int) -> bytes:
    return b"".join(f"main;f{i % 17};g{i} {i % 5}\n".encode() for i in range(size))


def profiled_functions(size: int) -> bytes:
    def function(i: int) -> tuple[str, int, str]:
        return (f"m{i % 50}.py", i, f"f{i}")

    rows = {function(i): (1, 1, 0.1, 0.2, {function(i // 2): (1, 1, 0.1, 0.2)}) for i in range(size)}
    return marshal.dumps(rows, 2)


def profiled_callers(size: int) -> bytes:
    callers = {("m.py", i, f"f{i}"): (1, 1, 0.1, 0.2) for i in range(size)}
    return marshal.dumps({("m.py", 1, "called"): (size, size, 0.1, 0.2, callers)}, 2)


def profiled_lines(size: int) -> bytes:
    def text(word: str) -> bytes:
        return b"X" + struct.pack("<I", len(word)) + word.encode()

    def number(value: int) -> bytes:
        return b"J" + struct.pack("<i", value)

    functions = b"".join(
        text(f"m{i % 50}.py")
        + number(i)
        + text(f"f{i}")
        + b"\x87]("
        + (number(i) + number(3) + number(9) + b"\x87e")
        for i in range(size)
    )
    head = b"\x80\x02cline_profiler._line_profiler\nLineStats\n)\x81}(" + text("timings") + b"}("
    return head + functions + b"u" + text("unit") + b"G" + struct.pack(">d", 1e-9) + b"ub."


GENERATORS: dict[str, Generator] = {
    function.__name__: function
    for function in (
        *(names, threads, processes, devices, streams, steps, nested, nested_python, nested_modules),
        *(nested_with_kernels, overlapping, overlapping_kernels, one_correlation, one_launch_many, keys),
        *(keys_of_one, metadata_keys, device_properties, categories, begins, asynchronous, flows, memory),
        *(memory_held, memory_devices, counters, call_stacks, one_call_stack, shapes, one_shape, collectives),
        *(device_annotations, at_one_moment, equal_spans, thread_names, other_phases, long_name, broken),
        *(unclosed, quotes, deep_stacks, one_deep_stack, prefixes, unmatched_ends, many_stacks),
        *(profiled_functions, profiled_callers, profiled_lines),
    )
}
