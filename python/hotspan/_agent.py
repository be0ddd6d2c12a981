"""The recording side of ``hotspan run``, inside the program: begins with the interpreter, ends with it.

Torch is never imported from here; its operators are recorded from the moment the program has imported it.
"""

from __future__ import annotations

import atexit
import os
import sys
import time

from hotspan import _core
from hotspan._agent_imports import Watcher, is_torch, loaded_torch
from hotspan._agent_process import Ends, watch_spawn, watch_subprocess

# Every program that is recorded pays for what is imported here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from hotspan._agent_functions import Functions
    from hotspan._agent_torch import Torch

#: Set by ``hotspan run``: what to record, and the folder to write to.
VARIABLE = "HOTSPAN_RUN"

#: Set by launchers: which of many processes this one is.
_RANKS = (
    *("RANK", "LOCAL_RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK"),
    *("PMIX_RANK", "SLURM_PROCID"),
)

_agent: _core.Agent | None = None
_torch: Torch | None = None
# Whether it was tried to record torch, successfully or not.
_knows_torch = False
_functions: Functions | None = None
_options: dict[str, Any] = {}
# The profilers that have what only one can have: one may start inside another.
_borrowers: set[str] = set()
_watcher = Watcher()
_told: dict[str, str] = {}
#: What the recording says about torch's operators.
OPERATORS = "hotspan.operators"


def begin(began: int) -> None:
    """Begin to record this process, when ``hotspan run`` asked for it; the interpreter came to us at that moment.

    The moment is one of the monotonic clock: wall time may be set while a program runs.
    """
    text = os.environ.get(VARIABLE)
    if not text:
        return
    _told.update((name, value) for name, value in os.environ.items() if name.startswith("HOTSPAN_"))
    _options.update(_core.read_json(text))
    os.register_at_fork(before=_pause, after_in_parent=_resume, after_in_child=_begin_in_child)
    Ends(finish, flush, _begin_again).watch()
    watch_spawn()
    if "subprocess" in sys.modules:
        watch_subprocess(sys.modules["subprocess"])
    else:
        _watcher.watch("subprocess", _note_subprocess)
    atexit.register(finish)
    _start(began)


def told() -> dict[str, str]:
    """Return the variables by which ``hotspan run`` told this process what to do, for its children."""
    return _told


def finish() -> None:
    """Write what is left and end the recording of this process."""
    global _agent
    agent, _agent = _agent, None
    if agent is not None:
        if not _knows_torch and _options.get("operators", True) and loaded_torch() is not None:
            reason = "torch is loaded, but its import was not noticed"
            agent.set_metadata(OPERATORS, {"recorded": False, "reason": reason})
        try:
            if _functions is not None:
                _functions.finish(agent)
            if _torch is not None:
                _torch.finish()
        except Exception as error:
            # The program may have changed torch since, or taken it apart.
            print(f"hotspan: not all of torch is recorded: {type(error).__name__}: {error}", file=sys.stderr)
        agent.finish(_options.get("launcher"))


def flush() -> None:
    """Write what was recorded so far: this process may be about to end."""
    if _agent is not None:
        _agent.flush()


def look_for_torch() -> None:
    """Record the torch that came into this process without our notice; called when its library is there."""
    if _agent is None or _knows_torch or _borrowers:
        return
    torch = loaded_torch()
    # Not while torch.profiler runs: it would be in the way of ours.
    if torch is not None and not torch._C._autograd._profiler_enabled():
        _record_torch(torch, is_late=True)


def lend(borrower: str, operators: bool) -> None:
    """Leave devices and hooks in threads to another profiler; operators too, where it records them itself."""
    if _agent is not None and not _borrowers:
        _agent.lend(operators)
    _borrowers.add(borrower)


def end_steps() -> None:
    """End what torch.profiler records for want of hooks: another profile begins."""
    if _torch is not None:
        _torch.end_steps()


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
    global _agent, _torch, _functions, _knows_torch
    get = _options.get
    spool = _options["spool"]
    # A path that is no text comes as its bytes.
    folder = spool if isinstance(spool, str) else os.fsdecode(bytes(spool))
    size, time = get("segment") or (None, None)
    until, offset = get("until"), get("wall_offset")
    _agent = _core.Agent.start(folder, get("since"), until, get("budget"), offset, (size, time))
    _torch = _functions = None
    _knows_torch = False
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
        torch = loaded_torch()
        if torch is not None:
            _record_torch(torch)
        else:
            _watcher.watch("torch", _note_torch)
            _agent.watch_for_torch()
    if get("functions") or get("lines"):
        from hotspan._agent_functions import Functions

        _functions = Functions(bool(get("functions")), get("lines", []), bool(get("memory_lines")))
    _agent.is_ready(began)


def _pause() -> None:
    """End our threads for the moment of a fork: Python counts them, and a child would find their locks held."""
    if _agent is not None:
        _agent.pause()


def _resume() -> None:
    if _agent is not None:
        _agent.resume()


def _begin_in_child() -> None:
    """Record a forked child into a file of its own; the parent's threads are not here."""
    if _agent is not None:
        _agent.forget()
        if _functions is not None:
            _functions.forget()
        try:
            _start(time.monotonic_ns())
        except Exception as error:
            print(f"hotspan: this process is not recorded: {error}", file=sys.stderr)


def _begin_again() -> None:
    """Go on to record a process that did not become another program after all."""
    try:
        _start(time.monotonic_ns())
    except Exception as error:
        print(f"hotspan: this process is not recorded any more: {error}", file=sys.stderr)


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
            if name.endswith("_NUM_THREADS")
            or name.startswith(("CUDA_VISIBLE", "TORCH_", "PYTORCH_"))
            or name in _RANKS
        },
    }


def _note_subprocess(subprocess: ModuleType) -> None:
    _watcher.forget("subprocess")
    watch_subprocess(subprocess)


def _note_torch(torch: ModuleType) -> None:
    if is_torch(torch) and not _knows_torch:
        _record_torch(torch)


def _record_torch(torch: ModuleType, *, is_late: bool = False) -> None:
    global _torch, _knows_torch
    if _agent is None:
        return
    _knows_torch = True
    from hotspan._agent_torch import Torch

    _watcher.forget("torch")
    try:
        _torch = Torch(_agent, torch, _options, is_late)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # This may be a torch that we do not know, or a stub that raises what it likes when it is looked at: the
        # program's import succeeds all the same.
        _agent.set_metadata(OPERATORS, {"recorded": False, "reason": f"{type(error).__name__}: {error}"})
        print(f"hotspan: torch operators are not recorded: {error}", file=sys.stderr)
