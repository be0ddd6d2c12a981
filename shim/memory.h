// Allocations and releases: torch's allocators report to an object in a slot of the running thread.
#ifndef HOTSPAN_MEMORY_H
#define HOTSPAN_MEMORY_H

#include "recorder.h"

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/csrc/profiler/orchestration/observer.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

namespace {

// Receives the reports of torch's allocators. Torch casts whatever is in the PROFILER_STATE slot to this base class,
// so the object derives from it. Its configuration says "disabled", so torch.profiler takes it for no profiler; or, where torch
// should prepare inputs that it prepares for profilers only, "enabled, with shapes".
// One object of each kind serves all threads and sessions and is never destroyed.
struct MemoryReporter final : torch::profiler::impl::ProfilerStateBase {
  explicit MemoryReporter(torch::profiler::impl::ProfilerState state)
      : ProfilerStateBase(torch::profiler::impl::ProfilerConfig(state, /*report_input_shapes=*/true)) {}
  // What programs are told that ask which profiler records: the one that we stand in for.
  torch::profiler::impl::ActiveProfilerType profilerType() override {
    return torch::profiler::impl::ActiveProfilerType::KINETO;
  }
  bool memoryProfilingEnabled() const override {
    return is_on(with_memory) && running_session.load(std::memory_order_relaxed) != 0;
  }
  void reportMemoryUsage(
      void *address, int64_t bytes, size_t allocated, size_t reserved, c10::Device device) override {
    write(HOTSPAN_KIND_MEMORY, address, bytes, allocated, reserved, device);
  }
  void reportOutOfMemory(int64_t bytes, size_t allocated, size_t reserved, c10::Device device) override {
    write(HOTSPAN_KIND_OUT_OF_MEMORY, nullptr, bytes, allocated, reserved, device);
  }

 private:
  static void write(
      uint8_t kind, void *address, int64_t bytes, size_t allocated, size_t reserved, c10::Device device) noexcept {
    if (!is_on(with_memory)) return;
    HotspanThread *thread = current_thread();
    if (thread == nullptr) return;
    if (HOTSPAN_UNLIKELY(!has_room(thread, 0))) return count(thread->dropped);
    auto *totals = reinterpret_cast<HotspanMemoryTotals *>(thread->records) - 2;
    *totals = {allocated, 1, reserved, 0};
    *reinterpret_cast<HotspanMemory *>(totals + 1) = {
        ticks(), address == nullptr ? 1 : reinterpret_cast<uint64_t>(address), bytes, device.index(),
        static_cast<uint8_t>(device.type()), kind, 0};
    publish(thread->records, totals);
  }
};

// A slot is a node of the thread's list; its object is private there. Naming a private member in an explicit
// instantiation is allowed, and the only way to take the object out of another thread's slot.
struct InfoOfNode {
  friend std::shared_ptr<c10::DebugInfoBase> c10::ThreadLocalDebugInfo::*private_info(InfoOfNode);
};
template <std::shared_ptr<c10::DebugInfoBase> c10::ThreadLocalDebugInfo::*Member>
struct RevealInfo {
  friend std::shared_ptr<c10::DebugInfoBase> c10::ThreadLocalDebugInfo::*private_info(InfoOfNode) {
    return Member;
  }
};
template struct RevealInfo<&c10::ThreadLocalDebugInfo::info_>;

// All nodes with our object, of all threads. Never destroyed: threads outlive the destructors of the process.
struct Listeners {
  std::mutex mutex;
  std::vector<std::weak_ptr<c10::ThreadLocalDebugInfo>> nodes;
  std::shared_ptr<c10::DebugInfoBase> disabled =
      std::make_shared<MemoryReporter>(torch::profiler::impl::ProfilerState::Disabled);
  std::shared_ptr<c10::DebugInfoBase> enabled =
      std::make_shared<MemoryReporter>(torch::profiler::impl::ProfilerState::KINETO);

  const std::shared_ptr<c10::DebugInfoBase> &reporter() const { return is_on(with_prepared) ? enabled : disabled; }

  bool has(const c10::DebugInfoBase *object) const {
    return object != nullptr && (object == disabled.get() || object == enabled.get());
  }

