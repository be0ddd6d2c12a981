//! How well a kernel can fill a multiprocessor: blocks and warps per SM, and the occupancy that its resources allow.
//!
//! The rules are those of NVIDIA's occupancy calculator, for Maxwell and newer. One thing differs from what Kineto writes:
//! kernels that opted in to more shared memory than a block has by default (most matrix products of today) get their true
//! occupancy, where Kineto assumes the default limit and writes 0.

use crate::cupti::devices::DeviceFacts;

/// What a kernel takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Needs {
    pub(crate) grid: [i32; 3],
    pub(crate) block: [i32; 3],
    pub(crate) registers: u32,
    pub(crate) static_shared: u32,
    pub(crate) dynamic_shared: u32,
}

/// What that means on a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Fill {
    pub(crate) blocks_per_sm: f64,
    pub(crate) warps_per_sm: f64,
    /// Percent of the threads that could run.
    pub(crate) occupancy: i64,
}

fn product(sides: [i32; 3]) -> u64 {
    sides.iter().map(|&side| u64::from(side.max(0).unsigned_abs())).product()
}

impl Needs {
    /// How the kernel fills a device; `None` when the driver told too little about it.
    pub(crate) fn on(&self, device: &DeviceFacts) -> Option<Fill> {
        if device.sms == 0 || device.warp == 0 || device.threads_per_sm == 0 {
            return None;
        }
        let threads = product(self.block);
        let blocks_per_sm = product(self.grid) as f64 / f64::from(device.sms);
        let warps_per_sm = blocks_per_sm * threads as f64 / f64::from(device.warp);
        let resident = f64::from(self.resident_blocks(device)).min(blocks_per_sm);
        let share = resident * threads as f64 / f64::from(device.threads_per_sm);
        Some(Fill { blocks_per_sm, warps_per_sm, occupancy: (share * 100.0).round() as i64 })
    }

    /// How many blocks of the kernel an SM can hold at once.
    pub(crate) fn resident_blocks(&self, device: &DeviceFacts) -> u32 {
        let threads = product(self.block);
        if threads == 0 || threads > u64::from(device.threads_per_block) {
            return 0;
        }
        let warps = (threads as u32).div_ceil(device.warp);
        let by_warps = device.threads_per_sm / device.warp / warps;
        let by_registers = self.by_registers(device, warps);
        let by_shared = self.by_shared(device);
        by_warps.min(by_registers).min(by_shared).min(blocks_limit(device))
    }

    fn by_registers(&self, device: &DeviceFacts, warps: u32) -> u32 {
        // Registers are handed out to warps in units of 256, from four quarters of the file (two on the first Pascal).
        let quarters = if (device.major, device.minor) == (6, 0) { 2 } else { 4 };
        let per_warp = (self.registers * device.warp).next_multiple_of(256);
        if per_warp == 0 {
            return u32::MAX;
        }
        let assumed = per_warp * warps.next_multiple_of(quarters);
        if self.registers > 255 || assumed > device.registers_per_block {
            return 0;
        }
        device.registers_per_sm / quarters / per_warp * quarters / warps
    }

    fn by_shared(&self, device: &DeviceFacts) -> u32 {
        let unit = if device.major >= 8 { 128 } else { 256 };
        let reserved = if device.major >= 8 { device.shared_reserved } else { 0 };
        let needed = (self.static_shared + self.dynamic_shared + reserved).next_multiple_of(unit);
        if needed == 0 {
            return u32::MAX;
        }
        let limit = device.shared_per_block.max(device.shared_per_block_optin) + reserved;
        if needed > limit { 0 } else { device.shared_per_sm / needed }
    }
}

