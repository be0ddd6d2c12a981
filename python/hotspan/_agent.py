"""The recording side of ``hotspan run``, inside the program: begins with the interpreter, ends with it.

Torch is never imported from here; its operators are recorded from the moment the program has imported it.
"""

from __future__ import annotations

import atexit
import json
import os
import platform
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NoReturn

from hotspan import _core

#: Set by ``hotspan run``: what to record, and the folder to write to.
VARIABLE = "HOTSPAN_RUN"

_agent: _core.Agent | None = None
_options: dict[str, Any] = {}
_exit_now = os._exit


def begin() -> None:
    """Begin to record this process, when ``hotspan run`` asked for it."""
    text = os.environ.get(VARIABLE)
    if not text:
        return
    _options.update(json.loads(text))
    os.register_at_fork(after_in_child=_begin_in_child)
    # Children of multiprocessing end without the usual ceremony; they are told apart from crashes by this.
    os._exit = _exit
    _start()
    atexit.register(finish)


def finish() -> None:
    """Write what is left and end the recording of this process."""
    global _agent
    agent, _agent = _agent, None
    if agent is not None:
        agent.finish()


def _start() -> None:
    global _agent
    _agent = _core.Agent.start(_options["spool"])
    _agent.set_metadata("hotspan.environment", json.dumps(_environment()))
    rate = int(_options.get("rate", 100))
    if rate > 0:
        try:
            _agent.record_samples(rate, bool(_options.get("native", True)))
        except _core.CollectError as error:
            print(f"hotspan: Python code is not sampled: {error}", file=sys.stderr)
    if _options.get("operators", True):
        if "torch" in sys.modules:
            _record_operators(sys.modules["torch"])
        elif not any(isinstance(finder, _TorchWatcher) for finder in sys.meta_path):
            sys.meta_path.insert(0, _TorchWatcher())


def _begin_in_child() -> None:
    """Record a forked child into a file of its own; the parent's threads are not here."""
    if _agent is not None:
        _agent.forget()
        try:
            _start()
        except Exception as error:
            print(f"hotspan: this process is not recorded: {error}", file=sys.stderr)


def _exit(status: int) -> NoReturn:
    finish()
    _exit_now(status)


def _environment() -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "executable": sys.executable,
        "argv": sys.orig_argv,
        "platform": platform.platform(),
        "cpus": len(os.sched_getaffinity(0)),
        "process": os.getpid(),
        "parent": os.getppid(),
        "variables": {
            name: value
            for name, value in os.environ.items()
            if name.endswith("_NUM_THREADS") or name.startswith(("CUDA_VISIBLE", "TORCH_", "PYTORCH_"))
        },
    }


def _record_operators(torch: ModuleType) -> None:
    agent = _agent
    if agent is None or torch.__file__ is None:
        return
    versions = {
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "threads": torch.get_num_threads(),
    }
    agent.set_metadata("hotspan.torch", json.dumps(versions))
    try:
        folder = os.path.dirname(torch.__file__)  # noqa: PTH120
        agent.record_operators(folder, bool(_options.get("shapes")), bool(_options.get("memory")))
        # Compiled functions mark their regions only while they know that somebody looks.
        torch.autograd.profiler._is_profiler_enabled = True
    except _core.CollectError as error:
        reason = str(error).splitlines()[0]
        print(f"hotspan: torch operators are not recorded: {reason} (see `hotspan doctor`)", file=sys.stderr)


class _TorchWatcher(MetaPathFinder):
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
        _record_operators(module)

    loader.exec_module = load_and_act  # type: ignore[method-assign]
