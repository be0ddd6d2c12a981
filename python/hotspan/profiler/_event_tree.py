"""Torch's tree of events, as its own tools walk it: ``kineto_results.experimental_event_tree()``.

It is made of the exported trace: every span on its thread, with reports of memory where they happened. Which tensors
the inputs of operators are is known where shapes, memory and stacks were recorded.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch._C import _profiler as torch_types

from hotspan.profiler._identities import Identities, Sighting, StandIn, device_of, number, sighting
from hotspan.trace import Trace


class CallSite(NamedTuple):
    """Where a Python function is: torch's ``_PyFrameState``."""

    line_number: int
    file_name: str
    function_name: str
    name: str = ""


class ExtraFields(StandIn):
    """What is known of an event beside its name and times."""

    def __init__(self, kind: type, fields: dict[str, Any]) -> None:
        self._kind = kind
        self.__dict__.update(fields)


class ProfilerEvent:
    """One event of the tree, with the attributes of torch's ``_ProfilerEvent``."""

    def __init__(self, event: dict[str, Any], identities: Identities, scopes: dict[int, int]) -> None:
        self.name: str = event["name"]
        self.overload_name = ""
        self.start_tid: int | str = event.get("tid", 0)
        self.start_time_ns: int = round(event["ts"] * 1000)
        self.duration_time_ns: int = round(event.get("dur", 0) * 1000)
        self.end_time_ns: int = self.start_time_ns + self.duration_time_ns
        self.parent: ProfilerEvent | None = None
        self.children: list[ProfilerEvent] = []
        arguments = event.get("args", {})
        self.correlation_id = arguments.get("External id", arguments.get("correlation", 0))
        self.id = arguments.get("Ev Idx", 0)
        scope = scopes.get(arguments.get("External id", 0), 0)
        described: tuple[Any, Any] = _described(event, arguments, identities, scope)
        self.tag, self.extra_fields = described

    @property
    def typed(self) -> tuple[Any, Any]:
        """What kind of event it is, and what is known of it."""
        return self.tag, self.extra_fields

    def __repr__(self) -> str:
        return f"<ProfilerEvent {self.name}, {len(self.children)} children>"


def _described(
    event: dict[str, Any], arguments: dict[str, Any], identities: Identities, scope: int
) -> tuple[Any, ExtraFields]:
    kinds = torch_types._EventType
    category, name = event.get("cat", ""), event["name"]
    if category == "python_function":
        if name.startswith("<built-in"):
            return kinds.PyCCall, ExtraFields(torch_types._ExtraFields_PyCCall, {"caller": None})
        module = name.removeprefix("nn.Module: ") if name.startswith("nn.Module: ") else None
        known = None if module is None else identities.modules.get(module)
        return kinds.PyCall, ExtraFields(
            torch_types._ExtraFields_PyCall,
            {"callsite": _call_site(name), "caller": None, "module": known, "optimizer": None},
        )
    if category == "cpu_instant_event":
        return kinds.Allocation, ExtraFields(
            torch_types._ExtraFields_Allocation,
            {
                "alloc_size": arguments.get("Bytes", 0),
                "ptr": arguments.get("Addr", 0),
                "total_allocated": arguments.get("Total Allocated", 0),
                "total_reserved": arguments.get("Total Reserved", 0),
                "device": device_of(arguments.get("Device Type", 0), arguments.get("Device Id", -1)),
                "id": None,
                "allocation_id": None,
            },
        )
    if category in ("cpu_op", "user_annotation"):
        fields = {
            "name": name,
            "sequence_number": arguments.get("Sequence number", -1),
            "scope": torch_types.RecordScope(scope),
            "allow_tf32_cublas": torch.backends.cuda.matmul.allow_tf32,
            "inputs": identities.inputs_of(arguments),
        }
        return kinds.TorchOp, ExtraFields(torch_types._ExtraFields_TorchOp, fields)
    return kinds.Kineto, ExtraFields(torch_types._ExtraFields_Kineto, {})


