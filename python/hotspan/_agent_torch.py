"""What ``hotspan run`` hooks into torch, once the program has imported it.

Operators and device work are recorded in Rust; here is what only Python can do: count optimizer steps, make way for
torch.profiler, wait for devices at the end.
"""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from hotspan import _agent, _core, _torch_switches
from hotspan._beside_torch import BesideTorchProfiler
from hotspan._notices import say_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hotspan._agent_kineto import SomeSteps


class Torch:
    """The torch of this process, recorded."""

    def __init__(self, agent: _core.Agent, torch: ModuleType, options: dict[str, Any], is_late: bool) -> None:
        self._agent = agent
        self._torch = torch
        self._process = os.getpid()
        self._has_stacks = False
        self._has_device = False
        self._has_operators = False
        self._some_steps: SomeSteps | None = None
        self._steps = 0
        self._window = options.get("steps")
        self._every = options.get("every")
        self._describe()
        try:
            self._record(bool(options.get("shapes")), bool(options.get("memory")))
        except _core.CollectError as error:
            reason = str(error).splitlines()[0]
            agent.set_metadata(_agent.OPERATORS, {"recorded": False, "reason": reason})
            say_once(
                "torch operators are not recorded, but for those of a few optimizer steps, "
                f"through torch.profiler: {reason} (see `hotspan doctor`)"
            )
            # Devices are recorded by other means.
            self._record_device()
            self._record_some_steps(bool(options.get("shapes")))
            return
        agent.set_metadata(_agent.OPERATORS, {"recorded": True, "is_late": is_late})
        if options.get("stack"):
            self._trace_calls()
        self._record_device()

    def _describe(self) -> None:
        threads = self._torch.get_num_threads()
        versions = {
            "torch": self._torch.__version__,
            "cuda": self._torch.version.cuda,
            "threads": threads,
        }
        self._agent.set_metadata("hotspan.torch", versions)
        cores = len(os.sched_getaffinity(0))
        self._agent.set_metadata("cpu_threads", {"torch": threads, "cores": cores})

    def _record(self, shapes: bool, memory: bool) -> None:
        by_steps = bool(self._window or self._every)
        folder = str(Path(str(self._torch.__file__)).parent)
        self._agent.record_operators(folder, shapes, memory, not by_steps)
        self._has_operators = True
        self.tell(True)
        _watch_torch_profiler()
        if by_steps:
            self._follow_steps()

    def _record_some_steps(self, shapes: bool) -> None:
        """Let torch.profiler record a part of the program's operators."""
        from hotspan._agent_kineto import SomeSteps

        _watch_torch_profiler()
        if self._window is None and self._every is None:
            self._some_steps = SomeSteps(self._agent, shapes)

    def end_steps(self) -> None:
        """End what torch.profiler records, if it does."""
        if self._some_steps is not None and self._process == os.getpid():
            self._some_steps.end()

    def tell(self, recording: bool) -> None:
        """Tell torch whether a profiler records."""
        if not self._has_operators:
            return
        if recording:
            _torch_switches.switch_on(self._torch, "run")
        else:
            _torch_switches.switch_off(self._torch, "run")

    def finish(self) -> None:
        """Hand over what was traced, and wait for what devices still do."""
        if self._process != os.getpid():
            return
        # The program may have changed them since.
        self._describe()
        self.end_steps()
        if self._has_stacks:
            # Before the wait below, which is no call of the program's.
            from hotspan._stacks import file_prefixes

            self._agent.add_calls(file_prefixes())
        if self._has_device:
            from hotspan._devices import wait

            wait()

    def _trace_calls(self) -> None:
        from hotspan._stacks import module_call_code

        try:
            self._agent.trace_calls(module_call_code())
            self._has_stacks = True
        except (_core.CollectError, ValueError) as error:
            print(f"hotspan: operators go without Python stacks: {error}", file=sys.stderr)

    def _record_device(self) -> None:
        if os.environ.get("HOTSPAN_CUPTI"):
            self._start_device()
        elif self._torch.version.cuda is not None:
            # When the program begins to use CUDA, and not before: a look at devices would make a fork useless.
            self._torch.cuda._lazy_call(self._start_device)

    def _start_device(self) -> None:
        if self._process != os.getpid():
            return
        try:
            self._agent.record_device()
            self._has_device = True
        except _core.CollectError as error:
            print(f"hotspan: device work is not recorded, only the CPU: {error}", file=sys.stderr)

    def _follow_steps(self) -> None:
        from torch.optim.optimizer import register_optimizer_step_post_hook

        self._agent.record(self._is_wanted())

        def after_step(*_: object) -> None:
            if self._process == os.getpid():
                before = self._is_wanted()
                self._steps += 1
                if self._is_wanted() != before:
                    self._agent.record(not before)

        register_optimizer_step_post_hook(after_step)

    def _is_wanted(self) -> bool:
        if self._window is not None and not self._window[0] <= self._steps < self._window[1]:
            return False
        return self._every is None or self._steps % int(self._every) == 0


@functools.cache
def _watch_torch_profiler() -> BesideTorchProfiler:
    """Lend what can only be had once; a forked child has the hooks of its parent."""
    name = "torch.profiler"
    return BesideTorchProfiler(
        before=lambda: _agent.lend(name, operators=False), after=lambda: _agent.take_back(name, None)
    )
