"""``profile``: torch.profiler's context manager. Schedules what is recorded; a collector records it."""

from __future__ import annotations

import contextlib
import json
import os
import uuid
import warnings
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any

import torch
from torch.profiler import ProfilerAction, ProfilerActivity, record_function

from hotspan._notices import warn_once
from hotspan.profiler import _collector
from hotspan.profiler._experimental import KINETO_ONLY, is_set
from hotspan.profiler._request import (
    Activity,
    Request,
    parse_activities,
    warn_about_missing_devices,
)
from hotspan.profiler._results import Results
from hotspan.profiler._schedule import Schedule, always

_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


class profile(Results):  # noqa: N801 (torch's name)
    """Records torch operators while the program runs; the arguments are those of ``torch.profiler.profile``.

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
        super().__init__()
        given = None if activities is None else tuple(activities)
        parsed, operators = parse_activities(given)
        if use_cuda and ProfilerActivity.CUDA not in parsed:
            parsed |= {ProfilerActivity.CUDA}
            given = None if given is None else (*given, ProfilerActivity.CUDA)
        if post_processing_timeout_s is not None and post_processing_timeout_s < 0:
            raise ValueError(f"post_processing_timeout_s={post_processing_timeout_s}: must not be negative")
        warn_about_missing_devices(given, parsed)
        _warn_about_ignored(experimental_config, post_processing_timeout_s)
        self._accumulates = acc_events
        self._request = Request(
            activities=parsed,
            given_activities=given,
            shapes=record_shapes or with_flops,
            memory=profile_memory,
            stack=with_stack,
            flops=with_flops,
            modules=with_modules,
            operators=operators,
            experimental_config=experimental_config,
        )
        self.activities = set(parsed)
        self.record_shapes = self._request.shapes
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
        self._trace_id: str | None = None
        self._step_range: record_function | None = None
        self._collector: _collector.Collector | None = None
        self._is_recording = False
        # A handler that fails ends the profile: what it would do with the next window is anybody's guess.
        self._has_failed = False

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
            self._collector = _collector.choose(self._request)

    def start_trace(self) -> None:
        """Begin to record."""
        self.prepare_trace()
        collector = self._collector
        assert collector is not None
        _collector.claim(collector)
        try:
            if self.execution_trace_observer is not None:
                self.execution_trace_observer.start()
            self._trace_id = (self.custom_trace_id_callback or _new_trace_id)()
            collector.start()
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
            self._keep(collector.stop(self._describe()))
        finally:
            _collector.release()

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

    def _scheduled(self, step: int) -> ProfilerAction:
        action = self.schedule(step)
        if action not in (ProfilerAction.NONE, ProfilerAction.WARMUP, *_RECORDING):
            raise ValueError(f"the schedule returned {action!r} for step {step}: not an action it may return")
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


def _new_trace_id() -> str:
    return f"{uuid.uuid4().int:032X}"


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


def _warn_about_ignored(config: Any, timeout: float | None) -> None:
    ignored = [f"experimental_config.{name}" for name in KINETO_ONLY if is_set(config, name)]
    if timeout is not None:
        ignored.append("post_processing_timeout_s")
    if ignored:
        warn_once(f"{', '.join(ignored)}: accepted for torch.profiler's sake, and ignored", stacklevel=4)
