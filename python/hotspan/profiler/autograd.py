"""The older interface, ``torch.autograd.profiler``: ``profile`` and ``record_function``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any

from torch.profiler import ProfilerActivity, record_function

from hotspan._core import Average
from hotspan.event_list import FunctionEventList
from hotspan.profiler._profile import profile as new_profile
from hotspan.profiler._results import Results

__all__ = ["profile", "record_function"]


class profile(Results):  # noqa: N801 (torch's name)
    """Records from entry to exit; the arguments are those of ``torch.autograd.profiler.profile``."""

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
        activity_filters: Any = None,
    ) -> None:
        super().__init__()
        del use_kineto, activity_filters
        self.enabled = enabled
        self.entered = False
        device = "cuda" if use_cuda else use_device
        activities = [ProfilerActivity.CPU] if use_cpu or device is None else []
        if device is not None:
            named = {name.lower(): activity for name, activity in ProfilerActivity.__members__.items()}
            if device not in named or device == "cpu":
                raise ValueError(
                    f"unknown use_device {device!r}; known ones: {', '.join(sorted(named.keys() - {'cpu'}))}"
                )
            activities.append(named[device])
        self._profile = new_profile(
            activities=activities,
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

    def __enter__(self) -> profile:
        if self.enabled:
            if self.entered:
                raise RuntimeError("Profiler context manager is not reentrant")
            self.entered = True
            self._profile.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.enabled:
            self._profile.stop()
            self._recorded, self._earlier = self._profile.trace, self._profile._earlier

    @property
    def function_events(self) -> FunctionEventList:
        """All events; each is made when it is asked for."""
        return self.events()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of CPU time, each moment of a thread once."""
        return self.key_averages().self_cpu_time_total

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
        return self.events().table(
            sort_by=sort_by,
            row_limit=row_limit,
            max_src_column_width=max_src_column_width,
            max_name_column_width=max_name_column_width,
            max_shapes_column_width=max_shapes_column_width,
            header=header,
            top_level_events_only=top_level_events_only,
            time_unit=time_unit,
        )

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Pause or resume the recording of some activities."""
        self._profile.toggle_collection_dynamic(enable, activities)

    def __str__(self) -> str:
        return "<unfinished profile>" if self._recorded is None else self.table()

    __repr__ = __str__
