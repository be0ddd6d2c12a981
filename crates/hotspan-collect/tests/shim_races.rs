//! The shim under ThreadSanitizer, against a real torch: no access of one thread to what another writes is without order.
//!
//! Skipped, loudly, where there is no torch or no ThreadSanitizer.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of torch, and whether its strings have the C++11 ABI.
fn torch() -> Option<(PathBuf, bool)> {
    let environment = std::env::var_os("VIRTUAL_ENV").map(|folder| Path::new(&folder).join("bin/python"));
    let python = environment.unwrap_or_else(|| "python3".into());
    let program = "import torch; print(torch.__path__[0]); print(torch.compiled_with_cxx11_abi())";
    let output = Command::new(python).args(["-c", program]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (folder, has_new_abi) = text.split_once('\n')?;
    Some((folder.into(), has_new_abi.trim() == "True"))
}

#[test]
fn threads_that_record_do_not_race() {
    let Some((torch, has_new_abi)) = torch() else {
        println!("skipped: there is no torch here");
        return;
    };
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("shim_races-{}", std::process::id()));
    let mut compile = Command::new(std::env::var("CXX").unwrap_or_else(|_| "g++".to_owned()));
    compile.args(["-std=c++20", "-O1", "-g", "-w", "-fsanitize=thread", "-DNDEBUG", "-pthread"]);
    compile.arg(format!("-D_GLIBCXX_USE_CXX11_ABI={}", u8::from(has_new_abi)));
    let include = torch.join("include");
    for folder in [tests.join("../../../shim"), include.join("torch/csrc/api/include"), include] {
        compile.arg("-I").arg(folder);
    }
    compile.arg(tests.join("shim_races.cc")).arg("-o").arg(&program);
    compile.arg("-L").arg(torch.join("lib")).args(["-lc10", "-ltorch_cpu"]);
    let compiled = compile.output().unwrap();
    let said = String::from_utf8_lossy(&compiled.stderr);
    if said.contains("tsan") {
        println!("skipped: {said}");
        return;
    }
    assert!(compiled.status.success(), "{said}");
    // ThreadSanitizer wants its own addresses to be free, which they always are where addresses are not random.
    let mut run = Command::new("setarch");
    run.arg("-R").arg(&program).env("LD_LIBRARY_PATH", torch.join("lib")).env("OMP_NUM_THREADS", "1");
    let ran = run.output().unwrap();
    std::fs::remove_file(&program).unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    if said.contains("FATAL: ThreadSanitizer") || said.contains("setarch:") {
        println!("skipped: {said}");
        return;
    }
    assert!(ran.status.success(), "{said}");
}
