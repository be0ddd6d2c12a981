//! Our records beside NVIDIA's headers: every offset that is read, for each CUDA whose headers are installed.
//!
//! torch's wheels bring the headers of their CUDA, Triton's those of another. Where there are none, nothing is compared.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what fails here fails the test")]

use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::process::Command;

use hotspan_collect::cupti::abi::{
    ApiCall, CallbackData, Context, CudaEvent, Kernel, Memcpy, MemcpyPeer, Memset, Overhead, Synchronization,
};

/// Folders with cupti_activity.h: of Python packages and of an installed toolkit.
fn headers() -> Vec<PathBuf> {
    let program = "import sys; print('\\n'.join(path for path in sys.path if path))";
    let output = Command::new("python3").args(["-c", program]).output();
    let paths = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let mut folders =
        vec![PathBuf::from("/usr/local/cuda/extras/CUPTI/include"), "/usr/local/cuda/include".into()];
    for site in paths.lines().map(Path::new) {
        folders.push(site.join("triton/backends/nvidia/include"));
        for package in std::fs::read_dir(site.join("nvidia")).into_iter().flatten().flatten() {
            folders.push(package.path().join("include"));
        }
    }
    folders.retain(|folder| folder.join("cupti_activity.h").is_file());
    folders
}

/// The newest structure of a name with a number at its end: CUpti_ActivityKernel9, 10 or 11.
fn newest(header: &str, name: &str) -> String {
    let numbered = (2..100).rev().map(|number| format!("{name}{number}"));
    let mut candidates = numbered.chain([name.to_owned()]);
    candidates.find(|name| header.contains(&format!("}} {name};"))).unwrap_or_else(|| panic!("no {name}"))
}

macro_rules! offsets {
    ($ours:ty as $theirs:literal: $($field:ident = $name:literal),* $(,)?) => {
        ($theirs, vec![$(($name, offset_of!($ours, $field))),*])
    };
}

#[test]
fn offsets_are_those_of_the_headers() {
    let records = [
        offsets!(Kernel as "CUpti_ActivityKernel": kind = "kind", registers = "registersPerThread", start = "start",
            end = "end", device = "deviceId", context = "contextId", stream = "streamId", grid = "gridX",
            block = "blockX", static_shared = "staticSharedMemory", dynamic_shared = "dynamicSharedMemory",
            correlation = "correlationId", name = "name", graph_node = "graphNodeId", graph = "graphId"),
        offsets!(Memcpy as "CUpti_ActivityMemcpy": copy_kind = "copyKind", source = "srcKind",
            destination = "dstKind", bytes = "bytes", start = "start", end = "end", device = "deviceId",
            context = "contextId", stream = "streamId", correlation = "correlationId", graph_node = "graphNodeId",
            graph = "graphId"),
        offsets!(MemcpyPeer as "CUpti_ActivityMemcpyPtoP": copy_kind = "copyKind", bytes = "bytes", start = "start",
            end = "end", device = "deviceId", context = "contextId", stream = "streamId",
            source_device = "srcDeviceId", source_context = "srcContextId", destination_device = "dstDeviceId",
            destination_context = "dstContextId", correlation = "correlationId", graph_node = "graphNodeId",
            graph = "graphId"),
        offsets!(Memset as "CUpti_ActivityMemset": bytes = "bytes", start = "start", end = "end",
            device = "deviceId", context = "contextId", stream = "streamId", correlation = "correlationId",
            memory = "memoryKind", graph_node = "graphNodeId", graph = "graphId"),
        offsets!(ApiCall as "CUpti_ActivityAPI": function = "cbid", start = "start", end = "end",
            thread = "threadId", correlation = "correlationId"),
        offsets!(Overhead as "CUpti_ActivityOverhead": overhead = "overheadKind", start = "start", end = "end"),
        offsets!(Synchronization as "CUpti_ActivitySynchronization": sync = "type", start = "start", end = "end",
            correlation = "correlationId", context = "contextId", stream = "streamId", event = "cudaEventId"),
        offsets!(CudaEvent as "CUpti_ActivityCudaEvent": correlation = "correlationId", context = "contextId",
            stream = "streamId", event = "eventId"),
        offsets!(CallbackData as "CUpti_CallbackData": site = "callbackSite", correlation_data = "correlationData",
            correlation = "correlationId"),
        offsets!(Context as "CUpti_ActivityContext": context = "contextId", device = "deviceId"),
    ];
    for (number, folder) in headers().iter().enumerate() {
        let header = std::fs::read_to_string(folder.join("cupti_activity.h")).unwrap();
        let mut source = "#include <stddef.h>\n#include <cuda.h>\n#include <cupti.h>\n".to_owned();
        for (theirs, fields) in &records {
            let name =
                if *theirs == "CUpti_CallbackData" { (*theirs).to_owned() } else { newest(&header, theirs) };
            for (field, offset) in fields {
                source +=
                    &format!("_Static_assert(offsetof({name}, {field}) == {offset}, \"{name}.{field}\");\n");
            }
        }
        compile(folder, number, &source);
    }
}

/// Compiles, with stand-ins for what Python packages leave out of the toolkit.
fn compile(folder: &Path, number: usize, source: &str) {
    let place =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("layout-{}-{number}", std::process::id()));
    std::fs::create_dir_all(place.join("crt")).unwrap();
    let empty = [
        "__device_builtin__",
        "__cudart_builtin__",
        "__host__",
        "__device__",
        "CUDARTAPI",
        "__CUDA_DEPRECATED",
    ]
    .into_iter()
    .chain(["__device_builtin_texture_type__", "__device_builtin_surface_type__", "CUDARTAPI_CDECL"]);
    let mut macros: String = empty.map(|name| format!("#define {name}\n")).collect();
    macros += "#define __builtin_align__(n)\n#define __align__(n)\n";
    macros += "#define __cuda_builtin_vector_align8(tag, members) struct tag { members }\n";
    std::fs::write(place.join("crt/host_defines.h"), macros).unwrap();
    let file = place.join("layout.c");
    std::fs::write(&file, source).unwrap();
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let mut command = Command::new(compiler);
    // The package's own headers first; the stand-ins only for what it lacks.
    command.args(["-fsyntax-only", "-w", "-I"]).arg(folder).arg("-idirafter").arg(&place).arg(&file);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", folder.display());
    std::fs::remove_dir_all(&place).unwrap();
}
