"""What a profile gives back once it has recorded something. All numbers come from the trace."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from typing import Any

from torch.autograd.profiler import _ProfilerStats

from hotspan import _core
from hotspan._core import HotspanError
from hotspan._notices import warn_once
from hotspan.advice import Advice
from hotspan.event_list import EventList, FunctionEventList, write_stacks
from hotspan.profiler._identities import Identities
from hotspan.profiler._kineto_results import KinetoResults
from hotspan.trace import Trace, function_events


class Results:
    """The last window that was recorded, and what is said about it."""

    def __init__(self) -> None:
        self._recorded: Trace | None = None
        # Windows before the last one, latest first, where events are to be accumulated.
        self._earlier: list[Trace] = []
        self._accumulates = False
        # Said about every window, whenever it is said.
        self._metadata: dict[str, str] = {}
        # Said after the window had ended.
        self._late_metadata: dict[str, str] = {}
        # What torch.profiler recorded, where that did.
        self._kineto_results: Any = None
        # Which tensor is which in the last window, where that was recorded.
        self._identities: Identities | None = None
        self._answers: KinetoResults | None = None
        self._statistics = _ProfilerStats()
        # When the last window began and ended, by the counter that torch uses.
        self.profiling_start_time_ns = self.profiling_end_time_ns = 0
        # For how long events are made; None is as long as it takes.
        self._timeout: float | None = None
        self._trace_only = False

    @property
    def trace(self) -> Trace:
        """The last window that was recorded, as a trace."""
        if self._recorded is None:
            raise HotspanError(
                "nothing has been recorded yet. hint: results are there when the profile has stopped, or a cycle of "
                "its schedule has ended"
            )
        if self._late_metadata:
            self._recorded = Trace(self._recorded._core.with_metadata(list(self._late_metadata.items())))
            self._late_metadata = {}
        return self._recorded

    def _repr_html_(self) -> str | None:
        """The report of the last window, for a cell of a notebook."""
        return None if self._recorded is None else self.trace._repr_html_()

    def _keep(self, recorded: _core.Trace) -> None:
        if self._accumulates and self._recorded is not None:
            self._earlier.insert(0, self._recorded)
        self._recorded = Trace(recorded)
        self._late_metadata = {}

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: bool = False,
        *,
        group_by_module: bool = False,
        group_by_thread: bool = False,
        group_by_device: bool = False,
    ) -> EventList:
        """Sum up all events by name, and by whatever else is asked for."""
        return EventList(
            self.trace._core.key_averages(
                group_by_input_shape,
                group_by_stack_n,
                group_by_overload_name,
                group_by_module,
                group_by_thread,
                group_by_device,
                include_python_functions,
                False,
                [trace._core for trace in self._earlier],
            ),
            torch_types=True,
        )

    def advise(self, *, only: Iterable[str] = (), ignore: Iterable[str] = ()) -> Advice:
        """Return what to change about the program, most gain first."""
        return self.trace.advise(only=only, ignore=ignore)

    def events(self) -> FunctionEventList:
        """Return all events; each is made when it is asked for. With ``acc_events``, those of all windows."""
        if self._trace_only:
            raise RuntimeError(
                "events() is not available with trace_only=True. hint: use export_chrome_trace()"
            )
        begun = time.perf_counter_ns()
        events = function_events([self.trace, *self._earlier], torch_types=True)
        if self._timeout is not None:
            events.fill(self._timeout)
        taken = max(1, (time.perf_counter_ns() - begun) // 1000)
        statistics = self._statistics
        statistics.parse_kineto_call_duration_us = taken
        statistics.function_events_build_tree_call_duration_us = taken
        statistics.number_of_events = len(events)
        return events

    @property
    def kineto_results(self) -> Any:
        """What was recorded, by the methods of torch's ``_ProfilerResult``; None before."""
        if self._kineto_results is not None:
            return self._kineto_results
        if self._recorded is None:
            return None
        trace = self.trace
        if self._answers is None or self._answers.trace is not trace:
            self._answers = KinetoResults(trace, self._identities)
        return self._answers

    def export_chrome_trace(
        self,
        path: str | os.PathLike[str],
        use_python_export: bool = False,
        cuda_graph_annotations: Mapping[int, Any] | None = None,
        graph_lanes: str = "none",
        default_stream: int = 7,
    ) -> None:
        """Write a Chrome trace in Kineto's schema, as often as you like; ``.gz`` and ``.zst`` names are compressed.

        Annotations of CUDA graphs, and lanes for them, are torch's exporter's and not written.
        """
        del use_python_export, default_stream
        if graph_lanes not in ("none", "all"):
            raise ValueError(f"graph_lanes={graph_lanes!r}: valid ones are 'none' and 'all'")
        if graph_lanes == "all" and not cuda_graph_annotations:
            raise ValueError("graph_lanes='all' needs cuda_graph_annotations")
        if cuda_graph_annotations:
            warn_once("export_chrome_trace: cuda_graph_annotations and graph_lanes are ignored")
        self.trace.export_chrome_trace(path)

    def export_stacks(self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Write stacks and their microseconds, one stack a line, for flame graphs. Needs ``with_stack=True``."""
        write_stacks(path, metric, self.key_averages(group_by_stack_n=_WHOLE_STACK))

    def export_memory_timeline(self, path: str | os.PathLike[str], device: str | None = None) -> None:
        """Write memory over time by category: ``.html`` (a page with a picture), ``.json`` or ``.json.gz`` (times and
        sizes), ``.raw.json.gz`` (single allocations). Needs ``profile_memory=True``, and nothing else.

        ``device`` is ``"cpu"``, ``"cuda:0"`` …; by default the first accelerator that the trace has, or the CPU.
        """
        self.trace.export_memory_timeline(path, device)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a ``.hotspan`` file."""
        self.trace.save(path)

    def add_metadata(self, key: str, value: str) -> None:
        """Say something about the recording: a text, kept whenever this is called."""
        self.add_metadata_json(key, json.dumps(str(value)))

    def add_metadata_json(self, key: str, value: str) -> None:
        """Say something about the recording: JSON, kept whenever this is called."""
        try:
            json.loads(value)
        except (TypeError, ValueError) as error:
            raise ValueError(f"metadata {key!r} is not valid JSON: {error}") from error
        self._metadata[key] = self._late_metadata[key] = value


# Deeper than any stack.
_WHOLE_STACK = 1_000_000
