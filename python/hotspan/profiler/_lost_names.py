"""Names of torch.profiler that not every release of torch from 2.11 on has, so that importing them never fails.

Whoever imports one can say what to record with it; where torch itself has the name, torch's object is used instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class PerformanceMetricsConfig:
    """Counters of a device; not recorded."""

    metric_names: list[str] = field(default_factory=list)
    sampling_interval_ms: float | None = None
    lookback_window_ms: float | None = None


@dataclass
class CuspyConfig:
    """Another recorder of torch's; not used."""

    enable_cuda_sync_events: bool = False
    enable_environment_counters: bool = False
    enable_graph_dependencies: bool = False
    enable_event_node_ids: bool = False


@dataclass
class ProfilerActivityConfig:
    """What to record of a group of activities."""

    activity_types: list[str] | None = None
    profiler_configs: list[Any] = field(default_factory=list)
