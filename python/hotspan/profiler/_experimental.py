"""torch's ``_ExperimentalConfig``, read and changed: it tells most of its settings to nobody but ``pickle``.

The positions of the settings in what it pickles change from release to release, so they are found by trying.
"""

from __future__ import annotations

from typing import Any

from torch._C._profiler import _ExperimentalConfig

# Those that mean nothing to a collector other than Kineto.
KINETO_ONLY = (
    "performance_events",
    "disable_external_correlation",
    "custom_profiler_config",
    "adjust_timestamps",
)
# Those that torch itself has stopped to look at, with their names in the warning.
DEPRECATED = {
    "adjust_profiler_step": "adjust_profiler_step is",
    "profiler_metrics": "profiler_metrics and profiler_measure_per_kernel are",
    "profiler_measure_per_kernel": "profiler_metrics and profiler_measure_per_kernel are",
}
# A setting is a switch, a list or a text.
_VALUES: tuple[Any, ...] = (True, ["cycles"], "text")


def _position(setting: str) -> int | None:
    """Where a setting is among what is pickled; None when this torch does not have it."""
    usual = _ExperimentalConfig().__getstate__()
    for value in _VALUES:
        try:
            other = _ExperimentalConfig(**{setting: value}).__getstate__()
        except TypeError:
            continue
        return next(
            (position for position, pair in enumerate(zip(usual, other, strict=True)) if pair[0] != pair[1]),
            None,
        )
    return None


def is_set(config: Any, setting: str) -> bool:
    """Whether a setting differs from what it usually is."""
    if config is None:
        return False
    position = _position(setting)
    return position is not None and bool(config.__getstate__()[position])


def with_call_stacks(config: Any) -> Any:
    """The same settings, and stacks of operators: torch leaves those out otherwise."""
    return _changed(config, "verbose", True)


def without(config: Any, setting: str) -> Any:
    """The same settings but for one switch."""
    return _changed(config, setting, False)


def _changed(config: Any, setting: str, value: bool) -> Any:
    changed = _ExperimentalConfig(**{setting: value})
    position = _position(setting)
    if config is not None and position is not None:
        state = list(config.__getstate__())
        state[position] = value
        changed.__setstate__(tuple(state))
    return changed
