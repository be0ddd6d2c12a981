"""``hotspan run``: the program behaves as without it, and what it did is in the file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import hotspan

#: Programs that end, start or branch in ways a profiler could disturb.
AWKWARD = {
    "exit code": "import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)",
    "exit message": "raise SystemExit('bye')",
    "os._exit": "import os, sys; print('out', flush=True); os._exit(3)",
    "uncaught exception": "def f(): raise ValueError('no')\nf()",
    "recursion error": "def f(): f()\ntry: f()\nexcept RecursionError: print('deep')",
    "terminated": "import os, signal; print('out', flush=True); os.kill(os.getpid(), signal.SIGTERM)",
    "own signal handler": (
        "import os, signal\n"
        "signal.signal(signal.SIGTERM, lambda *_: print('caught'))\n"
        "os.kill(os.getpid(), signal.SIGTERM); print('on')"
    ),
    "segmentation fault": "import ctypes; print('out', flush=True); ctypes.string_at(0)",
    "atexit": "import atexit; atexit.register(print, 'at exit'); print('main')",
    "fork": (
        "import os\n"
        "pid = os.fork()\n"
        "if pid == 0:\n    print('child', flush=True); os._exit(5)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"
    ),
    "exec": "import os, sys; os.execv(sys.executable, [sys.executable, '-c', 'print(1 + 1)'])",
    "daemon thread": (
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(100,), daemon=True).start(); print('done')"
    ),
    "threads": (
        "import threading\n"
        "threads = [threading.Thread(target=print, args=(n,)) for n in range(3)]\n"
        "for thread in threads: thread.start(); thread.join()"
    ),
    "main guard and arguments": "import sys\nif __name__ == '__main__': print(sys.argv[1:], __file__, sys.path[0])",
    "pickled class of main": (
        "import pickle\nclass Thing:\n    pass\nprint(type(pickle.loads(pickle.dumps(Thing()))))"
    ),
    "modules at the start": "import sys; print('torch' in sys.modules, 'numpy' in sys.modules)",
    "standard input": "print(input())",
    **{
        f"multiprocessing {method}": (
            "import multiprocessing as m, sys\n"
            "def double(n): return 2 * n\n"
            "if __name__ == '__main__':\n"
            f"    with m.get_context({method!r}).Pool(2) as pool: print(pool.map(double, range(5)))\n"
            "    sys.exit(9)"
        )
        for method in ("fork", "spawn", "forkserver")
    },
}


def run(command: list[str], folder: Path, **more: object) -> subprocess.CompletedProcess[str]:
    # pytest asks for a dump of every crash, with addresses that differ from run to run.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONFAULTHANDLER"}
    return subprocess.run(
        command,
        cwd=folder,
        input="typed\n",
        capture_output=True,
        text=True,
        timeout=60,
        env=environment,
        **more,
    )  # type: ignore[call-overload, no-any-return]


def record(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, "-m", "hotspan", "run", *arguments], folder)


@pytest.mark.parametrize("name", AWKWARD)
def test_the_program_does_not_notice(name: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(AWKWARD[name])
    bare = run([sys.executable, "program.py", "-x", "argument"], tmp_path)
    seen = record(tmp_path, "program.py", "-x", "argument")
    assert (seen.returncode, seen.stdout) == (bare.returncode, bare.stdout)
    # The report comes after what the program has said.
    assert seen.stderr.startswith(bare.stderr)
    assert "Where the time went" in seen.stderr
    assert not list(tmp_path.glob("*.spool*"))
    assert hotspan.open(tmp_path / "program.hotspan").losses.keys() <= {"truncated_file", "unreadable_frame"}


def test_a_module_with_relative_imports(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "words.py").write_text("WORD = 'imported'")
    (package / "main.py").write_text("from .words import WORD\nimport sys\nprint(WORD, sys.argv[1:])")
    seen = record(tmp_path, "-m", "package.main", "1")
    assert (seen.returncode, seen.stdout) == (0, "imported ['1']\n")
    assert (tmp_path / "package.main.hotspan").exists()


def test_any_command_and_its_python_children(tmp_path: Path) -> None:
    seen = record(tmp_path, "-o", "x.hotspan", "sh", "-c", f"{sys.executable} -c 'print(1)'; exit 4")
    assert (seen.returncode, seen.stdout) == (4, "1\n")
    assert hotspan.open(tmp_path / "x.hotspan").metadata["hotspan.run"]["ended"] == "with exit code 4"


def test_own_sitecustomize_is_found(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('customized')")
    (tmp_path / "program.py").write_text("import sitecustomize; print(sitecustomize.__file__)")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-m", "hotspan", "run", "program.py"]
    seen = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    # Once for hotspan's own process, once for the program.
    assert seen.stdout.splitlines() == ["customized", "customized", str(tmp_path / "sitecustomize.py")]


def test_signals_reach_the_program(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        textwrap.dedent("""
            import signal, sys, time
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(11))
            print("ready", flush=True)
            time.sleep(60)
        """)
    )
    command = [sys.executable, "-m", "hotspan", "run", "program.py"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 11


def test_what_cannot_be_run_says_so(tmp_path: Path) -> None:
    for arguments, message, code in [
        (["missing.py"], "missing.py: no such file", 2),
        (["no-such-command-here"], "failed to run no-such-command-here", 127),
        ([], "nothing to run", 2),
        (["-o", "no/such/folder/x.hotspan", "true"], "cannot write to", 2),
    ]:
        seen = record(tmp_path, *arguments)
        assert seen.returncode == code
        assert message in seen.stderr
    assert not list(tmp_path.iterdir())


def test_a_killed_program_leaves_what_it_did(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import time, os\ntime.sleep(2.5); os.kill(os.getpid(), 9)")
    seen = record(tmp_path, "program.py")
    assert seen.returncode == -signal.SIGKILL
    trace = hotspan.open(tmp_path / "program.hotspan")
    assert trace.losses["truncated_file"] == 1
    report = run([sys.executable, "-m", "hotspan", "report", "program.hotspan", "--json"], tmp_path)
    assert json.loads(report.stdout)["report"]["Where the time went"]
