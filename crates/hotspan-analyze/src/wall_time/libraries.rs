//! What a stack says about the thread: whose code it is in, Python's own or that of a native library, and whether it imports or
//! waits for something in particular.

use hotspan_store::{FrameKind, FrameRow, StackId, Trace};

/// What a thread was doing, by its stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// Recording.
    Profiling,
    /// Running the import system, or what it imports.
    Importing,
    /// In the wait of an event loop.
    WaitingForEvents,
    /// Something else, in the code of a library or in Python's own.
    Code {
        library: Option<String>,
        /// Whether it may be in a wait that deserves the name: the kernel's search for memory does not.
        waits: bool,
    },
}

/// Libraries that do what others ask of them: time in `memcpy` belongs to whoever copies.
const SYSTEM: [&str; 10] = [
    "libc",
    "libm",
    "libpthread",
    "ld-linux",
    "libstdc++",
    "libgcc_s",
    "linux-vdso",
    "[vdso]",
    "libdl",
    "librt",
];

/// Threads of these run what others hand to them, and the packages that bundle a copy share the first that was loaded.
const OPEN_MP: [&str; 3] = ["libgomp", "libiomp5", "libomp"];

/// The name that the sampler gives to the library of a frame inside the kernel.
const KERNEL: &str = "[kernel]";

pub(super) fn doing(trace: &Trace, stack: StackId) -> Doing {
    let profile = trace.profile();
    let frames = || profile.stacks.frames(stack).map(|frame| profile.frames.row(frame));
    let python = frames().find(|frame| frame.kind == FrameKind::Python);
    let native = frames().take_while(|frame| frame.kind == FrameKind::Native);
    let is_recorder = |frame: FrameRow| is_recorder(trace.str(frame.file));
    if python.is_some_and(is_recorder) || native.into_iter().any(is_recorder) {
        return Doing::Profiling;
    }
    if is_importing(trace, stack) {
        return Doing::Importing;
    }
    let library = library_of(trace, stack);
    let innermost = frames().next();
    let is_native = innermost.is_some_and(|frame| frame.kind == FrameKind::Native);
    let call = innermost.filter(|frame| trace.str(frame.file) == KERNEL).map(|frame| trace.str(frame.name));
    match call {
        Some("epoll_wait" | "epoll_pwait") => Doing::WaitingForEvents,
        Some("mmap" | "munmap" | "madvise" | "mprotect") => Doing::Code { library, waits: false },
        Some(_) => Doing::Code { library, waits: true },
        // Native code that waits outside of any call waits for a page of memory.
        None => Doing::Code { library, waits: !is_native },
    }
}

/// The system call in which a thread waits, empty when it is in none; `None` when that is no wait of the program.
pub(crate) fn kernel_call_of_wait(trace: &Trace, stack: StackId) -> Option<String> {
    match doing(trace, stack) {
        Doing::Profiling | Doing::Importing | Doing::Code { waits: false, .. } => None,
        Doing::WaitingForEvents | Doing::Code { waits: true, .. } => {
            let profile = trace.profile();
            let innermost = profile.stacks.frames(stack).next().map(|frame| profile.frames.row(frame));
            let call = innermost.filter(|frame| trace.str(frame.file) == KERNEL);
            Some(call.map_or_else(String::new, |frame| trace.str(frame.name).to_owned()))
        }
    }
}

/// Whether the import system is in a stack.
pub(crate) fn is_importing(trace: &Trace, stack: StackId) -> bool {
    let profile = trace.profile();
    profile.stacks.frames(stack).map(|frame| profile.frames.row(frame)).any(|frame| {
        frame.kind == FrameKind::Python
            && trace.str(frame.name) == "_find_and_load"
            && trace.str(frame.file).starts_with("<frozen importlib")
    })
}

/// Whether a file is part of what records a program from the inside: the agent, the core, the hooks built for this torch.
pub(crate) fn is_recorder(file: &str) -> bool {
    let mut parts = file.rsplit('/');
    let (name, folder) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    match folder {
        "hotspan" => name.starts_with('_') && name.ends_with(".py") || name.contains(".so"),
        "_inject" => name == "sitecustomize.py",
        "_hooks" => name.ends_with(".so"),
        // In a cache, wherever that is. The program itself may lie in a folder of our name.
        _ => name.starts_with("torch-") && name.ends_with(".so"),
    }
}

