"""line_profiler rewrites the syntax tree of a program to record all of it. hotspan does not."""
