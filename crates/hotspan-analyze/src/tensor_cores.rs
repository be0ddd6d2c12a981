//! Whether a kernel uses tensor cores (matrix cores on AMD), judged by its name: hardware counters are not in traces.
//!
//! Names say which instruction a kernel was written for. NVIDIA up to Ampere puts the shape of the matrix instruction
//! into the name (`h884`, `s1688`, `16816`); Hopper and Blackwell kernels are named by their instruction (`wgmma`,
//! `tcgen05`, `utcmma`), by cuBLAS's `nvjet`, or by CUTLASS's `sm90_xmma`, `tensorop`, `sm90`/`sm100` collectives and attention
//! libraries by their own names.

/// Words in names of kernels that use tensor cores, in lower case.
const WORDS: [&str; 40] = [
    // Volta, Turing, Ampere: cuBLAS and cuDNN.
    "h884",
    "s884",
    "h1688",
    "s1688",
    "c1688",
    "i8816",
    "16816",
    "i16832",
    "s161616",
    "hmma",
    "_imma",
    "tensorop",
    "wmma",
    "dgrad_1x1_stride_2x2",
    "first_layer_wgrad_kernel",
    "conv1x1",
    "conv2d_c1_k1",
    "direct_group",
    "xmma_implicit_gemm",
    "xmma_sparse_conv",
    "xmma_warp_specialized_implicit_gemm",
    "xmma_gemm",
    "xmma_sparse_gemm",
    "xmma_fprop",
    "xmma_dgrad",
    "xmma_wgrad",
    // Hopper and Blackwell: cuBLAS's generated kernels, CUTLASS 3, hand-written ones.
    "nvjet",
    "wgmma",
    "gmma",
    "tcgen05",
    "utcmma",
    "tmaumma",
    "mainloopsm90",
    "mainloopsm100",
    "sm90_fp8",
    "flash_fwd",
    "flash_bwd",
    "fmha",
    // AMD: matrix cores in hipBLASLt, rocBLAS and Composable Kernel.
    "mfma",
    "xdlops",
];

/// Pairs of words: the second alone says nothing.
const PAIRS: [(&str, &str); 3] = [("cijk_", "_mi"), ("cutlass", "gemmuniversal"), ("cudnn", "_sdpa_")];

/// Words that rule it out: the same libraries' kernels for ordinary cores.
const NOT: [&str; 4] = ["_simt_", "simt_sgemm", "ffma", "splitkreduce"];

/// Whether the name is that of a kernel that uses tensor cores.
#[must_use]
pub fn uses_tensor_cores(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    if NOT.iter().any(|word| name.contains(word)) {
        return false;
    }
    WORDS.iter().any(|word| name.contains(word))
        || PAIRS.iter().any(|(first, second)| name.contains(first) && name.contains(second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_four_generations() {
        for name in [
            "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn",
            "turing_fp16_s1688gemm_fp16_256x128_ldg8_relu_f2f_stages_32x1_tn",
            "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_nn",
            "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x64x16",
            "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x64_32x6_nn_align8>",
            "nvjet_tst_192x192_64x4_2x1_v_bz_coopA_TNT",
            "void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<flash_fwd>>>",
            "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<MainloopSm100TmaUmmaWarpSpecialized>>",
            "Cijk_Ailk_Bljk_BBS_BH_MT128x128x32_MI32x32x8x1",
        ] {
            assert!(uses_tensor_cores(name), "{name}");
        }
        for name in [
            "volta_sgemm_128x64_nn",
            "ampere_sgemm_32x128_tn",
            "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>",
            "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>",
            "void cublasLt::splitKreduce_kernel<32, 16, int, __nv_bfloat16>",
            "Memcpy HtoD (Pageable -> Device)",
        ] {
            assert!(!uses_tensor_cores(name), "{name}");
        }
    }
}
