//! Which calls into the CUDA runtime and driver are worth a record.
//!
//! A training step makes eight runtime calls for each kernel, most of them `cudaGetDevice`. Recording those that launch,
//! wait, allocate, copy or order work costs a fraction and answers every question. Functions go by their names, since
//! their numbers grow with each CUDA.

use hashbrown::HashMap;

use crate::cupti::Library;
use crate::cupti::abi::{self, CuptiResult, DOMAIN_DRIVER, DOMAIN_RUNTIME};

/// Part of the names of runtime functions that matter.
const RUNTIME: [&str; 14] = [
    "LaunchKernel",
    "LaunchCooperativeKernel",
    "cudaLaunch_",
    "LaunchHostFunc",
    "GraphLaunch",
    "GraphInstantiate",
    "Synchronize",
    "cudaMalloc",
    "cudaFree",
    "cudaHostAlloc",
    "cudaMemcpy",
    "cudaMemset",
    "cudaEventRecord",
    "cudaStreamWaitEvent",
];

/// Beginnings of the names of driver functions that matter. The runtime calls the driver too, so only launches, which
/// libraries such as Triton make directly, and what has no runtime counterpart in torch.
const DRIVER: [&str; 7] =
    ["cuLaunch", "cuGraphLaunch", "cuMemCreate", "cuMemMap", "cuMemUnmap", "cuMemRelease", "cuMemSetAccess"];

/// Parts of names that never matter: building graphs.
const NEVER: [&str; 3] = ["Node", "cuMemMapArray", "cuLaunchHostFunc"];

/// The functions that can be called, with what their records are called.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    names: HashMap<(u32, u32), (String, bool)>,
}

impl Calls {
    /// Asks a libcupti for the names of all functions.
    pub(crate) fn of(library: &Library) -> Self {
        let mut calls = Self::default();
        for (domain, matters) in
            [(DOMAIN_RUNTIME, runtime_matters as fn(&str) -> bool), (DOMAIN_DRIVER, driver_matters)]
        {
            let mut unknown = 0;
            // Numbers are dense; a long gap is the end.
            for function in 1.. {
                let mut text = std::ptr::null();
                // SAFETY: CUPTI checks both numbers, and fills the local with the address of static text or leaves it null.
                let result =
                    unsafe { (library.functions().get_callback_name)(domain, function, &raw mut text) };
                // SAFETY: on success the text is static and zero-terminated.
                let name = unsafe { abi::text_at(text) }.filter(|_| result == CuptiResult::SUCCESS);
                match name {
                    Some(name) => {
                        unknown = 0;
                        let is_wanted = matters(&name) && !NEVER.iter().any(|part| name.contains(part));
                        calls.names.insert((domain, function), (shown(&name).to_owned(), is_wanted));
                    }
                    None => unknown += 1,
                }
                if unknown > 32 || function > 4096 {
                    break;
                }
            }
        }
        calls
    }

    /// The functions of a domain that are worth a record, in order.
    pub(crate) fn wanted(&self, domain: u32) -> Vec<u32> {
        self.those(domain, true)
    }

    /// The functions of a domain that are not worth a record, in order.
    pub(crate) fn unwanted(&self, domain: u32) -> Vec<u32> {
        self.those(domain, false)
    }

    fn those(&self, domain: u32, wanted: bool) -> Vec<u32> {
        let fits = |&(&(of, _), &(_, is_wanted)): &(&(u32, u32), &(String, bool))| {
            of == domain && is_wanted == wanted
        };
        let mut found: Vec<u32> =
            self.names.iter().filter(fits).map(|(&(_, function), _)| function).collect();
        found.sort_unstable();
        found
    }

    /// Whether a function is worth a record. Those without a name are.
    pub(crate) fn is_wanted(&self, domain: u32, function: u32) -> bool {
        self.names.get(&(domain, function)).is_none_or(|&(_, is_wanted)| is_wanted)
    }

    /// What a call of a function is called.
    pub(crate) fn name(&self, domain: u32, function: u32) -> String {
        match self.names.get(&(domain, function)) {
            Some((name, _)) => name.clone(),
            None => {
                format!("{} call {function}", if domain == DOMAIN_RUNTIME { "runtime" } else { "driver" })
            }
        }
    }
}

fn runtime_matters(name: &str) -> bool {
    RUNTIME.iter().any(|part| name.contains(part))
}

fn driver_matters(name: &str) -> bool {
    DRIVER.iter().any(|beginning| name.starts_with(beginning))
}

/// A name without the version of its signature: `cudaLaunchKernel_v7000`, `cudaMemcpyAsync_ptsz_v7000`.
fn shown(name: &str) -> &str {
    match name.rsplit_once("_v") {
        Some((before, version))
            if !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            before
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_waits_and_copies_matter_and_questions_do_not() {
        for name in [
            "cudaLaunchKernel_v7000",
            "cudaLaunchKernelExC_v11060",
            "__cudaLaunchKernel_v13000",
            "cudaGraphLaunch_v10000",
            "cudaDeviceSynchronize_v3020",
            "cudaMemcpyAsync_ptsz_v7000",
            "cudaStreamWaitEvent_v3020",
        ] {
            assert!(runtime_matters(name), "{name}");
        }
        for name in ["cudaGetDevice_v3020", "cudaEventQuery_v3020", "cudaStreamIsCapturing_v10000"] {
            assert!(!runtime_matters(name), "{name}");
        }
        assert!(driver_matters("cuLaunchKernelEx") && !driver_matters("cuCtxGetCurrent"));
    }

    #[test]
    fn names_lose_their_version() {
        assert_eq!(shown("cudaLaunchKernel_v7000"), "cudaLaunchKernel");
        assert_eq!(shown("cudaMemcpyAsync_ptsz_v7000"), "cudaMemcpyAsync_ptsz");
        assert_eq!(shown("cuLaunchKernel"), "cuLaunchKernel");
        assert_eq!(shown("cuMemAlloc_v2"), "cuMemAlloc", "the driver counts its signatures the same way");
    }
}
