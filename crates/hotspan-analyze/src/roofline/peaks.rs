//! What devices can do at best: the numbers of their makers' datasheets, dense (no sparsity), at boost clock.
//!
//! TFLOP/s: FP64 and FP32 of ordinary cores; TF32, FP16/BF16 and FP8 of tensor or matrix cores, accumulating in FP32. GB/s of
//! device memory (10^9 bytes). A GPU of two dies that shows as two devices (MI250X) has the numbers of one die. No kernel
//! reaches these numbers: large matrix products reach 60-85 % of them.
//!
//! Sources: NVIDIA datasheets and architecture whitepapers (Volta, Turing, Ampere GA100 and GA102, Ada, Hopper, Blackwell; H200, H20
//! and HGX B200 datasheets; NVIDIA RTX Blackwell whitepaper), AMD Instinct datasheets and CDNA 2, 3 and 4 whitepapers.

/// How numbers are represented in an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Precision {
    /// 64 bits.
    Fp64,
    /// 32 bits, on ordinary cores.
    Fp32,
    /// 32 bits, of which tensor cores read 19.
    Tf32,
    /// FP16 or BF16.
    Half,
    /// 8 bits.
    Fp8,
}

impl Precision {
    /// The name in tables.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Fp64 => "fp64",
            Self::Fp32 => "fp32",
            Self::Tf32 => "tf32",
            Self::Half => "fp16/bf16",
            Self::Fp8 => "fp8",
        }
    }
}

/// What a device can do at best.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peaks {
    /// What it is called here.
    pub name: &'static str,
    /// TFLOP/s by [`Precision`], in its order; zero where there is none.
    tera_flops: [f64; 5],
    /// GB/s of its memory.
    pub memory: f64,
}

impl Peaks {
    /// Operations per nanosecond; `None` where the device has no such cores.
    #[must_use]
    pub fn flops(&self, precision: Precision) -> Option<f64> {
        let tera = self.tera_flops[precision as usize];
        (tera > 0.0).then_some(tera * 1e3)
    }
}

/// Words of a device's name, all of which must be there; what it is; FP64, FP32, TF32, FP16/BF16, FP8 in TFLOP/s; GB/s. The first
/// that fits is taken, so the more special come first.
type Row = (&'static [&'static str], &'static str, [f64; 5], f64);

