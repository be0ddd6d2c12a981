"""How ``hotspan run`` notices that the program has loaded a module, without importing anything itself.

Looking for a module (``importlib.util.find_spec``) is not loading it, a lazy module is loaded when it is first used,
and an import that failed may be tried again: what counts is that the module's code has run.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

    Act = Callable[[ModuleType], None]

# A torch has these once all of it is loaded. Other modules may have its name: stubs, folders of the program.
_PARTS_OF_TORCH = frozenset({"__file__", "autograd", "cuda", "get_num_threads", "optim", "version"})


# The modules among those waited for whose code runs now.
_loading: set[str] = set()


class Watcher:
    """Stands first in ``sys.meta_path`` until all that it waits for is loaded; finds nothing itself."""

    def __init__(self) -> None:
        self._actions: dict[str, Act] = {}

    def watch(self, name: str, act: Act) -> None:
        """Act when a module is loaded."""
        self._actions[name] = act
        if not any(finder is self for finder in sys.meta_path):
            sys.meta_path.insert(0, self)

    def forget(self, name: str) -> None:
        """Wait for a module no longer."""
        self._actions.pop(name, None)
        if not self._actions:
            sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not self]

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Let those who come after find the module, and act once it is loaded."""
        act = self._actions.get(fullname)
        if act is None:
            return None
        for finder in self._others():
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(fullname, path, target) if find is not None else None
            if spec is not None:
                _act_after_loading(spec, act)
                return spec
        return None

    def _others(self) -> list[Any]:
        # Those before were asked already, or ask us in turn.
        finders: list[Any] = list(sys.meta_path)
        own = [index for index, finder in enumerate(finders) if finder is self]
        return finders[own[-1] + 1 :] if own else finders


class _LoadAndAct:
    """Stands in for a loader's ``exec_module`` until it has loaded the module."""

    def __init__(self, loader: Any, name: str, act: Act) -> None:
        self._loader, self._name, self._act = loader, name, act
        self._load: Callable[[ModuleType], None] = loader.exec_module

    def __call__(self, module: ModuleType) -> None:
        # Not by attribute: this may be a lazy module, which that would load. One loader may have several modules.
        if _names(module).get("__name__") != self._name:
            self._load(module)
            return
        if vars(self._loader).get("exec_module") is self:
            del self._loader.exec_module
        _loading.add(self._name)
        try:
            self._load(module)
        finally:
            _loading.discard(self._name)
        self._act(sys.modules.get(self._name, module))


# Where an import fails, Python shows the frames of the program and leaves out those of the import system, which this is
# part of.
_LoadAndAct.__call__.__code__ = _LoadAndAct.__call__.__code__.replace(
    co_filename="<frozen importlib._bootstrap_external>", co_name="_call_with_frames_removed"
)


def _act_after_loading(spec: ModuleSpec, act: Act) -> None:
    loader = spec.loader
    # A class is the loader of many modules at once.
    if loader is None or isinstance(loader, type) or not hasattr(loader, "exec_module"):
        return
    names = getattr(loader, "__dict__", None)
    if names is None or isinstance(names.get("exec_module"), _LoadAndAct):
        return
    loader.exec_module = _LoadAndAct(loader, spec.name, act)  # type: ignore[method-assign]


def loaded_torch() -> ModuleType | None:
    """Return the torch of this process, unless it is still being imported."""
    module = sys.modules.get("torch")
    spec = _names(module).get("__spec__")
    is_loading = "torch" in _loading or getattr(spec, "_initializing", False)
    return module if is_torch(module) and not is_loading else None


def is_torch(module: ModuleType | None) -> bool:
    """Whether a module is a torch whose code has run. A lazy one is not loaded by the question."""
    return _names(module).keys() >= _PARTS_OF_TORCH


def _names(module: ModuleType | None) -> dict[str, Any]:
    try:
        names: dict[str, Any] = object.__getattribute__(module, "__dict__")
    except AttributeError:
        return {}
    return names
