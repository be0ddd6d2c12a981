//! The rules: one file each, one line in this list. The order is that of the documentation.

use crate::advice::Rule;

macro_rules! rules {
    ($($file:ident,)*) => {
        $(mod $file;)*

        /// All rules.
        pub const RULES: &[&Rule] = &[$(&$file::RULE,)*];
    };
}

rules! {
    fp64_slow_path,
    numpy_round_trip,
    scalar_read,
    data_loading_bound,
    workers_restarted,
    per_sample_transforms,
    warm_up_in_window,
    eager_attention,
    for_loop_optimizer,
    zero_grad_fills,
    many_tiny_ops,
    dtype_casts,
    contiguous_copies,
    autograd_in_evaluation,
    conv_bias_before_norm,
    for_loop_indexing,
    one_thread,
    thread_oversubscription,
    memory_growth,
    garbage_collection,
    filled_on_cpu,
    device_sync,
    pageable_copies,
    exposed_copies,
    exposed_communication,
    uneven_ranks,
    allocator_calls,
    low_device_use,
    host_bound_launches,
    tiny_kernels,
    tf32_unused,
    mixed_precision_unused,
}
