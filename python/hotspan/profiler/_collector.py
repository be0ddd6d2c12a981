"""Collectors: what records while the program runs, and the choice between them.

hotspan's own collector is taken unless it cannot do what is asked for, or cannot be built here. Then torch.profiler
records, and hotspan reads what it exports. ``HOTSPAN_COLLECTOR=native`` or ``kineto`` forces one of the two.
``HOTSPAN_CUPTI`` names the libcupti to record CUDA devices with, even where torch sees no device.
"""

from __future__ import annotations

import atexit
import os
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

import torch
from torch.profiler import ProfilerActivity

from hotspan import _core, _devices, _torch_switches
from hotspan._beside_torch import BesideTorchProfiler
from hotspan._core import CollectError
from hotspan._notices import say_once
from hotspan._stacks import file_prefixes, module_call_code
from hotspan.profiler import _device, _rpc, _under_run
from hotspan.profiler._garbage import GarbageCollections
from hotspan.profiler._identities import Identities
from hotspan.profiler._kineto import KinetoCollector
from hotspan.profiler._modules import ModuleCalls
from hotspan.profiler._request import Request, device_of
from hotspan.profiler._tensors import TensorMarks

# What this recording is called where torch's switches are kept.
_RECORDING = "profile"


class Collector(Protocol):
    """Records one window of the program."""

    def prepare(self) -> None:
        """Do what takes time before recording starts."""

    def start(self) -> None:
        """Begin to record."""

    def stop(self, metadata: dict[str, str]) -> _core.Trace:
        """End, and return what was recorded, with this metadata."""

    def discard(self) -> None:
        """End, and forget."""

    def toggle(self, record: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Pause or resume."""

    def look(self) -> None:
        """See what the program's tensors are now: a step of its loop has ended."""

    @property
    def results(self) -> Any:
        """What torch.profiler recorded, where that did; None otherwise."""

    @property
    def identities(self) -> Identities | None:
        """Which tensor is which, where hotspan's own collector recorded that."""


class _Hook(Protocol):
    def remove(self) -> None:
        """Listen no longer."""


class NativeCollector:
    """hotspan's own collector."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._recorder: _core.Recorder | None = None
        self._tensors: TensorMarks | None = None
        self.identities: Identities | None = None
        self._has_device = False
        # What listens to the program meanwhile.
        self._hooks: list[_Hook] = []
        self._prefixes: list[str] = []

    def prepare(self) -> None:
        """Load the hooks of the installed torch; the first time, compile them."""
        _core.load_torch_hooks(torch_folder())
        if _device.is_wanted(self._request):
            _core.warm_up_device()

    def start(self) -> None:
        """Begin to record, on all threads."""
        request, has_device = self._request, _device.is_wanted(self._request)
        _under_run.lend()
        try:
            recorder = _core.Recorder.start(torch_folder(), self._wanted())
        except CollectError:
            _under_run.take_back(None)
            raise
        self._recorder = recorder
        _torch_switches.switch_on(torch, _RECORDING)
        self._hooks = [_make_room(recorder, request.memory)]
        if has_device:
            self._has_device = _device.start(recorder, request)
        if not request.operators:
            recorder.toggle(False)
        if request.shapes:
            self._hooks.append(_rpc.BeforeRpc(recorder.release_memory))
        if request.modules:
            self._hooks.append(ModuleCalls(recorder))
        if request.garbage:
            self._hooks.append(GarbageCollections(recorder))
        if request.memory:
            self.identities = Identities() if request.stack else None
            self._tensors = TensorMarks(_core.clock_now, self.identities)
        if request.stack:
            self._trace_calls(recorder)

    def stop(self, metadata: dict[str, str]) -> _core.Trace:
        """End, and return what was recorded."""
        marks = self._tensors.remove() if self._tensors is not None else []
        if self._has_device:
            # CUPTI hands out what has ended; torch.profiler waits here too.
            _devices.wait()
        recorder = self._end()
        if recorder is None:
            raise CollectError("nothing is being recorded")
        try:
            trace, inputs = recorder.stop(list(metadata.items()), marks, self._prefixes)
        finally:
            # Not before: until then the hooks say that a profiler records.
            _torch_switches.switch_off(torch, _RECORDING)
        if self.identities is not None:
            self.identities.inputs = inputs
        _under_run.take_back(trace)
        return trace

    def discard(self) -> None:
        """End, and forget."""
        recorder = self._end()
        if recorder is not None:
            recorder.discard()
            _torch_switches.switch_off(torch, _RECORDING)
            _under_run.take_back(None)

    def __del__(self) -> None:
        # Of a profile that was dropped without being stopped, the hooks would live on, and the recording with them.
        if getattr(self, "_recorder", None) is not None:
            self.discard()

    def toggle(self, record: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Pause or resume the recording of operators, of device work, or of both."""
        if self._recorder is not None and ProfilerActivity.CPU in activities:
            self._recorder.toggle(record)
        if self._recorder is not None and ProfilerActivity.CUDA in activities:
            self._recorder.toggle_device(record)

    def look(self) -> None:
        """Mark the gradients that are there."""
        if self._tensors is not None:
            self._tensors.look()

    @property
    def results(self) -> None:
        """Nothing of torch's."""
        return None

    def _wanted(self) -> set[str]:
        request = self._request
        wanted = {
            "shapes": request.shapes,
            "memory": request.memory,
            "prepared_inputs": request.shapes and not _rpc.is_running(),
            "ids": request.ids,
            "tensors": request.tensors,
            "modules": request.modules,
            "overload_names": request.overload_names,
        }
        return {name for name, is_wanted in wanted.items() if is_wanted}

    def _trace_calls(self, recorder: _core.Recorder) -> None:
        # Before, so that what it takes is not traced.
        self._prefixes = file_prefixes()
        try:
            recorder.trace_calls(module_call_code())
        except CollectError:
            self.discard()
            raise

    def _end(self) -> _core.Recorder | None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []
        if self._tensors is not None:
            self._tensors.remove()
            self._tensors = None
        recorder, self._recorder = self._recorder, None
        return recorder


def _make_room(recorder: _core.Recorder, memory: bool) -> BesideTorchProfiler:
    """Let torch.profiler start, at the cost of what needs hooks in threads: memory and ranges for profilers only."""

    def release() -> None:
        if memory:
            say_once("torch.profiler starts: hotspan goes on without memory")
        recorder.release_memory()

    return BesideTorchProfiler(before=release, after=lambda: _torch_switches.switch_on(torch, _RECORDING))


def torch_folder() -> str:
    """Return the folder of the installed torch."""
    return str(Path(torch.__file__).parent)


def choose(request: Request) -> Collector:
    """Return the collector for a request, ready to start."""
    forced = os.environ.get("HOTSPAN_COLLECTOR", "")
    if forced not in ("", "native", "kineto"):
        raise CollectError(f"HOTSPAN_COLLECTOR={forced}: the collectors are 'native' and 'kineto'")
    beyond = _beyond_native(request)
    collector: Collector = NativeCollector(request)
    if forced == "kineto":
        collector = KinetoCollector(request)
    elif forced == "native":
        if beyond:
            say_once(f"HOTSPAN_COLLECTOR=native does not record {beyond} yet: the profile goes without")
    elif beyond:
        say_once(f"recording through torch.profiler, for {beyond}")
        collector = KinetoCollector(request)
    else:
        try:
            collector.prepare()
        except CollectError as error:
            reason = str(error).splitlines()[0]
            say_once(f"recording through torch.profiler, which costs more: {reason} (see `hotspan doctor`)")
            collector = KinetoCollector(request)
    collector.prepare()
    return collector


def _beyond_native(request: Request) -> str | None:
    device = device_of(request.activities)
    if device is not None and not (device == "CUDA" and _device.is_recordable()):
        return f"{device} activity"
    return None


# The collector that records, for there can be one; a profile that was dropped without being stopped does not count.
_recording: weakref.ref[Collector] | None = None
_process = 0


def refuse_if_recording() -> None:
    """Raise when a collector records already, or torch.profiler does."""
    if _recording is not None and _recording() is not None and _process == os.getpid():
        raise CollectError("hotspan is already recording in this process. hint: stop that profile first")
    _under_run.end_steps()
    if _torch_switches.torch_profiler_is_enabled(torch):
        raise CollectError(
            "torch.profiler is already recording in this process. "
            "hint: stop it before starting hotspan, or use one of the two"
        )


def claim(collector: Collector) -> None:
    """Let a collector record; refuse when another one does, or torch.profiler."""
    global _recording, _process
    refuse_if_recording()
    _recording, _process = weakref.ref(collector), os.getpid()


def release() -> None:
    """Let the next collector record."""
    global _recording
    _recording = None


@atexit.register
def _end_with_the_program() -> None:
    """Take the hooks out before torch itself goes away."""
    collector = None if _recording is None else _recording()
    if collector is not None and _process == os.getpid():
        collector.discard()
