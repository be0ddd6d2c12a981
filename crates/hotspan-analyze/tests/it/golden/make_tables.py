"""Makes the golden tables: torch's own EventList prints the events of step.trace.json. Needs torch 2.14 or newer.

torch reads events from its profiler, not from files, so this builds the FunctionEvents of the file by torch's rules and
lets torch nest, group and print them.
"""

import json
import pathlib

from torch.autograd import DeviceType
from torch.autograd.profiler_util import EventList, FunctionEvent, _filter_name, _filter_stack_entry

HERE = pathlib.Path(__file__).parent
FLOPS = {"aten::addmm": 2 * 32 * 64 * 128, "aten::mm": 2 * 32 * 64 * 128, "aten::add": 32 * 128}
DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation"}


def events_of(trace):
    spans = [event for event in trace["traceEvents"] if event["ph"] == "X" and not _filter_name(event["name"])]
    instants = [event for event in trace["traceEvents"] if event["name"] == "[memory]"]
    used, events, kernels = set(), [], []
    for span in spans:
        args, name, begin, end = span["args"], span["name"], span["ts"], span["ts"] + span["dur"]
        name, _, overload = name.partition(".") if name.startswith("aten::") else (name, "", "")
        on_device = span["cat"] in DEVICE
        inside = [i for i, m in enumerate(instants) if begin <= m["ts"] <= end] if not on_device else []
        used.update(inside)
        bytes_of = lambda kind: sum(
            instants[i]["args"]["Bytes"] for i in inside if instants[i]["args"]["Device Type"] == kind
        )
        is_node = span["cat"] == "cpu_op" and name.endswith("Backward0") and ":" not in name
        event = FunctionEvent(
            id=args.get("External id", 0), name="ProfilerStep*" if name.startswith("ProfilerStep#") else name,
            overload_name=overload, thread=span["tid"], start_us=begin, end_us=end,
            fwd_thread=args.get("Fwd thread id", 0), input_shapes=args.get("Input Dims", []),
            stack=[entry for entry in args.get("Call stack", "").split(";") if entry and _filter_stack_entry(entry)],
            scope=1 if is_node else 0, use_device="cuda", cpu_memory_usage=bytes_of(0), device_memory_usage=bytes_of(1),
            sequence_nr=args.get("Sequence number", -1), device_type=DeviceType.CUDA if on_device else DeviceType.CPU,
            flops=FLOPS.get(name, 0), is_user_annotation="user_annotation" in span["cat"],
        )
        events.append(event)
        if on_device and "annotation" not in span["cat"]:
            kernels.append(event)
    operators = {event.id: event for event, span in zip(events, spans) if span["cat"] == "cpu_op"}
    for kernel in kernels:
        operators[kernel.id].append_kernel(kernel.name, 0, kernel.time_range.elapsed_us())
    for index, instant in enumerate(instants):
        if index not in used:
            events.append(
                FunctionEvent(
                    id=0, name="[memory]", overload_name="", thread=instant["tid"], start_us=instant["ts"],
                    end_us=instant["ts"], input_shapes=[], stack=[], use_device="cuda", flops=0,
                    cpu_memory_usage=instant["args"]["Bytes"],
                )
            )
    events.sort(key=lambda event: [event.time_range.start, -event.time_range.end])
    return events


def tables(trace):
    plain = EventList(events_of(trace), use_device="cuda", profile_memory=True, with_flops=True)
    plain._build_tree()
    averages = plain.key_averages()
    yield "name", averages.table()
    yield "sorted", averages.table(sort_by="self_cuda_time_total", row_limit=4)
    yield "top_level", averages.table(top_level_events_only=True, header="One step", time_unit="ms", row_limit=-1)
    yield "narrow", averages.table(max_name_column_width=20, time_unit="s")
    yield "shapes", plain.key_averages(group_by_input_shapes=True).table(max_shapes_column_width=30)
    yield "overload", plain.key_averages(group_by_overload_name=True).table()
    # torch misplaces FLOPs beside stacks, so this one goes without.
    stacks = EventList(events_of(trace), use_device="cuda", profile_memory=True)
    stacks._build_tree()
    yield "stack", stacks.key_averages(group_by_stack_n=2).table(max_src_column_width=60)


for mode, text in tables(json.loads((HERE / "step.trace.json").read_text())):
    (HERE / f"step.{mode}.txt").write_text(text)
