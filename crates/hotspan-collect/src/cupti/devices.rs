//! The devices of this process: what the driver says about them, as Kineto lists it.

use std::ffi::{c_char, c_int, c_void};

use serde_json::{Value, json};

use crate::cupti::library::loaded_libraries;
use crate::dynamic_library::{function, open_library};

/// What occupancy is computed from, and what a reader of the trace wants to know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeviceFacts {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) memory: u64,
    pub(crate) major: u32,
    pub(crate) minor: u32,
    pub(crate) threads_per_block: u32,
    pub(crate) threads_per_sm: u32,
    pub(crate) registers_per_block: u32,
    pub(crate) registers_per_sm: u32,
    pub(crate) warp: u32,
    pub(crate) shared_per_block: u32,
    pub(crate) shared_per_block_optin: u32,
    pub(crate) shared_per_sm: u32,
    pub(crate) shared_reserved: u32,
    pub(crate) blocks_per_sm: u32,
    pub(crate) sms: u32,
}

/// All devices and the versions of what drives them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Devices {
    pub(crate) devices: Vec<DeviceFacts>,
    pub(crate) driver_version: Option<c_int>,
    pub(crate) runtime_version: Option<c_int>,
}

/// `CUdevice_attribute`.
mod attribute {
    pub(super) const MAX_THREADS_PER_BLOCK: i32 = 1;
    pub(super) const MAX_SHARED_PER_BLOCK: i32 = 8;
    pub(super) const WARP_SIZE: i32 = 10;
    pub(super) const MAX_REGISTERS_PER_BLOCK: i32 = 12;
    pub(super) const MULTIPROCESSORS: i32 = 16;
    pub(super) const MAX_THREADS_PER_SM: i32 = 39;
    pub(super) const MAJOR: i32 = 75;
    pub(super) const MINOR: i32 = 76;
    pub(super) const MAX_SHARED_PER_SM: i32 = 81;
    pub(super) const MAX_REGISTERS_PER_SM: i32 = 82;
    pub(super) const MAX_SHARED_PER_BLOCK_OPTIN: i32 = 97;
    pub(super) const MAX_BLOCKS_PER_SM: i32 = 106;
    pub(super) const RESERVED_SHARED_PER_BLOCK: i32 = 111;
}

type GetNumber = unsafe extern "C" fn(*mut c_int) -> c_int;
type GetDevice = unsafe extern "C" fn(*mut c_int, c_int) -> c_int;
type GetName = unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int;
type GetMemory = unsafe extern "C" fn(*mut usize, c_int) -> c_int;
type GetAttribute = unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int;

impl Devices {
    /// Asks the driver that this process has loaded; no devices where it has none.
    pub(crate) fn of_this_process() -> Self {
        let mut devices = loaded_libraries("libcuda.so")
            .first()
            .and_then(|path| open_library(path, libc::RTLD_NOLOAD).ok())
            .and_then(Self::ask)
            .unwrap_or_default();
        devices.runtime_version = loaded_libraries("libcudart.so").first().and_then(|path| {
            let library = open_library(path, libc::RTLD_NOLOAD).ok()?;
            // SAFETY: the runtime declares it so.
            let version: GetNumber = unsafe { function(library, "cudaRuntimeGetVersion") }?;
            let mut number = 0;
            // SAFETY: the function fills the local.
            (unsafe { version(&raw mut number) } == 0).then_some(number)
        });
        devices
    }

    fn ask(driver: *mut c_void) -> Option<Self> {
        // SAFETY: cuda.h declares these functions so.
        let (count, device, name, memory, attribute, version) = unsafe {
            (
                function::<GetNumber>(driver, "cuDeviceGetCount")?,
                function::<GetDevice>(driver, "cuDeviceGet")?,
                function::<GetName>(driver, "cuDeviceGetName")?,
                function::<GetMemory>(driver, "cuDeviceTotalMem_v2")?,
                function::<GetAttribute>(driver, "cuDeviceGetAttribute")?,
                function::<GetNumber>(driver, "cuDriverGetVersion")?,
            )
        };
        let mut devices = Self::default();
        let mut number = 0;
        // SAFETY: the driver fills the local each time.
        unsafe {
            devices.driver_version = (version(&raw mut number) == 0).then_some(number);
            if count(&raw mut number) != 0 {
                return Some(devices);
            }
        }
        for id in 0..number.clamp(0, 1024) {
            let mut handle = 0;
            let mut text = [0_u8; 256];
            let mut bytes = 0;
            // SAFETY: the driver fills the locals, and writes no more text than it is told there is room for.
            let answered = unsafe {
                device(&raw mut handle, id) == 0
                    && name(text.as_mut_ptr().cast(), text.len() as c_int - 1, handle) == 0
                    && memory(&raw mut bytes, handle) == 0
            };
            if !answered {
                continue;
            }
            let ask = |which: i32| {
                let mut value = 0;
                // SAFETY: the function fills the local.
                let result = unsafe { attribute(&raw mut value, which, handle) };
                if result == 0 { value.max(0) as u32 } else { 0 }
            };
            let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
            devices.devices.push(DeviceFacts {
                id: id as u32,
                name: String::from_utf8_lossy(&text[..end]).into_owned(),
                memory: bytes as u64,
                major: ask(attribute::MAJOR),
                minor: ask(attribute::MINOR),
                threads_per_block: ask(attribute::MAX_THREADS_PER_BLOCK),
                threads_per_sm: ask(attribute::MAX_THREADS_PER_SM),
                registers_per_block: ask(attribute::MAX_REGISTERS_PER_BLOCK),
                registers_per_sm: ask(attribute::MAX_REGISTERS_PER_SM),
                warp: ask(attribute::WARP_SIZE),
                shared_per_block: ask(attribute::MAX_SHARED_PER_BLOCK),
                shared_per_block_optin: ask(attribute::MAX_SHARED_PER_BLOCK_OPTIN),
                shared_per_sm: ask(attribute::MAX_SHARED_PER_SM),
                shared_reserved: ask(attribute::RESERVED_SHARED_PER_BLOCK),
                blocks_per_sm: ask(attribute::MAX_BLOCKS_PER_SM),
                sms: ask(attribute::MULTIPROCESSORS),
            });
        }
        Some(devices)
    }

    /// The device of that number.
    pub(crate) fn get(&self, id: u32) -> Option<&DeviceFacts> {
        self.devices.iter().find(|device| device.id == id)
    }

    /// Kineto's `deviceProperties`.
    pub(crate) fn json(&self) -> String {
        let rows = self.devices.iter().map(|device| {
            json!({
                "id": device.id,
                "name": device.name,
                "totalGlobalMem": device.memory,
                "computeMajor": device.major,
                "computeMinor": device.minor,
                "maxThreadsPerBlock": device.threads_per_block,
                "maxThreadsPerMultiprocessor": device.threads_per_sm,
                "regsPerBlock": device.registers_per_block,
                "warpSize": device.warp,
                "sharedMemPerBlock": device.shared_per_block,
                "numSms": device.sms,
                "regsPerMultiprocessor": device.registers_per_sm,
                "sharedMemPerBlockOptin": device.shared_per_block_optin,
                "sharedMemPerMultiprocessor": device.shared_per_sm,
            })
        });
        Value::Array(rows.collect()).to_string()
    }
}
