// What TorchScript says of an operator: the modules that it runs in, as torch.profiler writes them.
#ifndef HOTSPAN_SCRIPT_H
#define HOTSPAN_SCRIPT_H

#include "inputs.h"
#include "names.h"
#include "recorder.h"

// Some builds of torch leave TorchScript out: there, no operator runs in modules of it.
#if __has_include(<torch/csrc/jit/runtime/interpreter.h>)
#include <torch/csrc/jit/runtime/interpreter.h>
#define HOTSPAN_HAS_SCRIPT 1
#else
#define HOTSPAN_HAS_SCRIPT 0
#endif

#include <string>
#include <vector>

namespace {

#if HOTSPAN_HAS_SCRIPT

// Tells these texts apart from equal names in the table of texts.
constexpr uint64_t kModules = 0x9fb21c651e98df25;

// The number of the block that has the modules, outermost first; 0 outside TorchScript, or without room. Torch makes the text
// anew for each operator, and that allocates: only who asks for modules pays, and only inside TorchScript.
__attribute__((noinline)) uint32_t modules_of(HotspanThread *thread) noexcept {
  try {
    const std::vector<std::string> modules = torch::jit::currentModuleHierarchy();
    if (HOTSPAN_LIKELY(modules.empty())) return 0;
    std::string text;
    for (const std::string &module : modules) text.append(module).append(".");
    const uint64_t hash = mix(hash_bytes(text.data(), text.size()), kModules);
    HotspanTextSlot *slot = &thread->texts[hash % HOTSPAN_TEXT_SLOTS];
    if (slot->hash == hash && slot->name != 0) return slot->name;
    const uint32_t written = write_name(thread, text.data(), text.size(), std::string());
    if (written != 0) *slot = {hash, written, 0};
    return written;
  } catch (...) {
    return 0; // Out of memory: the operator goes without.
  }
}

#else

uint32_t modules_of(HotspanThread *) noexcept { return 0; }

#endif

} // namespace

#endif
