"""The older interface, ``torch.autograd.profiler``: ``profile`` records with hotspan, all else is torch's own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any

import torch
import torch.autograd.profiler
from torch.autograd.profiler import *  # noqa: F403
from torch.autograd.profiler import (
    ProfilerActivity,
    ProfilerState,
)

from hotspan import event_list
from hotspan._core import Average
from hotspan.profiler._device_names import kind_of, known_device
from hotspan.profiler._profile import new_trace_id
from hotspan.profiler._profile import profile as new_profile

__all__ = [
    *(name for name in torch.autograd.profiler.__all__ if name not in ("profile", "record_function")),
    *("DeviceType", "ProfilerActivity", "ProfilerState", "kineto_available", "profile", "record_function"),
]


class profile(torch.autograd.profiler.profile):  # type: ignore[misc]  # noqa: N801 (torch's name)
    """Records from entry to exit; the arguments are those of ``torch.autograd.profiler.profile``.

    It is one, too, for programs that ask. A ``hotspan.profiler.profile`` has one of these as its ``profiler``.
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        activity_filters: dict[ProfilerActivity, set[str]] | None = None,
        _profiler_extensions: dict[str, str] | None = None,
    ) -> None:
        del _profiler_extensions
        if not use_cpu and not use_kineto:
            raise AssertionError("Device-only events supported only with Kineto (use_kineto=True)")
        device = known_device("cuda" if use_cuda else use_device)
        filters = activity_filters or {}
        self.profiler_kind, activity = kind_of(device, use_kineto)
        activities = [ProfilerActivity.CPU] if use_cpu or activity is None else []
        activities += [] if activity is None else [activity]
        self._show(
            new_profile(
                activities=[{one: list(filters[one])} if one in filters else one for one in activities],
                record_shapes=record_shapes,
                with_flops=with_flops,
                profile_memory=profile_memory,
                with_stack=with_stack,
                with_modules=with_modules,
                experimental_config=experimental_config,
                acc_events=acc_events,
                custom_trace_id_callback=custom_trace_id_callback,
                post_processing_timeout_s=post_processing_timeout_s,
            )
        )
        self.enabled, self.entered = enabled, False
        self.use_device, self.activity_filters = device, filters

    @classmethod
    def of(cls, recorder: new_profile) -> profile:
        """Return the older interface to what a ``hotspan.profiler.profile`` records."""
        made = cls.__new__(cls)
        made._show(recorder)
        made.enabled = made.entered = True
        made.use_device, made.activity_filters = recorder.use_device, {}
        made.profiler_kind = ProfilerState.KINETO
        return made

    def _show(self, recorder: new_profile) -> None:
        """Have the settings of a profile, which does the work."""
        self._profile = recorder
        self.use_cpu = ProfilerActivity.CPU in recorder.activities
        self.kineto_activities = set(recorder.activities)
        self.record_shapes = recorder.record_shapes or recorder.with_flops
        self.with_flops, self.profile_memory = recorder.with_flops, recorder.profile_memory
        self.with_stack, self.with_modules = recorder.with_stack, recorder.with_modules
        self.acc_events, self.experimental_config = recorder.acc_events, recorder.experimental_config
        self.custom_trace_id_callback = recorder.custom_trace_id_callback
        self.post_processing_timeout_s = recorder.post_processing_timeout_s

    @property
    def use_cuda(self) -> bool:
        """Whether CUDA devices are recorded; torch had the attribute up to 2.11."""
        return self.use_device == "cuda"

    def __getattr__(self, name: str) -> Any:
        """What torch's older interface does not have, hotspan's profile may: ``trace``, ``save()``, ``advise()`` …"""
        if name.startswith("__") or name == "_profile":
            raise AttributeError(name)
        return getattr(self._profile, name)

    def __enter__(self) -> profile:
        if self.enabled:
            if self.entered:
                raise RuntimeError("Profiler context manager is not reentrant")
            self._prepare_trace()
            self._start_trace()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.enabled:
            self._profile.stop()

    def _prepare_trace(self) -> None:
        self.entered = True
        self._profile.prepare_trace()

    def _start_trace(self) -> None:
        self.entered = True
        self._profile.start()

    @property
    def function_events(self) -> event_list.FunctionEventList:
        """All events; each is made when it is asked for."""
        return self._profile.events()

    @property
    def kineto_results(self) -> Any:
        """What was recorded, by the methods of torch's ``_ProfilerResult``; None before."""
        return self._profile.kineto_results

    @property
    def trace_id(self) -> str:
        """The name of the current window."""
        return self._profile.get_trace_id() or ""

    @property
    def _stats(self) -> Any:
        return self._profile._stats()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of CPU time, each moment of a thread once."""
        return self.key_averages().self_cpu_time_total

    def default_trace_id(self) -> str:
        """Return a name for a window that no other has."""
        return new_trace_id()

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: bool = False,
        **more: bool,
    ) -> event_list.EventList:
        """Sum up all events by name, and by whatever else is asked for, as ``hotspan.profiler.profile`` does."""
        return self._profile.key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name, include_python_functions, **more
        )

    def total_average(self) -> Average:
        """Return everything added up."""
        return self.key_averages().total_average()

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """Return a table with a row for each single event; ``key_averages().table()`` has a row for each name."""
        return self._profile.events().table(
            sort_by=sort_by,
            row_limit=row_limit,
            max_src_column_width=max_src_column_width,
            max_name_column_width=max_name_column_width,
            max_shapes_column_width=max_shapes_column_width,
            header=header,
            top_level_events_only=top_level_events_only,
            time_unit=time_unit,
        )

    def export_chrome_trace(
        self,
        path: str | os.PathLike[str],
        metadata: dict[str, str] | None = None,
        use_python_export: bool = False,
        cuda_graph_annotations: Any = None,
        graph_lanes: str = "none",
        default_stream: int = 7,
    ) -> None:
        """Write a Chrome trace in Kineto's schema, as often as you like; ``metadata`` is JSON by key."""
        for key, value in (metadata or {}).items():
            self._profile.add_metadata_json(key, value)
        self._profile.export_chrome_trace(
            path, use_python_export, cuda_graph_annotations, graph_lanes, default_stream
        )

    def export_stacks(self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Write stacks and their microseconds, one stack a line, for flame graphs. Needs ``with_stack=True``."""
        self._profile.export_stacks(path, metric)

    def toggle_collection_dynamic(self, enabled: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Pause or resume the recording of some activities."""
        self._profile.toggle_collection_dynamic(enabled, activities)

    def _ensure_function_events(self) -> None:
        """Do nothing: events are made when they are asked for."""

    def _parse_kineto_results(
        self, result: Any, timeout_s: float | None = None
    ) -> event_list.FunctionEventList:
        """Return the events, made within a time."""
        del result
        if timeout_s is not None and timeout_s < 0:
            raise ValueError("timeout_s must be non-negative")
        events = self._profile.events()
        if timeout_s is not None:
            events.fill(timeout_s)
        return events

    def __str__(self) -> str:
        return "<unfinished profile>" if self.kineto_results is None else self.table()

    __repr__ = __str__
