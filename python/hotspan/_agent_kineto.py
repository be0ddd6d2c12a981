"""Operators without torch hooks, under ``hotspan run``: torch.profiler records a few optimizer steps of the program.

It keeps everything in memory until it is stopped, and can be stopped only on the thread that started it. So it runs
from the end of one step to the end of another, and never in a program without an optimizer.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Any

from hotspan import _beside_torch, _core, _torch_switches
from hotspan.profiler._kineto import KinetoCollector
from hotspan.profiler._request import Request

MOST_STEPS = 20
MOST_SECONDS = 5.0


class SomeSteps:
    """The first steps of a program, recorded by torch.profiler; the program's own use of it goes first."""

    def __init__(self, agent: _core.Agent, shapes: bool) -> None:
        from torch.optim.optimizer import register_optimizer_step_post_hook

        self._agent = agent
        self._shapes = shapes
        self._collector: KinetoCollector | None = None
        self._thread = 0
        self._steps = 0
        self._until = 0.0
        self._is_over = False
        register_optimizer_step_post_hook(self._after_step)
        self._beside = _beside_torch.BesideTorchProfiler(before=self.end, after=lambda: None)
        os.register_at_fork(after_in_child=self._leave_to_parent)

    def end(self) -> None:
        """Stop for good, where that is possible; what was recorded becomes part of the recording."""
        collector = self._collector
        self._is_over = True
        if collector is None or threading.get_ident() != self._thread:
            return
        self._collector = None
        with _beside_torch.OWN_PROFILE:
            trace = collector.stop({})
        self._agent.add_trace(trace)

    def _after_step(self, *_: object) -> None:
        try:
            self._follow()
        except Exception as error:
            # Whatever torch has against it is no concern of the program.
            self._is_over = True
            self._agent.set_metadata("hotspan.torch_profiler", {"failed": str(error)})

    def _follow(self) -> None:
        if self._is_over:
            return
        if self._collector is None:
            self._start()
        elif threading.get_ident() == self._thread:
            self._steps += 1
            if self._steps >= MOST_STEPS or time.monotonic() > self._until:
                self.end()

    def _start(self) -> None:
        import torch
        from torch.profiler import ProfilerActivity

        if _torch_switches.torch_profiler_is_enabled(torch):
            self._is_over = True
            return
        cpu: Any = ProfilerActivity.CPU
        request = Request(activities=frozenset({cpu}), given_activities=(cpu,), shapes=self._shapes)
        self._collector = KinetoCollector(request)
        self._thread, self._until = threading.get_ident(), time.monotonic() + MOST_SECONDS
        with _beside_torch.OWN_PROFILE:
            self._collector.start()

    def _leave_to_parent(self) -> None:
        """In a forked child: nothing more is collected, and nothing is stopped that has its threads elsewhere."""
        self._is_over = True
        collector = self._collector
        if collector is not None:
            from torch.profiler import ProfilerActivity

            collector.toggle(False, [ProfilerActivity.CPU])
            collector.forget()
