"""``profile``: torch.profiler's context manager. Schedules what is recorded; a collector records it."""

from __future__ import annotations

import contextlib
import json
import os
import time
import uuid
import warnings
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any

import torch
import torch.profiler.profiler
from torch.autograd.profiler import KinetoStepTracker
from torch.profiler import ExecutionTraceObserver, ProfilerAction, ProfilerActivity, record_function

from hotspan._notices import warn_once
from hotspan.profiler import _collector
from hotspan.profiler._experimental import DEPRECATED, KINETO_ONLY, is_set, without
from hotspan.profiler._request import (
    Activity,
    Request,
    activity_configs,
    parse_activities,
    use_device,
    warn_about_missing_devices,
)
from hotspan.profiler._results import Results
from hotspan.profiler._schedule import Schedule, always

_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


# Who counts steps for Kineto's daemon.
_STEPPER = "ProfilerStep"


class profile(Results, torch.profiler.profiler.profile):  # type: ignore[misc]  # noqa: N801 (torch's name)
    """Records torch operators while the program runs; the arguments are those of ``torch.profiler.profile``.

    It is one, too, for programs that ask: ``isinstance(prof, torch.profiler.profile)``. Nothing of torch's is used.

    ``activities`` names what to record (all that the machine has by default), ``schedule`` and ``on_trace_ready``
    divide a loop into recorded windows, ``record_shapes``, ``profile_memory``, ``with_stack``, ``with_flops`` and
    ``with_modules`` add to what is recorded. What remains concerns torch's own machinery.
    """

    def __init__(
        self,
        *,
        activities: Iterable[Activity] | None = None,
        schedule: Schedule | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        Results.__init__(self)
        given = None if activities is None else tuple(activities)
        parsed, operators = parse_activities(given)
        if use_cuda and ProfilerActivity.CUDA not in parsed:
            parsed |= {ProfilerActivity.CUDA}
            given = None if given is None else (*given, ProfilerActivity.CUDA)
        if post_processing_timeout_s is not None and post_processing_timeout_s < 0:
            raise ValueError("post_processing_timeout_s must be non-negative")
        warn_about_missing_devices(given, parsed)
        _warn_about_ignored(experimental_config)
        if is_set(experimental_config, "trace_only") and with_stack:
            warnings.warn("trace_only=True is ignored: stacks are asked for", stacklevel=2)
            experimental_config = without(experimental_config, "trace_only")
        execution_trace_observer = (
            execution_trace_observer or ExecutionTraceObserver.build_execution_trace_obs_from_env()
        )
        self._accumulates = self.acc_events = acc_events
        self._timeout = self.post_processing_timeout_s = post_processing_timeout_s
        self._trace_only = is_set(experimental_config, "trace_only")
        self.experimental_config = experimental_config
        self._request = Request(
            activities=parsed,
            given_activities=given,
            shapes=record_shapes or with_flops,
            memory=profile_memory,
            stack=with_stack,
            flops=with_flops,
            modules=with_modules,
            operators=operators,
            ids=execution_trace_observer is not None,
            experimental_config=experimental_config,
        )
        self.activities = set(parsed)
        self.activity_configs = activity_configs(given)
        self.use_device = use_device(parsed)
        self.has_cudagraphs = False
        self.mem_tl = None
        self.record_shapes = record_shapes
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_flops = with_flops
        self.with_modules = with_modules
        self.schedule: Schedule = schedule or always
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.execution_trace_observer = execution_trace_observer
        self.custom_trace_id_callback = custom_trace_id_callback
        self.step_num = 0
        self.current_action = self._scheduled(0)
        self.preset_metadata: dict[str, str] = {}
        #: The older interface to the same results, from the first preparation on.
        self.profiler: Any = None
        self._trace_id: str | None = None
        self._step_range: record_function | None = None
        self._collector: _collector.Collector | None = None
        self._is_recording = False
        # A handler that fails ends the profile: what it would do with the next window is anybody's guess.
        self._has_failed = False
        KinetoStepTracker.init_step_count(_STEPPER)

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
        KinetoStepTracker.erase_step_count(_STEPPER)
        if self.execution_trace_observer is not None:
            self.execution_trace_observer.cleanup()

    def start(self) -> None:
        """Begin with the first step of the schedule."""
        if self._is_recording:
            raise RuntimeError("this profile is recording already. hint: stop it first, or use a second one")
        self._has_failed = False
        self._go(ProfilerAction.NONE, self.current_action)
        self._open_step()

    def step(self) -> None:
        """Say that the next step of the loop begins."""
        self._close_step()
        if self._is_recording and self._collector is not None:
            self._collector.look()
        before = self.current_action
        scheduled = self._scheduled(self.step_num + 1)
        self.step_num += 1
        self.current_action = scheduled
        if self._has_failed:
            return
        self._go(before, scheduled)
        if os.environ.get("KINETO_USE_DAEMON"):
            KinetoStepTracker.increment_step(_STEPPER)
        self._open_step()

    def stop(self) -> None:
        """End; what is being recorded becomes the result, and is handed to ``on_trace_ready``."""
        self._close_step()
        if not self._has_failed:
            self._go(self.current_action, None)

    def prepare_trace(self) -> None:
        """Do what takes time before recording starts."""
        if self._collector is None:
            # Before anything is set up: Kineto would drop what torch.profiler records.
            _collector.refuse_if_recording()
            begun = time.perf_counter_ns()
            self._collector = _collector.choose(self._request)
            self._statistics.profiler_prepare_call_duration_us = _since(begun)
            if self.profiler is None:
                from hotspan.profiler.autograd import profile as older_profile

                self.profiler = older_profile.of(self)

    def start_trace(self) -> None:
        """Begin to record."""
        self.prepare_trace()
        collector = self._collector
        assert collector is not None
        _collector.claim(collector)
        try:
            if self.execution_trace_observer is not None:
                self.execution_trace_observer.start()
            self._trace_id = (self.custom_trace_id_callback or new_trace_id)()
            begun = time.perf_counter_ns()
            collector.start()
            self._statistics.profiler_enable_call_duration_us = _since(begun)
            self.profiling_start_time_ns = time.perf_counter_ns()
        except BaseException:
            _collector.release()
            raise
        self._is_recording = True

    def stop_trace(self) -> None:
        """End recording; what was recorded becomes the result."""
        collector, self._collector = self._collector, None
        if collector is None or not self._is_recording:
            return
        self._is_recording = False
        try:
            if self.execution_trace_observer is not None:
                self.execution_trace_observer.stop()
            begun = time.perf_counter_ns()
            self._keep(collector.stop(self._describe()))
            self._statistics.profiler_disable_call_duration_us = _since(begun)
            self.profiling_end_time_ns = begun
            self._statistics.profiling_window_duration_sec = (begun - self.profiling_start_time_ns) / 1e9
            self._kineto_results, self._identities = collector.results, collector.identities
        finally:
            _collector.release()

    def take_pending_cupti_export(self) -> None:
        """Return nothing: torch 2.14 asks another recorder of its own, which hotspan does not use."""

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Pause or resume the recording of some activities."""
        if self._collector is not None:
            self._collector.toggle(enable, list(activities))

    def preset_metadata_json(self, key: str, value: str) -> None:
        """Say something about every window of the recording: JSON."""
        self.add_metadata_json(key, value)
        self.preset_metadata[key] = value

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        """Choose how the next windows are named."""
        self.custom_trace_id_callback = callback

    def get_trace_id(self) -> str | None:
        """Return the name of the current window."""
        return self._trace_id

    def wait_for_exports(self) -> None:
        """Do nothing: exports are written when they return."""

    def take_pending_cuspy_export(self) -> None:
        """Return nothing: no export is pending."""

    @property
    def step_rec_fn(self) -> record_function | None:
        """The range of the current step."""
        return self._step_range

    def _memory_profile(self) -> Any:
        """Return torch's analysis of memory."""
        names = ("record_shapes", "profile_memory", "with_stack")
        missing = [f"{name}=True" for name in names if not getattr(self, name)]
        if missing:
            raise ValueError(f"{', '.join(missing)} required for memory profiling.")
        from torch.profiler._memory_profiler import MemoryProfile

        return MemoryProfile(self.kineto_results)

    def _stats(self) -> Any:
        """How long the profiler itself took, by torch's names."""
        return self._statistics

    def _scheduled(self, step: int) -> ProfilerAction:
        action = self.schedule(step)
        if action not in (ProfilerAction.NONE, ProfilerAction.WARMUP, *_RECORDING):
            raise ValueError(
                f"the schedule returned {action!r} for step {step}: DEVICE_STOPPED is set internally by the profiler "
                "and must not be returned by a user-provided schedule; it may return NONE, WARMUP, RECORD and "
                "RECORD_AND_SAVE"
            )
        return action

    def _go(self, before: ProfilerAction, after: ProfilerAction | None) -> None:
        """Do what leads from one action of the schedule to the next; None is the end."""
        if before in _RECORDING:
            ends_window = before == ProfilerAction.RECORD_AND_SAVE or after is None
            if not ends_window and after in _RECORDING:
                return
            if not ends_window:
                warnings.warn(f"Incorrect schedule: RECORD followed by {after.name}", stacklevel=4)  # type: ignore[union-attr]
            self.stop_trace()
            if ends_window:
                self._hand_over()
            elif after == ProfilerAction.WARMUP:
                return
        elif before == ProfilerAction.WARMUP and after in (ProfilerAction.NONE, None):
            if after is not None:
                warnings.warn("Incorrect schedule: WARMUP followed by NONE", stacklevel=4)
            self._give_up_window()
            return
        if after == ProfilerAction.WARMUP:
            self.prepare_trace()
        elif after in _RECORDING:
            self.start_trace()

    def _give_up_window(self) -> None:
        """Drop what was prepared. As in torch the result is empty then, unless an earlier window left one."""
        if self._recorded is None:
            self.start_trace()
            self.stop_trace()
        elif self._collector is not None:
            self._collector.discard()
            self._collector = None

    def _hand_over(self) -> None:
        if self.on_trace_ready is None:
            return
        try:
            self.on_trace_ready(self)
        except BaseException as error:
            self._has_failed = True
            if hasattr(error, "add_note"):
                error.add_note("hotspan: raised by on_trace_ready; the profile has ended, its trace is kept")
            raise

    def _open_step(self) -> None:
        if self.record_steps:
            self._step_range = record_function(f"ProfilerStep#{self.step_num}")
            self._step_range.__enter__()

    def _close_step(self) -> None:
        step, self._step_range = self._step_range, None
        if step is not None:
            step.__exit__(None, None, None)

    def _describe(self) -> dict[str, str]:
        described = self._request.metadata()
        described["trace_id"] = json.dumps(self._trace_id)
        described["cpu_threads"] = json.dumps(_cpu_threads())
        distributed = _distributed_info()
        if distributed:
            described["distributedInfo"] = json.dumps(distributed)
        return {**described, **self._metadata}


def _cpu_threads() -> dict[str, int]:
    """How many threads torch computes with, and how many cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = os.cpu_count() or 1 if affinity is None else len(affinity(0))
    return {"torch": torch.get_num_threads(), "cores": cores}


def new_trace_id() -> str:
    """Return a name for a window that no other has."""
    return f"{uuid.uuid4().int:032X}"


def _since(begun: int) -> int:
    """Microseconds since a moment; more than none."""
    return max(1, (time.perf_counter_ns() - begun) // 1000)


def _distributed_info() -> dict[str, Any]:
    """This process's place in a distributed job, as torch writes it."""
    distributed = torch.distributed
    if not distributed.is_available() or not distributed.is_initialized():
        return {}
    backend = distributed.get_backend()
    info: dict[str, Any] = {
        "backend": backend,
        "rank": distributed.get_rank(),
        "world_size": distributed.get_world_size(),
    }
    # torch keeps these to itself, so they are taken as they come.
    with contextlib.suppress(AttributeError, RuntimeError, ValueError):
        info["pg_count"] = distributed.get_pg_count()
        info["pg_config"] = distributed.distributed_c10d._get_all_pg_configs()
        if backend == "nccl":
            info["nccl_version"] = ".".join(str(part) for part in torch.cuda.nccl.version())
    return info


def _warn_about_ignored(config: Any) -> None:
    ignored = [f"experimental_config.{name}" for name in KINETO_ONLY if is_set(config, name)]
    for names in {names for setting, names in DEPRECATED.items() if is_set(config, setting)}:
        warnings.warn(f"{names} deprecated and ignored", FutureWarning, stacklevel=3)
    if ignored:
        warn_once(f"{', '.join(ignored)}: accepted for torch.profiler's sake, and ignored", stacklevel=4)