def _call_site(name: str) -> CallSite:
    parts = re.fullmatch(r"(.*)\((\d+)\): (.*)", name)
    return CallSite(int(parts[2]), parts[1], parts[3], name) if parts else CallSite(0, "", name, name)


def event_tree(trace: Trace, identities: Identities) -> list[ProfilerEvent]:
    """Return the events that no other encloses, in order of time."""
    with tempfile.TemporaryDirectory(prefix="hotspan-") as folder:
        path = Path(folder) / "trace.json"
        trace.export_chrome_trace(path)
        exported = json.loads(path.read_bytes())["traceEvents"]
    # Files in torch's schema do not say what called for a callback.
    scopes = {event.external_id: event.scope for event in trace.function_events()}
    threads: dict[Any, list[ProfilerEvent]] = {}
    for event in exported:
        is_memory = event.get("ph") == "i" and event.get("name") == "[memory]"
        if (event.get("ph") == "X" and event.get("cat") != "Trace") or is_memory:
            made = ProfilerEvent(event, identities, scopes)
            threads.setdefault((event.get("pid"), event.get("tid")), []).append(made)
    events = [event for thread in threads.values() for event in thread]
    _identify(sorted(events, key=lambda event: event.start_time_ns), identities)
    roots = [root for events in threads.values() for root in _nested(events)]
    return sorted(roots, key=lambda root: root.start_time_ns)


# The function that torch calls at the end of every step of an optimizer, for profilers.
_STEP_CODE = ": _optimizer_step_code"


def _identify(events: list[ProfilerEvent], identities: Identities) -> None:
    """Tell tensors and allocations, in order of time, which they are."""
    steps = iter(identities.optimizers)
    for event in events:
        if event.name.endswith(_STEP_CODE):
            vars(event.extra_fields)["optimizer"] = next(steps, None)
    # Without memory, nobody knows whose an address is.
    if identities.inputs is not None:
        number(_sightings(events))


def _sightings(events: Iterable[ProfilerEvent]) -> Iterator[Sighting]:
    kinds = torch_types._EventType
    seen: set[int] = set()
    for event in events:
        fields = event.extra_fields
        if event.tag == kinds.Allocation:
            yield Sighting(fields, (fields.ptr, fields.device), frees=fields.alloc_size < 0)
        elif event.tag == kinds.TorchOp:
            for given in fields.inputs:
                tensors = given if isinstance(given, list) else [given]
                yield from (sighting(one) for one in tensors if isinstance(one, torch_types._TensorMetadata))
        elif event.tag == kinds.PyCall:
            # What was learned of a module or an optimizer holds for the first time that it was seen.
            owner = fields.module or fields.optimizer
            if owner is not None and owner.self_ptr not in seen:
                seen.add(owner.self_ptr)
                yield from (sighting(one) for one in owner.tensors() if one is not None)


def _nested(events: Iterable[ProfilerEvent]) -> list[ProfilerEvent]:
    """The outermost of a thread's events; the others become their children."""
    roots: list[ProfilerEvent] = []
    around: list[ProfilerEvent] = []
    for event in sorted(events, key=lambda event: (event.start_time_ns, -event.end_time_ns)):
        # What has ended takes with it what began inside and goes on: a range that nobody closed.
        ended = (depth for depth, outer in enumerate(around) if outer.end_time_ns <= event.start_time_ns)
        del around[next(ended, len(around)) :]
        if around:
            event.parent = around[-1]
            event.parent.children.append(event)
            _tell_caller(event, around)
        else:
            roots.append(event)
        if event.tag != torch_types._EventType.Allocation:
            around.append(event)
    return roots


def _tell_caller(event: ProfilerEvent, around: list[ProfilerEvent]) -> None:
    """Of a call, tell where the Python function around it is."""
    kinds = torch_types._EventType
    if event.tag in (kinds.PyCall, kinds.PyCCall):
        calls = (one for one in reversed(around) if one.tag == kinds.PyCall)
        caller = next(calls, None)
        vars(event.extra_fields)["caller"] = None if caller is None else caller.extra_fields.callsite