/// How many blocks an SM holds whatever they need, where the driver is too old to tell.
fn blocks_limit(device: &DeviceFacts) -> u32 {
    if device.blocks_per_sm > 0 {
        return device.blocks_per_sm;
    }
    match (device.major, device.minor) {
        (7, 5) | (8, 6..=8) => 16,
        (8, 9) | (10, 1) | (11, 0) | (12, _) => 24,
        _ => 32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn h200() -> DeviceFacts {
        DeviceFacts {
            major: 9,
            threads_per_block: 1024,
            threads_per_sm: 2048,
            registers_per_block: 65_536,
            registers_per_sm: 65_536,
            warp: 32,
            shared_per_block: 49_152,
            shared_per_block_optin: 232_448,
            shared_per_sm: 233_472,
            shared_reserved: 1024,
            blocks_per_sm: 32,
            sms: 132,
            ..DeviceFacts::default()
        }
    }

    fn needs(grid: i32, block: i32, registers: u32, shared: u32) -> Needs {
        Needs {
            grid: [grid, 1, 1],
            block: [block, 1, 1],
            registers,
            static_shared: 0,
            dynamic_shared: shared,
        }
    }

    #[test]
    fn each_resource_can_be_the_limit() {
        let device = h200();
        assert_eq!(needs(1, 128, 32, 0).resident_blocks(&device), 16, "2048 threads");
        assert_eq!(needs(1, 32, 16, 0).resident_blocks(&device), 32, "32 blocks");
        assert_eq!(needs(1, 128, 168, 0).resident_blocks(&device), 3, "registers");
        assert_eq!(needs(1, 128, 32, 40_960).resident_blocks(&device), 5, "shared memory");
        assert_eq!(needs(1, 384, 168, 231_424).resident_blocks(&device), 1, "opted in to more");
        assert_eq!(needs(1, 2048, 32, 0).resident_blocks(&device), 0, "no such block");
    }

    #[test]
    fn small_grids_fill_little() {
        let fill = needs(1, 128, 32, 0).on(&h200()).unwrap();
        assert!((fill.blocks_per_sm - 1.0 / 132.0).abs() < 1e-12);
        assert!((fill.warps_per_sm - 4.0 / 132.0).abs() < 1e-12);
        assert_eq!(fill.occupancy, 0);
        assert_eq!(needs(100_000, 256, 32, 0).on(&h200()).unwrap().occupancy, 100);
    }

    #[test]
    fn an_unknown_device_has_no_occupancy() {
        assert_eq!(needs(1, 128, 32, 0).on(&DeviceFacts::default()), None);
    }

    /// NVIDIA's own calculator, where its header is installed: a program that answers one line of numbers per line.
    fn calculator() -> Option<std::path::PathBuf> {
        let python = "import glob, sys; print(*(header for path in sys.path for header in \
            glob.glob(path + '/nvidia/*/include/cuda_occupancy.h')), '/usr/local/cuda/include/cuda_occupancy.h', sep='\\n')";
        let found = std::process::Command::new("python3").args(["-c", python]).output().ok()?;
        let found = String::from_utf8_lossy(&found.stdout).into_owned();
        let header = found.lines().map(std::path::Path::new).find(|path| path.is_file())?;
        let program = std::env::temp_dir().join(format!("hotspan-occupancy-{}", std::process::id()));
        let source = program.with_extension("c");
        let text = format!(
            "#include <limits.h>\n#include <stdio.h>\n#include <string.h>\n#include \"{}\"\n\
            int main(void) {{ cudaOccDeviceProp d; int block, regs; size_t fixed, dynamic; memset(&d, 0, sizeof d);\n\
            d.computeMajor = 9; d.maxThreadsPerBlock = 1024; d.maxThreadsPerMultiprocessor = 2048; d.regsPerBlock = 65536;\n\
            d.regsPerMultiprocessor = 65536; d.warpSize = 32; d.sharedMemPerBlock = 49152; d.numSms = 132;\n\
            d.sharedMemPerMultiprocessor = 233472; d.sharedMemPerBlockOptin = 232448; d.reservedSharedMemPerBlock = 1024;\n\
            while (scanf(\"%d %d %zu %zu\", &block, &regs, &fixed, &dynamic) == 4) {{\n\
            cudaOccFuncAttributes f; cudaOccDeviceState s; cudaOccResult r; memset(&f, 0, sizeof f); memset(&s, 0, sizeof s);\n\
            s.carveoutConfig = SHAREDMEM_CARVEOUT_DEFAULT;\n\
            f.maxThreadsPerBlock = INT_MAX; f.numRegs = regs; f.sharedSizeBytes = fixed; f.maxDynamicSharedSizeBytes = dynamic;\n\
            f.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;\n\
            printf(\"%d\\n\", cudaOccMaxActiveBlocksPerMultiprocessor(&r, &d, &f, &s, block, dynamic) ? -1 : r.activeBlocksPerMultiprocessor); }} return 0; }}\n",
            header.display()
        );
        std::fs::write(&source, text).ok()?;
        let built =
            std::process::Command::new("cc").args(["-w", "-o"]).arg(&program).arg(&source).status().ok()?;
        std::fs::remove_file(&source).ok()?;
        assert!(built.success());
        Some(program)
    }

    #[test]
    fn resident_blocks_are_those_of_nvidias_calculator() {
        use std::io::Write as _;
        let Some(program) = calculator() else { return };
        let mut cases = Vec::new();
        for block in [1, 31, 32, 33, 64, 96, 128, 160, 256, 288, 384, 512, 640, 768, 1024] {
            for registers in [1, 16, 24, 32, 40, 64, 80, 96, 122, 128, 168, 254, 255] {
                for (fixed, dynamic) in [
                    (0, 0),
                    (0, 1),
                    (100, 3_000),
                    (12_544, 0),
                    (0, 49_152),
                    (0, 65_536),
                    (1_024, 101_376),
                    (0, 231_424),
                ] {
                    cases.push((block, registers, fixed, dynamic));
                }
            }
        }
        let mut child = std::process::Command::new(&program)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let lines: String = cases.iter().map(|(b, r, s, d)| format!("{b} {r} {s} {d}\n")).collect();
        let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()).unwrap());
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        std::fs::remove_file(&program).unwrap();
        let theirs: Vec<i64> =
            String::from_utf8(output.stdout).unwrap().lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(theirs.len(), cases.len());
        for (&(block, registers, fixed, dynamic), &theirs) in cases.iter().zip(&theirs) {
            let needs = Needs {
                grid: [1, 1, 1],
                block: [block, 1, 1],
                registers,
                static_shared: fixed,
                dynamic_shared: dynamic,
            };
            assert_eq!(i64::from(needs.resident_blocks(&h200())), theirs, "{needs:?}");
        }
    }
}
