"""Found first by every Python that ``hotspan run`` starts: begins to record, then makes way.

The folder of this file stands in PYTHONPATH, so that programs need not be changed and child processes are seen too.
Nothing of it stays behind: the program's ``sys.path`` and its own ``sitecustomize`` are as they would be without.
"""

import os
import sys
import time

# Not importlib, which would have to be read and cost the program's start: these are loaded in every Python.
from _frozen_importlib import ModuleSpec, module_from_spec
from _frozen_importlib_external import PathFinder, SourceFileLoader

_began = time.monotonic_ns()
_folder = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 (pathlib would cost the program's start)


def _make_way() -> None:
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != _folder]  # noqa: PTH100
    sys.path_importer_cache.pop(_folder, None)
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        module = module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


def _record() -> None:
    if PathFinder.find_spec("hotspan") is None:
        # Another environment than the one hotspan is installed in: import it from where it lies, and nothing else.
        home = os.path.dirname(_folder)  # noqa: PTH120
        file = os.path.join(home, "__init__.py")  # noqa: PTH118
        loader = SourceFileLoader("hotspan", file)
        spec = ModuleSpec("hotspan", loader, origin=file, is_package=True)
        spec.submodule_search_locations = [home]
        spec.has_location = True
        module = module_from_spec(spec)
        sys.modules["hotspan"] = module
        loader.exec_module(module)
    from hotspan import _agent

    _agent.begin(_began)


try:
    _record()
except Exception as error:
    # A program that cannot be recorded runs all the same.
    print(f"hotspan: this process is not recorded: {error}", file=sys.stderr)
_make_way()
