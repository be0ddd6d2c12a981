//! A generator of plausible traces: few names, ids that refer to each other, times that nest, and now and then something odd.

use std::fmt::Write;

const CATEGORIES: [&str; 14] = [
    "cpu_op",
    "cpu_op",
    "user_annotation",
    "python_function",
    "kernel",
    "kernel",
    "gpu_memcpy",
    "gpu_memset",
    "cuda_runtime",
    "cuda_driver",
    "gpu_user_annotation",
    "overhead",
    "fwdbwd",
    "Trace",
];
const NAMES: [&str; 18] = [
    "aten::mm",
    "aten::add",
    "aten::conv2d",
    "aten::_to_copy",
    "autograd::engine::evaluate_function: MmBackward0",
    "MmBackward0",
    "ProfilerStep#1",
    "ProfilerStep#2",
    "Optimizer.step#Adam.step",
    "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
    "a.py(3): main",
    "nn.Module: Linear_0",
    "cudaLaunchKernel",
    "cudaDeviceSynchronize",
    "cudaMemcpyAsync",
    "Memcpy HtoD (Pageable -> Device)",
    "ncclDevKernel_AllReduce_Sum_f32",
    "ampere_sgemm_128x64",
];
const ODD_NUMBERS: [&str; 8] =
    ["-1", "0", "9223372036854775807", "-9223372036854775808", "1e18", "0.001", "4611686018427387", "\"7\""];

struct Choices<'a> {
    bytes: &'a [u8],
}

impl Choices<'_> {
    /// The next choice; zero once there are none left.
    fn next(&mut self) -> u8 {
        match self.bytes.split_first() {
            Some((&first, rest)) => {
                self.bytes = rest;
                first
            }
            None => 0,
        }
    }

    fn below(&mut self, count: usize) -> usize {
        usize::from(self.next()) % count
    }

    /// A small number, seldom an odd one.
    fn number(&mut self) -> String {
        match self.next() {
            odd @ 248.. => ODD_NUMBERS[usize::from(odd - 248)].to_owned(),
            usual => (usual % 32).to_string(),
        }
    }

    fn time(&mut self) -> String {
        match self.next() {
            odd @ 250.. => ODD_NUMBERS[usize::from(odd - 250)].to_owned(),
            usual => format!("{}.{}", u32::from(usual) * 4, self.next() % 10),
        }
    }
}

/// A trace in Chrome's JSON.
pub(crate) fn trace(bytes: &[u8]) -> String {
    let mut choices = Choices { bytes };
    let mut json = String::from("{\"schemaVersion\":1,");
    if !choices.next().is_multiple_of(4) {
        json.push_str(
            "\"deviceProperties\":[{\"id\":0,\"name\":\"NVIDIA H200\",\"totalGlobalMem\":1000000,\"computeMajor\":9,\
             \"computeMinor\":0,\"maxThreadsPerMultiprocessor\":2048,\"warpSize\":32,\"numSms\":132}],",
        );
    }
    if choices.next().is_multiple_of(4) {
        let _ = write!(
            json,
            "\"distributedInfo\":{{\"backend\":\"nccl\",\"rank\":{},\"world_size\":{}}},",
            choices.next() % 4,
            choices.next() % 5
        );
    }
    if choices.next().is_multiple_of(4) {
        json.push_str("\"with_stack\":1,\"record_shapes\":1,\"profile_memory\":1,\"baseTimeNanoseconds\":1700000000000000000,");
    }
    json.push_str("\"traceEvents\":[");
    let mut first = true;
    while !choices.bytes.is_empty() && json.len() < 64 << 10 {
        if !first {
            json.push(',');
        }
        first = false;
        event(&mut choices, &mut json);
    }
    json.push_str("]}");
    json
}

