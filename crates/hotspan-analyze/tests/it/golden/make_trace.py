"""Writes step.trace.json: one training step on a GPU, small enough to check by hand.

Times are whole microseconds. The other script in this folder makes torch's tables of the same events.
"""

import json
import pathlib

EVENTS = []


def span(category, name, begin, end, thread=1, **args):
    args = {key.replace("_", " "): value for key, value in args.items()}
    process = 0 if category in DEVICE else 42
    EVENTS.append(dict(ph="X", cat=category, name=name, pid=process, tid=thread, ts=begin, dur=end - begin, args=args))


def memory(time, amount, device_type=0, thread=1):
    args = {"Bytes": amount, "Device Type": device_type, "Device Id": device_type - 1, "Addr": 1, "Total Allocated": 0}
    EVENTS.append(dict(ph="i", cat="cpu_instant_event", name="[memory]", s="t", pid=42, tid=thread, ts=time, args=args))


DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation"}
FORWARD = "model.py(12): forward;train.py(30): step;train.py(80): <module>;"
BACKWARD = "torch/autograd/__init__.py(255): backward;train.py(31): step;train.py(80): <module>;"
ADD = "a/path/that/is/so/long/that/the/table/has/to/cut/it/somewhere/near/the/front/blocks.py(7): residual;" + FORWARD
MATRICES = [[128], [32, 64], [64, 128], [], []]
LONG_KERNEL = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)"

memory(1, 512)
span("user_annotation", "ProfilerStep#7", 10, 1510, External_id=1)
span("user_annotation", "forward", 20, 620, External_id=2)
span("cpu_op", "aten::to", 30, 130, External_id=3, Call_stack=FORWARD, Input_Dims=[[32, 64], []])
span("cpu_op", "aten::to", 40, 125, External_id=4, Call_stack=FORWARD, Input_Dims=[[32, 64], []])
span("cpu_op", "aten::copy_", 50, 120, External_id=5, Call_stack=FORWARD, Input_Dims=[[32, 64], [32, 64], []])
span("cuda_runtime", "cudaMemcpyAsync", 60, 110, External_id=5, correlation=901)
memory(45, 8192, device_type=1)
span(
    "cpu_op", "aten::linear", 140, 340, External_id=6, Sequence_number=11, Fwd_thread_id=0, Call_stack=FORWARD,
    Input_Dims=[[32, 64], [128, 64], [128]],
)
span(
    "cpu_op", "aten::addmm", 150, 330, External_id=7, Sequence_number=11, Fwd_thread_id=0, Call_stack=FORWARD,
    Input_Dims=MATRICES, Concrete_Inputs=["", "", "", "1", "1"],
)
memory(160, 16384, device_type=1)
memory(161, 4096)
memory(162, -4096)
span("cuda_runtime", "cudaLaunchKernel", 200, 210, External_id=7, correlation=902)
span("cuda_runtime", "cudaLaunchKernel", 220, 230, External_id=7, correlation=903)
for begin, identity in ((350, 8), (400, 9)):
    span(
        "cpu_op", "aten::add.Tensor", begin, begin + 40, External_id=identity, Call_stack=ADD,
        Input_Dims=[[32, 128], [32, 128], []], Concrete_Inputs=["", "", "1"],
    )
    span("cuda_runtime", "cudaLaunchKernel", begin + 5, begin + 15, External_id=identity, correlation=900 + identity)
span("cpu_op", "profiler::_record_function_exit", 600, 610, External_id=10)
span("user_annotation", "backward", 700, 1400, External_id=11)
span("cuda_runtime", "cudaDeviceSynchronize", 1300, 1390, correlation=950)
memory(1500, -2048)
name = "autograd::engine::evaluate_function: AddmmBackward0"
span("cpu_op", name, 720, 1020, 2, External_id=12, Sequence_number=11, Fwd_thread_id=1, Call_stack=BACKWARD)
span(
    "cpu_op", "AddmmBackward0", 730, 1010, 2, External_id=13, Sequence_number=11, Fwd_thread_id=1, Call_stack=BACKWARD,
    Input_Dims=[[32, 128]],
)
span("cpu_op", "aten::mm", 740, 840, 2, External_id=14, Call_stack=BACKWARD, Input_Dims=[[32, 128], [128, 64]])
span("cuda_runtime", "cudaLaunchKernel", 750, 760, 2, External_id=14, correlation=904)
span("cpu_op", "aten::mm", 850, 1000, 2, External_id=15, Call_stack=BACKWARD, Input_Dims=[[64, 32], [32, 128]])
span("cuda_runtime", "cudaLaunchKernel", 860, 870, 2, External_id=15, correlation=905)

span("gpu_user_annotation", "forward", 100, 700, 7, External_id=2)
span("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 100, 150, 7, External_id=5, correlation=901, bytes=8192)
KERNEL = {"blocks per SM": 2.0, "est. achieved occupancy %": 50}
for kernel, begin, end, identity, correlation in (
    ("sgemm", 300, 420, 7, 902),
    ("splitKreduce", 430, 440, 7, 903),
    (LONG_KERNEL, 450, 470, 8, 908),
    (LONG_KERNEL, 480, 520, 9, 909),
    ("sgemm", 800, 900, 14, 904),
    ("sgemm", 1000, 1250, 15, 905),
):
    span("kernel", kernel, begin, end, 7, External_id=identity, correlation=correlation, **KERNEL)

HEAD = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU"}], "profile_memory": 1, "with_flops": 1}
TEXT = json.dumps(HEAD)[:-1] + ', "traceEvents": [\n' + ",\n".join(json.dumps(event) for event in EVENTS) + "\n]}\n"
pathlib.Path(__file__).with_name("step.trace.json").write_text(TEXT)
