"""Runs a program under torch.profiler, on all threads, and writes how often each operator ran: COUNTS SCRIPT ...

The count that hotspan's is held against. Each process of a launcher writes a file of its own.
"""

import collections
import json
import os
import runpy
import sys
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

counts = Path(f"{sys.argv[1]}-{os.getpid()}.json")
sys.argv[:] = sys.argv[2:]
sys.path[0] = str(Path(sys.argv[0]).parent)
everywhere = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
profiler = profile(activities=[ProfilerActivity.CPU], experimental_config=everywhere)
profiler.start()
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    profiler.stop()
    exported = counts.with_suffix(".trace")
    profiler.export_chrome_trace(str(exported))
    events = json.loads(exported.read_bytes())["traceEvents"]
    names = collections.Counter(event["name"] for event in events if event.get("cat") == "cpu_op")
    counts.write_text(json.dumps(names))