/// The first library that is not the system's, from the innermost frame to the first Python frame; `None` for the interpreter.
/// Work of OpenMP belongs to the library that called it, where the stack has one.
fn library_of(trace: &Trace, stack: StackId) -> Option<String> {
    let profile = trace.profile();
    let frames = profile.stacks.frames(stack).map(|frame| profile.frames.row(frame));
    let native = frames.take_while(|frame| frame.kind != FrameKind::Python);
    let libraries = native.filter(|frame| frame.kind == FrameKind::Native).map(|frame| trace.str(frame.file));
    let is_known = |path: &&str| !path.is_empty() && *path != KERNEL && !is_system(file_name(path));
    let mut libraries = libraries.filter(is_known).peekable();
    let innermost = libraries.peek().copied()?;
    // Python's modules in C are part of it.
    let is_python = |path: &str| is_interpreter(file_name(path)) || path.contains("/lib-dynload/");
    match libraries.find(|path| !is_open_mp(path)).filter(|path| !is_python(path)) {
        Some(caller) => Some(package(caller)),
        None => is_open_mp(innermost).then(|| "OpenMP".to_owned()),
    }
}

/// Whether a file is a runtime of OpenMP, also a copy that a package bundles.
pub(crate) fn is_open_mp(path: &str) -> bool {
    OPEN_MP.iter().any(|library| belongs(file_name(path), library))
}

/// Whether a library does what others ask of it, or runs their Python code.
pub(crate) fn is_system_or_interpreter(path: &str) -> bool {
    is_system(file_name(path)) || is_interpreter(file_name(path))
}

fn is_system(name: &str) -> bool {
    SYSTEM.iter().any(|system| belongs(name, system))
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// `libc.so.6` and `libc-2.31.so` belong to `libc`, `libcublas.so` does not.
fn belongs(name: &str, library: &str) -> bool {
    name.strip_prefix(library).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-']))
}

fn is_interpreter(name: &str) -> bool {
    name.starts_with("libpython") || name == "python" || name.starts_with("python3")
}

/// The Python package a library came with, or its own name.
pub(crate) fn package(path: &str) -> String {
    let inside = ["/site-packages/", "/dist-packages/"].iter().find_map(|folder| path.split_once(folder));
    if let Some((_, inside)) = inside {
        let first = inside.split('/').next().unwrap_or(inside);
        // What a wheel bundles lies beside the package: numpy.libs, pillow.libs.
        let package = first.strip_suffix(".libs").unwrap_or(first);
        return package
            .split(".cpython-")
            .next()
            .unwrap_or(package)
            .split(".abi3")
            .next()
            .unwrap_or(package)
            .to_owned();
    }
    let name = file_name(path);
    // The interpreter's own modules: math.cpython-311-x86_64-linux-gnu.so
    match name.split_once(".cpython-").or_else(|| name.split_once(".abi3")) {
        Some((module, _)) => module.to_owned(),
        None => name.split(".so").next().unwrap_or(name).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_found_in_paths() {
        let cases = [
            (
                "/v/lib/python3.11/site-packages/numpy/core/_multiarray.cpython-311-x86_64-linux-gnu.so",
                "numpy",
            ),
            ("/v/lib/python3.11/site-packages/numpy.libs/libopenblas64_p-r0.3.so", "numpy"),
            ("/v/lib/python3.11/site-packages/tokenizers/tokenizers.abi3.so", "tokenizers"),
            ("/v/lib/python3.11/site-packages/_brotli.cpython-311-x86_64-linux-gnu.so", "_brotli"),
            ("/usr/lib/python3.11/lib-dynload/_json.cpython-311-x86_64-linux-gnu.so", "_json"),
            ("/usr/lib/x86_64-linux-gnu/libz.so.1.2.13", "libz"),
        ];
        for (path, expected) in cases {
            assert_eq!(package(path), expected, "{path}");
        }
    }

    #[test]
    fn the_system_serves_others() {
        assert!(
            belongs("libc.so.6", "libc")
                && belongs("libc-2.31.so", "libc")
                && !belongs("libcublas.so", "libc")
        );
        assert!(
            is_interpreter("libpython3.11.so.1.0")
                && is_interpreter("python3.12")
                && !is_interpreter("libtorch_python.so")
        );
        assert!(is_open_mp("/v/site-packages/scikit_learn.libs/libgomp-e985bcbb.so.1.0.0"));
        assert!(is_open_mp("/usr/lib/libomp.so.5") && !is_open_mp("/usr/lib/libompi.so"));
    }
}
