"""``prof.profiler.kineto_results``: the part of torch's ``_ProfilerResult`` that has a meaning without Kineto.

Events answer by torch's methods.
"""

from __future__ import annotations

import os
from typing import Any

from hotspan._core import FunctionEvent
from hotspan.profiler._identities import Identities
from hotspan.trace import Trace


class KinetoEvent:
    """One event, with the methods of torch's ``_KinetoEvent``; times are Unix nanoseconds."""

    __slots__ = ("_event", "_origin")

    def __init__(self, event: FunctionEvent, origin: int) -> None:
        self._event, self._origin = event, origin

    def start_ns(self) -> int:
        """When it began."""
        return self._origin + self._event.start_ns

    def end_ns(self) -> int:
        """When it ended."""
        return self.start_ns() + self._event.duration_ns

    def name(self) -> str:
        """The name as the trace has it."""
        return self._event.trace_name

    def correlation_id(self) -> int:
        """The number of the operator, or the number that device work shares with its launch."""
        return self._event.id

    def nbytes(self) -> int:
        """Of an allocation, how many bytes."""
        return self._event.cpu_memory_usage + self._event.device_memory_usage

    def extra_meta(self) -> dict[str, str]:
        """Everything that the trace says beside times and names, as texts."""
        return {key: str(value) for key, value in self._event.args.items()}

    def typed_metadata(self) -> dict[str, object]:
        """The same, as values."""
        return self._event.args

    def is_hidden_event(self) -> bool:
        """Never: what is hidden is not recorded."""
        return False

    def cuda_elapsed_us(self) -> int:
        """Never: device time is that of kernels."""
        return -1

    privateuse1_elapsed_us = cuda_elapsed_us

    def __repr__(self) -> str:
        return f"<KinetoEvent {self.name()}>"


# Methods that give an attribute of the event: torch's name, ours.
_ATTRIBUTES = {
    name: name
    for name in (
        *(
            "overload_name",
            "device_index",
            "device_resource_id",
            "duration_ns",
            "is_async",
            "device_type",
            "stack",
        ),
        *(
            "linked_correlation_id",
            "external_id",
            "concrete_inputs",
            "kwinputs",
            "scope",
            "sequence_nr",
            "flops",
        ),
        *(
            "is_user_annotation",
            "is_python_function",
            "metadata_json",
            "activity_type",
            "flow_id",
            "flow_type",
        ),
        *("flow_start", "structured_input_shapes", "structured_input_strides"),
        *("python_id", "python_parent_id", "python_module_id"),
    )
} | {
    "shapes": "input_shapes",
    "dtypes": "input_dtypes",
    "start_thread_id": "thread",
    "end_thread_id": "thread",
    "fwd_thread_id": "fwd_thread",
}


def _accessor(name: str, attribute: str) -> Any:
    def get(self: KinetoEvent | TraceActivity) -> Any:
        return getattr(self._event, attribute)

    get.__name__, get.__doc__ = name, f"``{attribute}`` of the event."
    return get


class TraceActivity:
    """One event, with the methods of torch's ``_ITraceActivity``, which its exporter in Python reads."""

    __slots__ = ("_event", "_origin")

    def __init__(self, event: FunctionEvent, origin: int) -> None:
        self._event, self._origin = event, origin

    def type(self) -> str:
        """The category."""
        return self._event.category

    def name(self) -> str:
        """The name as the trace has it."""
        return self._event.trace_name

    def timestamp(self) -> int:
        """When it began, in Unix nanoseconds."""
        return self._origin + self._event.start_ns

    def duration(self) -> int:
        """How many nanoseconds it took."""
        return self._event.duration_ns

    def device_id(self) -> int:
        """The process, or the device."""
        return self._event.device_index

    def resource_id(self) -> int | str:
        """The thread, or the stream."""
        return self._event.device_resource_id

    def correlation_id(self) -> int:
        """The number that device work shares with its launch."""
        return self._event.id

    def linked_activity(self) -> None:
        """Nothing: `linked_correlation_id` tells which operator it is for."""
        return


for _name, _attribute in _ATTRIBUTES.items():
    setattr(KinetoEvent, _name, _accessor(_name, _attribute))
for _name in ("linked_correlation_id", "metadata_json", "flow_id", "flow_start", "flow_type"):
    setattr(TraceActivity, _name, _accessor(_name, _name))


class KinetoResults:
    """What was recorded, as torch's tools look at it."""

    def __init__(self, trace: Trace, identities: Identities | None) -> None:
        self.trace, self._identities = trace, identities or Identities()
        self._tree: list[Any] | None = None

    def trace_start_ns(self) -> int:
        """Unix time that the times of ``prof.events()`` count from."""
        return self.trace.unix_start_ns or 0

    def events(self) -> list[Any]:
        """Return all events."""
        origin = self.trace_start_ns()
        return [KinetoEvent(event, origin) for event in self.trace.function_events()]

    def trace_activities(self) -> list[TraceActivity]:
        """Return all events but reports of memory, for torch's exporter in Python."""
        origin = self.trace_start_ns()
        events = self.trace.function_events()
        return [TraceActivity(event, origin) for event in events if event.category != "cpu_instant_event"]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a Chrome trace in Kineto's schema."""
        self.trace.export_chrome_trace(path)

    def experimental_event_tree(self) -> list[Any]:
        """Return the events that no other encloses, each with its children; the same ones every time. With shapes,
        memory and stacks, of every tensor it is known which it is."""
        from hotspan.profiler._event_tree import event_tree

        if self._tree is None:
            self._tree = list(event_tree(self.trace, self._identities))
        return list(self._tree)
