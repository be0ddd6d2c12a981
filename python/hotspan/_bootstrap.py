"""Runs a program as Python itself would, with the sampler on: ``python -m hotspan._bootstrap script.py arguments``.

``-m module`` and ``-c code`` work as with Python. ``HOTSPAN_SAMPLE`` says what to record, as JSON with the keys of
:func:`hotspan.sample`; ``path`` is required, and ``{pid}`` in it becomes the process id. Without it the program just
runs. What the program prints, returns and raises is as without hotspan; frames of this file appear in no traceback
and no sample.
"""

from __future__ import annotations

import atexit
import builtins
import importlib.machinery
import json
import os
import pkgutil
import runpy
import sys
import types
from typing import Any, NoReturn

import hotspan.sampling


def start_sampler(setting: str) -> None:
    """Start sampling as an environment variable asks; complain and go on where that cannot be."""
    try:
        options: dict[str, Any] = json.loads(setting)
        path = str(options.pop("path")).replace("{pid}", str(os.getpid()))
        sampler = hotspan.sampling.sample(path=path, **options).start()
    except (ValueError, KeyError, TypeError, AttributeError, OSError, hotspan.HotspanError) as error:
        print(f"hotspan: not sampling: {type(error).__name__}: {error}", file=sys.stderr)
        return
    # The first to register is the last to run: exit handlers of the program are still sampled.
    atexit.register(sampler.stop)


def fresh_main() -> types.ModuleType:
    """Put a new ``__main__`` in place of this one."""
    main = types.ModuleType("__main__")
    names: dict[str, Any] = {"__builtins__": builtins, "__annotations__": {}}
    main.__dict__.update(names)
    sys.modules["__main__"] = main
    return main


def set_path(first: str) -> None:
    """Make the first entry of the search path what it is for such a program."""
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = first


def absolute(script: str) -> str:
    """The path as Python shows it in ``__file__`` and in tracebacks."""
    return script if os.path.isabs(script) else os.path.join(os.getcwd(), script.removeprefix("./"))


def run_script(script: str) -> None:
    """Run a file, or a folder or archive with a ``__main__``."""
    if pkgutil.get_importer(script) is not None:
        set_path(script)
        fresh_main()
        runpy._run_module_as_main("__main__", False)  # type: ignore[attr-defined]
        return
    path = absolute(script)
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        print(
            f"{sys.executable}: can't open file {path!r}: [Errno {error.errno}] {error.strerror}",
            file=sys.stderr,
        )
        sys.exit(2)
    set_path(os.path.dirname(os.path.realpath(script)))
    main = fresh_main()
    loader: Any = importlib.machinery.SourceFileLoader("__main__", path)
    if script.endswith(".pyc"):
        loader = importlib.machinery.SourcelessFileLoader("__main__", path)
        code = loader.get_code("__main__")
    else:
        code = compile(source, path, "exec", dont_inherit=True)
    main.__dict__.update({"__file__": path, "__cached__": None, "__loader__": loader})
    exec(code, main.__dict__)


def run(arguments: list[str]) -> None:
    """Run what the arguments name, as Python would run it."""
    if arguments[:1] == ["-m"] and len(arguments) > 1:
        sys.argv[:] = arguments[1:]
        fresh_main()
        runpy._run_module_as_main(arguments[1])  # type: ignore[attr-defined]
    elif arguments[:1] == ["-c"] and len(arguments) > 1:
        sys.argv[:] = ["-c", *arguments[2:]]
        set_path("")
        main = fresh_main()
        main.__dict__["__loader__"] = importlib.machinery.BuiltinImporter
        exec(compile(arguments[1], "<string>", "exec", dont_inherit=True), main.__dict__)
    else:
        sys.argv[:] = arguments
        run_script(arguments[0])


def hide_this_file() -> None:
    """Let an exception that ends the program be shown without the frames that led to the program."""
    shown = sys.excepthook

    def show(
        kind: type[BaseException], value: BaseException, traceback: types.TracebackType | None
    ) -> None:
        entry = kept = traceback
        while entry is not None:
            if entry.tb_frame.f_code.co_filename == __file__:
                kept = entry.tb_next
            entry = entry.tb_next
        value.__traceback__ = kept
        shown(kind, value, kept)

    sys.excepthook = show


def main() -> None:
    """Start the sampler and run the program."""
    arguments = sys.argv[1:]
    if not arguments:
        usage()
    setting = os.environ.get("HOTSPAN_SAMPLE")
    if setting:
        start_sampler(setting)
    try:
        run(arguments)
    except SystemExit:
        raise
    except BaseException:
        # Not sooner: the program may look at the hook or set its own.
        hide_this_file()
        raise


def usage() -> NoReturn:
    """Say how this is called."""
    sys.exit("usage: python -m hotspan._bootstrap (script.py | -m module | -c code) [arguments]")


if __name__ == "__main__":
    main()
