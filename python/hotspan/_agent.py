"""The recording side of ``hotspan run``, inside the program: begins with the interpreter, ends with it.

Torch is never imported from here; its operators are recorded from the moment the program has imported it.
"""

from __future__ import annotations

import atexit
import os
import sys
import time

from hotspan import _core

# Every program that is recorded pays for what is imported here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, NoReturn

    from hotspan._agent_functions import Functions
    from hotspan._agent_torch import Torch

#: Set by ``hotspan run``: what to record, and the folder to write to.
VARIABLE = "HOTSPAN_RUN"

_agent: _core.Agent | None = None
_torch: Torch | None = None
_functions: Functions | None = None
_options: dict[str, Any] = {}
# The profilers that have what only one can have: one may start inside another.
_borrowers: set[str] = set()
_exit_now = os._exit


def begin(began: int) -> None:
    """Begin to record this process, when ``hotspan run`` asked for it; the interpreter came to us at that moment."""
    text = os.environ.get(VARIABLE)
    if not text:
        return
    _options.update(_core.read_json(text))
    os.register_at_fork(after_in_child=_begin_in_child)
    # Children of multiprocessing end without the usual ceremony; they are told apart from crashes by this.
    os._exit = _exit
    atexit.register(finish)
    _start(began)


def finish() -> None:
    """Write what is left and end the recording of this process."""
    global _agent
    agent, _agent = _agent, None
    if agent is not None:
        if _functions is not None:
            _functions.finish(agent)
        if _torch is not None:
            _torch.finish()
        agent.finish()


def lend(borrower: str, operators: bool) -> None:
    """Leave devices and hooks in threads to another profiler; operators too, where it records them itself."""
    if _agent is not None and not _borrowers:
        _agent.lend(operators)
    _borrowers.add(borrower)


def take_back(borrower: str, meanwhile: _core.Trace | None) -> None:
    """Go on when nobody else borrows; what was recorded meanwhile becomes part of the recording."""
    _borrowers.discard(borrower)
    if _agent is None:
        return
    if meanwhile is not None:
        _agent.add_trace(meanwhile)
    if _borrowers:
        return
    try:
        _agent.take_back()
        if _torch is not None:
            _torch.tell(True)
    except _core.CollectError as error:
        print(f"hotspan: not all of torch is recorded any more: {error}", file=sys.stderr)


def _start(began: int) -> None:
    global _agent, _torch, _functions
    get = _options.get
    _agent = _core.Agent.start(_options["spool"], get("since"), get("until"), get("budget"))
    _torch = None
    _borrowers.clear()
    _agent.set_metadata("hotspan.environment", _environment())
    by_steps = bool(get("steps") or get("every"))
    if by_steps:
        # Only who makes steps knows when; see `_agent_torch`.
        _agent.record(False)
    rate = int(get("rate", 100))
    if rate > 0:
        try:
            _agent.record_samples(rate, bool(get("native", True)))
        except _core.CollectError as error:
            print(f"hotspan: Python code is not sampled: {error}", file=sys.stderr)
    if get("operators", True):
        if "torch" in sys.modules:
            _record_torch(sys.modules["torch"])
        elif not any(isinstance(finder, _TorchWatcher) for finder in sys.meta_path):
            sys.meta_path.insert(0, _TorchWatcher())
    if get("functions") or get("lines"):
        from hotspan._agent_functions import Functions

        _functions = Functions(bool(get("functions")), get("lines", []), bool(get("memory_lines")))
    _agent.is_ready(began)


def _begin_in_child() -> None:
    """Record a forked child into a file of its own; the parent's threads are not here."""
    if _agent is not None:
        _agent.forget()
        if _functions is not None:
            _functions.forget()
        try:
            _start(time.time_ns())
        except Exception as error:
            print(f"hotspan: this process is not recorded: {error}", file=sys.stderr)


def _exit(status: int) -> NoReturn:
    finish()
    _exit_now(status)


def _environment() -> dict[str, Any]:
    system = os.uname()
    return {
        "python": sys.version.split()[0],
        "implementation": {"cpython": "CPython", "pypy": "PyPy"}.get(
            sys.implementation.name, sys.implementation.name
        ),
        "executable": sys.executable,
        "argv": sys.orig_argv,
        "platform": "-".join((system.sysname, system.release, system.machine)),
        "cpus": len(os.sched_getaffinity(0)),
        "process": os.getpid(),
        "parent": os.getppid(),
        "variables": {
            name: value
            for name, value in os.environ.items()
            if name.endswith("_NUM_THREADS") or name.startswith(("CUDA_VISIBLE", "TORCH_", "PYTORCH_"))
        },
    }


def _record_torch(torch: ModuleType) -> None:
    global _torch
    if _agent is not None and torch.__file__ is not None:
        from hotspan._agent_torch import Torch

        _torch = Torch(_agent, torch, _options)


class _TorchWatcher:
    """Notices when the program imports torch."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Let the others find torch, and act once it is loaded."""
        if fullname != "torch":
            return None
        sys.meta_path.remove(self)
        for finder in sys.meta_path:
            spec = finder.find_spec(fullname, path, target) if hasattr(finder, "find_spec") else None
            if spec is not None:
                _act_after_loading(spec)
                return spec
        return None


def _act_after_loading(spec: ModuleSpec) -> None:
    loader = spec.loader
    if loader is None:
        return
    load = loader.exec_module

    def load_and_act(module: ModuleType) -> None:
        del loader.exec_module
        load(module)
        _record_torch(module)

    loader.exec_module = load_and_act  # type: ignore[method-assign]