fn event(choices: &mut Choices<'_>, json: &mut String) {
    let (process, thread) = (choices.next() % 3, choices.next() % 4);
    let time = choices.time();
    let place = format!("\"pid\":{process},\"tid\":{thread},\"ts\":{time}");
    match choices.next() % 16 {
        0 => {
            let phase = ["s", "f", "t"][choices.below(3)];
            let category = ["ac2g", "fwdbwd"][choices.below(2)];
            let id = choices.number();
            let _ = write!(
                json,
                "{{\"ph\":\"{phase}\",\"id\":{id},\"cat\":\"{category}\",\"name\":\"{category}\",\"bp\":\"e\",{place}}}"
            );
        }
        1 => {
            let (bytes, address, device) = (choices.number(), choices.number(), choices.next() % 3);
            let sign =
                if choices.next().is_multiple_of(2) && !bytes.starts_with(['-', '"']) { "-" } else { "" };
            let _ = write!(
                json,
                "{{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\",{place},\"args\":{{\"Addr\":{address},\
                 \"Bytes\":{sign}{bytes},\"Device Type\":{},\"Device Id\":{device},\"Total Allocated\":{},\"Total Reserved\":{}}}}}",
                choices.next() % 2,
                choices.number(),
                choices.number()
            );
        }
        2 => {
            let (name, value) = (choices.below(NAMES.len()), choices.number());
            let _ = write!(
                json,
                "{{\"ph\":\"C\",\"name\":\"{}\",{place},\"args\":{{\"value\":{value}}}}}",
                NAMES[name]
            );
        }
        3 => {
            let phase = ["B", "E", "b", "e", "N"][choices.below(5)];
            let name = NAMES[choices.below(NAMES.len())];
            let _ = write!(
                json,
                "{{\"ph\":\"{phase}\",\"cat\":\"cpu_op\",\"id\":1,\"name\":\"{name}\",{place}}}"
            );
        }
        4 => {
            let name =
                ["process_name", "process_labels", "thread_name", "thread_sort_index"][choices.below(4)];
            let key = if name.ends_with("index") {
                "sort_index"
            } else if name.ends_with("labels") {
                "labels"
            } else {
                "name"
            };
            let value = if key == "sort_index" {
                choices.number()
            } else {
                format!("\"GPU {}\"", choices.next() % 4)
            };
            let _ =
                write!(json, "{{\"ph\":\"M\",\"name\":\"{name}\",{place},\"args\":{{\"{key}\":{value}}}}}");
        }
        _ => span(choices, json, &place),
    }
}

fn span(choices: &mut Choices<'_>, json: &mut String, place: &str) {
    let (category, name) = (CATEGORIES[choices.below(CATEGORIES.len())], NAMES[choices.below(NAMES.len())]);
    let duration = choices.time();
    let _ = write!(
        json,
        "{{\"ph\":\"X\",\"cat\":\"{category}\",\"name\":\"{name}\",{place},\"dur\":{duration},\"args\":{{"
    );
    let mut separator = "";
    for _ in 0..choices.next() % 6 {
        let number = choices.number();
        let arg = match choices.next() % 20 {
            0 | 1 => format!("\"External id\":{number}"),
            2 | 3 => format!("\"correlation\":{number}"),
            4 => format!("\"device\":{number}"),
            5 => format!("\"stream\":{number}"),
            6 => format!("\"bytes\":{number}"),
            7 => format!("\"Python id\":{number}"),
            8 => format!("\"Python parent id\":{number}"),
            9 => format!("\"Input Dims\":[[{number},4],[4,{}],[]]", choices.number()),
            10 => "\"Input type\":[\"float\",\"c10::BFloat16\",\"\"]".to_owned(),
            11 => "\"Call stack\":\"a.py(3): main;b.py(9): inner\"".to_owned(),
            12 => format!("\"Sequence number\":{number},\"Fwd thread id\":{}", choices.next() % 3),
            13 => format!("\"grid\":[{number},1,1],\"block\":[{},1,1]", choices.number()),
            14 => format!("\"registers per thread\":{number},\"shared memory\":{}", choices.number()),
            15 => format!("\"est. achieved occupancy %\":{number},\"blocks per SM\":{}", choices.number()),
            16 => format!(
                "\"Collective name\":\"allreduce\",\"In msg nelems\":{number},\"Group size\":4,\"Seq\":{}",
                choices.number()
            ),
            17 => "\"Input Strides\":[[4,1],[1,4],[]],\"Concrete Inputs\":[\"\",\"2\",\"[1, 1]\"]".to_owned(),
            18 => format!("\"Python module id\":{number}"),
            _ => format!("\"queued\":{number}"),
        };
        json.push_str(separator);
        json.push_str(&arg);
        separator = ",";
    }
    json.push_str("}}");
}
