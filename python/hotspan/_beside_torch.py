"""torch.profiler beside hotspan: it starts only where nobody else has devices, or hooks in its threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# What profilers and emitters of ranges call first, by names of their modules; and those that end.
_STARTS = ("_prepare_profiler", "_enable_profiler", "_enable_profiler_legacy")
_KINDS = ("profile", "emit_nvtx", "emit_itt")


class _OwnProfile:
    """While it is entered, torch.profiler starts for hotspan itself: nobody has to step aside."""

    is_entered = False

    def __enter__(self) -> None:
        self.is_entered = True

    def __exit__(self, *_: object) -> None:
        self.is_entered = False


OWN_PROFILE = _OwnProfile()


class BesideTorchProfiler:
    """Until it is removed, calls ``before`` when torch.profiler starts, and ``after`` when it has ended."""

    def __init__(self, before: Callable[[], None], after: Callable[[], None]) -> None:
        from torch.autograd import profiler, profiler_legacy

        self._before, self._after = before, after
        self._has_started = False
        self._originals: list[tuple[Any, str, Any]] = []
        for module in (profiler, profiler_legacy):
            for name in _STARTS:
                self._replace(module, name, self._starting)
            for kind in _KINDS:
                self._replace(getattr(module, kind, None), "__exit__", self._ending)

    def remove(self) -> None:
        """Leave torch.profiler as it was."""
        for owner, name, original in self._originals:
            setattr(owner, name, original)
        self._originals = []

    def _replace(self, owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:
        original = getattr(owner, name, None)
        if original is not None:
            self._originals.append((owner, name, original))
            setattr(owner, name, wrap(original))

    def _starting(self, start: Callable[..., Any]) -> Callable[..., Any]:
        def make_room_and_start(*arguments: Any, **options: Any) -> Any:
            if not OWN_PROFILE.is_entered:
                self._before()
                self._has_started = True
            return start(*arguments, **options)

        return make_room_and_start

    def _ending(self, leave: Callable[..., Any]) -> Callable[..., Any]:
        def leave_and_tell(*arguments: Any) -> Any:
            try:
                return leave(*arguments)
            finally:
                if self._has_started:
                    self._has_started = False
                    self._after()

        return leave_and_tell
