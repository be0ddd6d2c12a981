"""What a profile gives back once it has recorded something. All numbers come from the trace."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hotspan import _core
from hotspan._core import HotspanError
from hotspan._notices import warn_once
from hotspan.advice import Advice
from hotspan.event_list import EventList, FunctionEventList
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
            )
        )

    def advise(self, *, only: Iterable[str] = (), ignore: Iterable[str] = ()) -> Advice:
        """Return what to change about the program, most gain first."""
        return self.trace.advise(only=only, ignore=ignore)

    def events(self) -> FunctionEventList:
        """Return all events; each is made when it is asked for. With ``acc_events``, those of all windows."""
        return function_events([self.trace, *self._earlier])

    def export_chrome_trace(
        self, path: str | os.PathLike[str], use_python_export: bool = False, **options: Any
    ) -> None:
        """Write a Chrome trace in Kineto's schema, as often as you like; ``.gz`` and ``.zst`` names are compressed.

        torch's options for its own exporters mean nothing here.
        """
        del use_python_export
        if options:
            names = ", ".join(sorted(options))
            warn_once(f"export_chrome_trace: {names} only concern torch's exporters and are ignored")
        self.trace.export_chrome_trace(path)

    def export_stacks(self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Write stacks and their microseconds, one stack a line, for flame graphs. Needs ``with_stack=True``."""
        attribute = metric
        for device in ("cuda", "xpu", "privateuse1"):
            attribute = attribute.replace(device, "device")
        if attribute not in ("self_cpu_time_total", "self_device_time_total"):
            raise ValueError(
                f"unknown metric {metric!r}; valid ones: 'self_cpu_time_total', 'self_cuda_time_total', "
                "'self_xpu_time_total', 'self_privateuse1_time_total'"
            )
        unsafe = str.maketrans(" ;\t\n", "____")
        sums: dict[str, float] = {}
        for row in self.key_averages(group_by_stack_n=_WHOLE_STACK):
            if row.stack:
                stack = ";".join(entry.translate(unsafe) for entry in reversed(row.stack))
                sums[stack] = sums.get(stack, 0.0) + getattr(row, attribute)
        lines = [f"{stack} {int(value)}\n" for stack, value in sums.items() if int(value) > 0]
        Path(path).write_text("".join(lines))

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