  // Whether the object in this thread's slot is one of ours.
  static bool is_here() noexcept {
    const Listeners *present = everyone.load(std::memory_order_acquire);
    return present != nullptr && present->has(c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::PROFILER_STATE));
  }

  static Listeners &all() {
    Listeners *present = everyone.load(std::memory_order_acquire);
    if (present == nullptr) {
      auto *made = new Listeners;
      if (everyone.compare_exchange_strong(present, made)) return *made;
      delete made;
    }
    return *present;
  }

  // In a forked child the lock may be held for ever. The only thread there is the one that forked.
  static void forget_parent() noexcept {
    const Listeners *parents = everyone.exchange(nullptr);
    const auto top = c10::ThreadLocalDebugInfo::current();
    const auto *present = c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::PROFILER_STATE);
    if (parents == nullptr || top == nullptr || !parents->has(present)) return;
    if (((*top).*private_info(InfoOfNode{})).get() == present) point(*top, nullptr);
  }

  static std::atomic<Listeners *> everyone;

  // Changes what a node says, while its thread may be reading it: one atomic store of one aligned pointer. The count of
  // references beside it stays as it is, so the node lets go of the object in the usual way.
  //
  // The other side is torch's, in machine code that exists already: `ThreadLocalDebugInfo::get` in libc10 loads the pointer
  // once, without an atomic, and returns what it loaded. An aligned load of a pointer is whole on every processor that torch
  // runs on, so the thread gets the object or null. Either will do without any order, hence relaxed: the object is made
  // before its address is first stored, it is never destroyed, and whoever calls it late finds that nothing is wanted.
  static void point(c10::ThreadLocalDebugInfo &node, c10::DebugInfoBase *object) noexcept {
    std::shared_ptr<c10::DebugInfoBase> &info = node.*private_info(InfoOfNode{});
    static_assert(sizeof info == 2 * sizeof(void *), "a shared pointer is a pointer and its count of references");
    __atomic_store_n(reinterpret_cast<c10::DebugInfoBase **>(&info), object, __ATOMIC_RELAXED);
  }

  void forget_dead() {
    nodes.erase(std::remove_if(nodes.begin(), nodes.end(), [](const auto &node) { return node.expired(); }), nodes.end());
  }
};

std::atomic<Listeners *> Listeners::everyone{nullptr};

// This thread has no object in its slot: puts ours there. A slot that was emptied by `stop_listening` is used again.
__attribute__((noinline, cold)) void listen() noexcept {
  try {
    Listeners &all = Listeners::all();
    const std::lock_guard<std::mutex> guard(all.mutex);
    const auto top = c10::ThreadLocalDebugInfo::current();
    for (const auto &node : all.nodes) {
      if (top != nullptr && node.lock() == top) return Listeners::point(*top, all.reporter().get());
    }
    if (all.nodes.size() >= 64) all.forget_dead();
    c10::ThreadLocalDebugInfo::_push(c10::DebugInfoKind::PROFILER_STATE, all.reporter());
    all.nodes.push_back(c10::ThreadLocalDebugInfo::current());
  } catch (...) {
    // Out of memory: this thread's allocations stay unseen.
  }
}

// Makes this thread's allocations visible, and that somebody records: torch gives Triton's kernels a range only where the
// slot is taken. The slot is scoped: backward and JIT continuations install and restore whole
// lists of slots, so it is looked at before each operator. Another profiler's object there is left alone.
inline void listen_to_allocators() noexcept {
  if (HOTSPAN_UNLIKELY(c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::PROFILER_STATE) == nullptr)) listen();
}

// Empties the slots of all threads, so that torch.profiler can start on any of them.
void stop_listening() {
  Listeners &all = Listeners::all();
  const std::lock_guard<std::mutex> guard(all.mutex);
  all.forget_dead();
  const auto top = c10::ThreadLocalDebugInfo::current();
  for (const auto &listener : all.nodes) {
    if (const auto node = listener.lock()) {
      // On the thread that stops, the whole node can go, where nothing was put on top of it.
      if (node == top) c10::ThreadLocalDebugInfo::_pop(c10::DebugInfoKind::PROFILER_STATE);
      Listeners::point(*node, nullptr);
    }
  }
}

} // namespace

#endif
