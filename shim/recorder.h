// Where a thread writes its records: shared by the parts of the shim. One translation unit includes it.
#ifndef HOTSPAN_RECORDER_H
#define HOTSPAN_RECORDER_H

#include "hotspan_shim.h"

#include <ATen/record_function.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <new>
#include <utility>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#define HOTSPAN_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define HOTSPAN_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

namespace {

// Nothing here has a destructor: callbacks may run while the process exits.
//
// `hotspan_shim_begin` writes the sink and the flags, then publishes the number of the session. A thread that has read the
// number sees the sink and flags that belong to it, or later ones: a thread may be late and read them while the next session
// begins, hence atomics. What it writes then is published after its session was stopped, and nobody reads it.
std::atomic<uint64_t> running_session{0};
std::atomic<const HotspanSink *> sink{nullptr};
std::atomic<bool> with_inputs{false};
std::atomic<bool> with_memory{false};
std::atomic<bool> with_ranges{false};
std::atomic<bool> with_ids{false};
std::atomic<bool> with_tensors{false};
std::atomic<bool> with_modules{false};
std::atomic<bool> with_extra{false}; // one of the three
std::atomic<bool> with_prepared{false};
std::atomic<bool> with_ticks{false};

inline bool is_on(const std::atomic<bool> &flag) noexcept {
  return flag.load(std::memory_order_relaxed);
}

inline const HotspanSink *current_sink() noexcept {
  return sink.load(std::memory_order_relaxed);
}

// Few bytes, so that they fit where the loader keeps room for libraries that are loaded late: no call to find them.
__attribute__((tls_model("initial-exec"))) thread_local HotspanThread *this_thread = nullptr;
thread_local bool thread_is_gone = false;

inline uint64_t ticks() noexcept {
#if defined(__x86_64__)
  if (is_on(with_ticks)) return __rdtsc();
#elif defined(__aarch64__)
  if (is_on(with_ticks)) {
    uint64_t value;
    __asm__ __volatile__("mrs %0, cntvct_el0" : "=r"(value));
    return value;
  }
#endif
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

static_assert(sizeof(HotspanOperator) == 32 && sizeof(HotspanMemory) == 32 && sizeof(HotspanMemoryTotals) == 32 &&
                  sizeof(HotspanExtra) == 32,
              "all slots have the size Rust expects");
static_assert(offsetof(HotspanOperator, kind) == offsetof(HotspanMemory, kind) &&
                  offsetof(HotspanOperator, kind) == offsetof(HotspanExtra, kind) &&
                  offsetof(HotspanOperator, end) == offsetof(HotspanExtra, one) &&
                  offsetof(HotspanOperator, end) == offsetof(HotspanMemory, address) &&
                  offsetof(HotspanOperator, end) == offsetof(HotspanMemoryTotals, one),
              "every slot says at the same offset what it is and that it has ended");
constexpr uint64_t kSlots = 2 * sizeof(HotspanOperator);

// What torch carries from the start of a range to its end, wherever that is: a pointer to the record. Contexts are
// recycled on the thread that lets go of them; only a thread that nests deeper than ever before allocates.
struct Context final : at::ObserverContext {
  HotspanOperator *record = nullptr;
  const HotspanThread *thread = nullptr; // where the range started

  static void *operator new(size_t, void *at) noexcept { return at; }
  static void operator delete(void *, void *) noexcept {}
  static void operator delete(void *raw) noexcept;
};

struct FreeContext {
  FreeContext *next;
};
__attribute__((tls_model("initial-exec"))) thread_local FreeContext *free_contexts = nullptr;
// Contexts of threads that have ended, for those that begin.
std::atomic<FreeContext *> orphaned_contexts{nullptr};

void Context::operator delete(void *raw) noexcept {
  free_contexts = new (raw) FreeContext{free_contexts};
}

__attribute__((noinline, cold)) void make_contexts() noexcept {
  free_contexts = orphaned_contexts.exchange(nullptr, std::memory_order_acquire);
  if (free_contexts != nullptr) return;
  constexpr size_t kCount = 32;
  auto *block = static_cast<char *>(std::malloc(kCount * sizeof(Context)));
  for (size_t index = 0; block != nullptr && index < kCount; ++index) {
    free_contexts = new (block + index * sizeof(Context)) FreeContext{free_contexts};
  }
}

inline std::unique_ptr<at::ObserverContext> context_of(HotspanOperator *record, const HotspanThread *thread) noexcept {
  if (HOTSPAN_UNLIKELY(free_contexts == nullptr)) make_contexts();
  FreeContext *unused = free_contexts;
  if (HOTSPAN_UNLIKELY(unused == nullptr)) return nullptr;
  free_contexts = unused->next;
  auto *context = new (unused) Context;
  context->record = record;
  context->thread = thread;
  return std::unique_ptr<at::ObserverContext>(context);
}

void orphan_contexts() noexcept {
  FreeContext *last = free_contexts;
  if (last == nullptr) return;
  while (last->next != nullptr) last = last->next;
  FreeContext *first = std::exchange(free_contexts, nullptr);
  last->next = orphaned_contexts.load(std::memory_order_relaxed);
  while (!orphaned_contexts.compare_exchange_weak(
      last->next, first, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

// Puts our object into the slot of this thread: see memory.h.
inline void listen_to_allocators() noexcept;
// Forgets which tensors this thread has seen: see tensors.h.
inline void forget_tensors() noexcept;

// Says goodbye when the thread ends; touched once in attach.
struct Goodbye {
  bool touched = false;
  ~Goodbye() {
    thread_is_gone = true;
    orphan_contexts();
    forget_tensors();
    if (HotspanThread *thread = this_thread) {
      this_thread = nullptr;
      current_sink()->detach(thread);
    }
  }
};
thread_local Goodbye goodbye;

__attribute__((noinline, cold)) HotspanThread *attach(uint64_t session) noexcept {
  if (session == 0 || thread_is_gone) return nullptr;
  goodbye.touched = true;
  this_thread = current_sink()->attach(session, at::RecordFunction::currentThreadId());
  if (is_on(with_ranges)) listen_to_allocators();
  return this_thread;
}

// The buffer of this thread, null when nothing is to be recorded. To acquire costs no instruction on x86-64.
inline HotspanThread *current_thread() noexcept {
  const uint64_t session = running_session.load(std::memory_order_acquire);
  HotspanThread *thread = this_thread;
  if (HOTSPAN_UNLIKELY(thread == nullptr || session == 0 || thread->session != session)) return attach(session);
  return thread;
}

inline uint64_t room_of(const HotspanThread *thread) noexcept {
  return static_cast<uint64_t>(thread->records - thread->blocks);
}

__attribute__((noinline, cold)) bool grow(HotspanThread *thread, uint64_t room) noexcept {
  return current_sink()->grow(thread, room) != 0;
}

inline bool has_room(HotspanThread *thread, uint64_t room) noexcept {
  return HOTSPAN_LIKELY(room_of(thread) >= room + kSlots) || grow(thread, room);
}

// Rust reads these while the thread writes on: it acquires `records` and `blocks`, and what lies behind them never changes
// again but for `kind` and `end` of a record, which are written atomically. The thread itself is the only writer, so that it
// reads its own values plainly.
template <typename Address>
inline void publish(Address *&end, void *value) noexcept {
  __atomic_store_n(&end, static_cast<Address *>(value), __ATOMIC_RELEASE);
}

inline void count(uint64_t &counter) noexcept {
  __atomic_store_n(&counter, counter + 1, __ATOMIC_RELAXED);
}

} // namespace

#endif
