// What columns mean, for those whose title alone does not say it: shown when one points at the title.

const MEANINGS: Readonly<Record<string, string>> = {
  self_cpu_time_total: "Time on the processor, without what it called",
  cpu_time_total: "Time on the processor, with all it called",
  self_device_time_total: "Time of the kernels it launched itself",
  device_time_total: "Time of the kernels it and all it called launched",
  cpu_memory_usage: "Allocated less released, with all it called",
  self_cpu_memory_usage: "Allocated less released, without what it called",
  tottime: "Time in the function itself",
  cumtime: "Time in the function and all it called",
  ncalls: "Calls, recursive ones too",
  pcalls: "Calls that are not recursive",
  busy_share: "Part of the time in which the device did anything: computed, communicated or copied",
  utilisation: "Part of the time in which a kernel ran",
  sm_efficiency: "Part of its multiprocessors that had work, as estimated from the size of kernels",
  occupancy: "Part of the warps a multiprocessor can hold that were there, as estimated",
  tensor_cores: "Part of the kernel time in kernels that use tensor cores",
  communication: "Communication while nothing computed: what overlapping would hide",
  copy: "Copies while nothing computed or communicated",
  idle: "The device did nothing on any stream",
  wait: "In a collective, before the last rank arrived",
  transfer: "In a collective, after the last rank arrived",
  cause: "What the host did meanwhile: data_loader waited for a batch; host_late ran operators or Python; synchronise waited for the device; dispatch had launched the work already",
  roofline_share: "Of what the device could do with so many operations for each byte",
  wasted: "Time above what the roofline would need",
  mean_delay: "From the end of the call to the beginning of its work",
};

export function meaning(key: string): string | undefined {
  return MEANINGS[key];
}