const TABLE: [Row; 46] = [
    (&["v100s"], "V100S PCIe", [8.2, 16.4, 0.0, 130.0, 0.0], 1134.0),
    (&["v100", "pcie"], "V100 PCIe", [7.0, 14.0, 0.0, 112.0, 0.0], 900.0),
    (&["v100"], "V100 SXM2", [7.8, 15.7, 0.0, 125.0, 0.0], 900.0),
    (&["t4"], "T4", [0.25, 8.1, 0.0, 65.0, 0.0], 320.0),
    (&["a100", "80gb", "pcie"], "A100 80GB PCIe", [9.7, 19.5, 156.0, 312.0, 0.0], 1935.0),
    (&["a100", "80gb"], "A100 80GB SXM", [9.7, 19.5, 156.0, 312.0, 0.0], 2039.0),
    (&["a100"], "A100 40GB", [9.7, 19.5, 156.0, 312.0, 0.0], 1555.0),
    (&["a10"], "A10", [0.49, 31.2, 62.5, 125.0, 0.0], 600.0),
    (&["a30"], "A30", [5.2, 10.3, 82.0, 165.0, 0.0], 933.0),
    (&["a40"], "A40", [0.58, 37.4, 74.8, 149.7, 0.0], 696.0),
    (&["a6000"], "RTX A6000", [0.6, 38.7, 77.4, 154.8, 0.0], 768.0),
    (&["l4"], "L4", [0.49, 30.3, 60.0, 121.0, 242.5], 300.0),
    (&["l40s"], "L40S", [1.4, 91.6, 183.0, 362.0, 733.0], 864.0),
    (&["l40"], "L40", [1.4, 90.5, 90.5, 181.0, 362.0], 864.0),
    (&["h100", "pcie"], "H100 PCIe", [26.0, 51.0, 378.0, 756.0, 1513.0], 2000.0),
    (&["h100", "nvl"], "H100 NVL", [30.0, 60.0, 417.5, 835.5, 1671.0], 3900.0),
    (&["h100"], "H100 SXM", [34.0, 67.0, 494.5, 989.5, 1979.0], 3350.0),
    (&["gh200"], "GH200", [34.0, 67.0, 494.5, 989.5, 1979.0], 4900.0),
    (&["h200", "nvl"], "H200 NVL", [30.0, 60.0, 417.5, 835.5, 1671.0], 4800.0),
    (&["h200"], "H200", [34.0, 67.0, 494.5, 989.5, 1979.0], 4800.0),
    (&["h20"], "H20", [1.0, 44.0, 74.0, 148.0, 296.0], 4000.0),
    (&["h800"], "H800 SXM", [1.0, 67.0, 494.5, 989.5, 1979.0], 3350.0),
    (&["a800"], "A800", [9.7, 19.5, 156.0, 312.0, 0.0], 2039.0),
    (&["gb200"], "GB200", [40.0, 80.0, 1250.0, 2500.0, 5000.0], 8000.0),
    (&["gb300"], "GB300", [1.3, 80.0, 1250.0, 2500.0, 5000.0], 8000.0),
    (&["b200"], "B200", [37.0, 75.0, 1125.0, 2250.0, 4500.0], 7700.0),
    (&["b300"], "B300", [1.2, 75.0, 1125.0, 2250.0, 4500.0], 7700.0),
    (&["2080", "ti"], "RTX 2080 Ti", [0.42, 13.4, 0.0, 53.8, 0.0], 616.0),
    (&["2080"], "RTX 2080", [0.31, 10.1, 0.0, 40.3, 0.0], 448.0),
    (&["3080"], "RTX 3080", [0.47, 29.8, 29.8, 59.5, 0.0], 760.0),
    (&["3090", "ti"], "RTX 3090 Ti", [0.62, 40.0, 40.0, 80.0, 0.0], 1008.0),
    (&["3090"], "RTX 3090", [0.56, 35.6, 35.6, 71.0, 0.0], 936.0),
    (&["4070"], "RTX 4070", [0.46, 29.1, 29.1, 58.3, 116.6], 504.0),
    (&["4080"], "RTX 4080", [0.76, 48.7, 48.7, 97.5, 194.9], 717.0),
    (&["4090"], "RTX 4090", [1.29, 82.6, 82.6, 165.2, 330.3], 1008.0),
    (&["5080"], "RTX 5080", [0.88, 56.3, 56.3, 112.6, 225.1], 960.0),
    (&["5090"], "RTX 5090", [1.64, 104.8, 104.8, 209.5, 419.0], 1792.0),
    (&["mi210"], "MI210", [22.6, 22.6, 0.0, 181.0, 0.0], 1638.0),
    (&["mi250x"], "MI250X (one die)", [23.9, 23.9, 0.0, 191.5, 0.0], 1638.0),
    (&["mi250"], "MI250 (one die)", [22.6, 22.6, 0.0, 181.0, 0.0], 1638.0),
    (&["mi300a"], "MI300A", [61.3, 122.6, 490.3, 980.6, 1961.2], 5300.0),
    (&["mi300x"], "MI300X", [81.7, 163.4, 653.7, 1307.4, 2614.9], 5300.0),
    (&["mi325x"], "MI325X", [81.7, 163.4, 653.7, 1307.4, 2614.9], 6000.0),
    (&["mi350x"], "MI350X", [72.1, 144.2, 0.0, 2300.0, 4600.0], 8000.0),
    (&["mi355x"], "MI355X", [78.6, 157.3, 0.0, 2500.0, 5000.0], 8000.0),
    (&["rtx", "6000", "ada"], "RTX 6000 Ada", [1.42, 91.1, 182.1, 364.2, 728.5], 960.0),
];

/// The peaks of a device by its name; `None` for one that is not in the table.
#[must_use]
pub fn peaks(device: &str) -> Option<Peaks> {
    let device = device.to_ascii_lowercase();
    let words: Vec<&str> = device.split(|character: char| !character.is_ascii_alphanumeric()).collect();
    let fits = |(wanted, ..): &&Row| wanted.iter().all(|word| words.contains(word));
    let &(_, name, tera_flops, memory) = TABLE.iter().find(fits)?;
    Some(Peaks { name, tera_flops, memory })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_known_by_the_names_drivers_give_them() {
        for (name, expected) in [
            ("Tesla V100-SXM2-32GB", "V100 SXM2"),
            ("Tesla V100-DGXS-32GB", "V100 SXM2"),
            ("NVIDIA A100-PG509-200", "A100 40GB"),
            ("NVIDIA A100-SXM4-80GB", "A100 80GB SXM"),
            ("NVIDIA A100 80GB PCIe", "A100 80GB PCIe"),
            ("NVIDIA H100 80GB HBM3", "H100 SXM"),
            ("NVIDIA H200", "H200"),
            ("NVIDIA B200", "B200"),
            ("NVIDIA L4", "L4"),
            ("Tesla T4", "T4"),
            ("NVIDIA GeForce RTX 2080 Ti", "RTX 2080 Ti"),
            ("AMD Instinct MI300X", "MI300X"),
        ] {
            assert_eq!(peaks(name).map(|peaks| peaks.name), Some(expected), "{name}");
        }
        for name in ["", "AMD Radeon Graphics", "ARTEMIS", "NVIDIA A10G"] {
            assert_eq!(peaks(name), None, "{name}");
        }
        assert_eq!(peaks("NVIDIA H200").unwrap().flops(Precision::Half), Some(989_500.0));
        assert_eq!(peaks("Tesla T4").unwrap().flops(Precision::Fp8), None);
    }
}
