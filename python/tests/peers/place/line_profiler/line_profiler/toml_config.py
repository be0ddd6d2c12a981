"""The names of line_profiler.toml_config."""

from hotspan.lines._config import ConfigSource as ConfigSource
