// Torch's side of hotspan's operator collector: turns at::RecordFunction callbacks and allocator reports into plain
// records. Compiled on the user's machine against the installed torch's own headers, because they are no stable ABI.
//
// The hot path (on_start, on_end, reportMemoryUsage) takes no lock, allocates nothing, needs no GIL and never throws.
// Where records go, how long they live and what they mean is Rust's business: see hotspan_shim.h.

#include "hotspan_shim.h"
#include "inputs.h"

#include <ATen/record_function.h>
#include <c10/core/Allocator.h>
#include <c10/core/ScalarType.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/csrc/profiler/orchestration/observer.h>

#include <atomic>
#include <cstring>
#include <ctime>
#include <memory>
#include <cstdlib>
#include <new>
#include <string>
#include <utility>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace {

// Nothing here has a destructor: callbacks may run while the process exits.
std::atomic<uint64_t> running_session{0};
const HotspanSink *sink = nullptr;
bool with_inputs = false;
std::atomic<bool> with_memory{false};
bool with_ticks = false;
at::CallbackHandle plain_handle = at::INVALID_CALLBACK_HANDLE;
at::CallbackHandle inputs_handle = at::INVALID_CALLBACK_HANDLE;

// Few bytes, so that they fit where the loader keeps room for libraries that are loaded late: no call to find them.
__attribute__((tls_model("initial-exec"))) thread_local HotspanThread *this_thread = nullptr;
thread_local bool thread_is_gone = false;
thread_local char last_error[256];

constexpr auto kUserScope = static_cast<uint8_t>(at::RecordScope::USER_SCOPE);
constexpr size_t kLongestName = 1 << 20;
// Below this many free bytes a chunk counts as full.
constexpr uint64_t kRoom = 2048;
// Inputs that need more than this are dropped, and counted.
constexpr uint64_t kLargeRoom = 65536;

inline uint64_t ticks() noexcept {
#if defined(__x86_64__)
  if (with_ticks) return __rdtsc();
#elif defined(__aarch64__)
  if (with_ticks) {
    uint64_t value;
    __asm__ __volatile__("mrs %0, cntvct_el0" : "=r"(value));
    return value;
  }
#endif
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

static_assert(sizeof(HotspanOperator) == 32 && sizeof(HotspanMemory) == 32 && sizeof(HotspanMemoryTotals) == 32,
              "all slots have the size Rust expects");
static_assert(offsetof(HotspanOperator, kind) == offsetof(HotspanMemory, kind) &&
                  offsetof(HotspanOperator, end) == offsetof(HotspanMemory, address) &&
                  offsetof(HotspanOperator, end) == offsetof(HotspanMemoryTotals, one),
              "every slot says in the same place what it is and that it has ended");
constexpr uint64_t kSlots = 2 * sizeof(HotspanOperator);

// What torch carries from the start of a range to its end, wherever that is: a pointer to the record. Contexts are
// recycled on the thread that lets go of them; only a thread that nests deeper than ever before allocates.
struct Context final : at::ObserverContext {
  HotspanOperator *record = nullptr;
  Context *next = nullptr;

  static void *operator new(size_t, void *place) noexcept { return place; }
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

inline std::unique_ptr<at::ObserverContext> context_of(HotspanOperator *record) noexcept {
  if (HOTSPAN_UNLIKELY(free_contexts == nullptr)) make_contexts();
  FreeContext *place = free_contexts;
  if (HOTSPAN_UNLIKELY(place == nullptr)) return nullptr;
  free_contexts = place->next;
  auto *context = new (place) Context;
  context->record = record;
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

// Says goodbye when the thread ends; touched once in attach.
struct Goodbye {
  bool touched = false;
  ~Goodbye() {
    thread_is_gone = true;
    orphan_contexts();
    if (HotspanThread *thread = this_thread) {
      this_thread = nullptr;
      sink->detach(thread);
    }
  }
};
thread_local Goodbye goodbye;

__attribute__((noinline, cold)) HotspanThread *attach(uint64_t session) noexcept {
  if (session == 0 || thread_is_gone) return nullptr;
  goodbye.touched = true;
  this_thread = sink->attach(session, at::RecordFunction::currentThreadId());
  return this_thread;
}

// The buffer of this thread, null when nothing is to be recorded.
inline HotspanThread *current_thread() noexcept {
  const uint64_t session = running_session.load(std::memory_order_relaxed);
  HotspanThread *thread = this_thread;
  if (HOTSPAN_UNLIKELY(thread == nullptr || session == 0 || thread->session != session)) return attach(session);
  return thread;
}

inline uint64_t room_of(const HotspanThread *thread) noexcept {
  return static_cast<uint64_t>(thread->records - thread->blocks);
}

__attribute__((noinline, cold)) bool grow(HotspanThread *thread, uint64_t room) noexcept {
  return sink->grow(thread, room) != 0;
}

inline bool has_room(HotspanThread *thread, uint64_t room) noexcept {
  return HOTSPAN_LIKELY(room_of(thread) >= room + kSlots) || grow(thread, room);
}

template <typename Address>
inline void publish(Address *&place, void *value) noexcept {
  __atomic_store_n(&place, static_cast<Address *>(value), __ATOMIC_RELEASE);
}

inline void count(uint64_t &counter) noexcept {
  __atomic_store_n(&counter, counter + 1, __ATOMIC_RELAXED);
}

// Writes a name that is not in its slot; 0: there is no room.
__attribute__((noinline, cold)) uint32_t write_name(
    HotspanThread *thread, HotspanNameSlot *slot, const char *text, size_t length, const at::RecordFunction &fn) noexcept {
  std::string overload;
  bool registered = false;
  try {
    if (auto operator_name = fn.operator_name()) {
      overload = std::move(operator_name->overload_name);
      registered = true;
    }
  } catch (...) {
    // Out of memory: the name goes without.
  }
  const size_t bytes = (sizeof(HotspanBlock) + length + overload.size() + 7) & ~size_t{7};
  if (!has_room(thread, bytes + kRoom)) return 0;
  uint8_t *at = thread->blocks;
  *reinterpret_cast<HotspanBlock *>(at) = {
      static_cast<uint32_t>(bytes / 8), HOTSPAN_BLOCK_NAME, static_cast<uint32_t>(length),
      static_cast<uint32_t>(overload.size())};
  memcpy(at + sizeof(HotspanBlock), text, length);
  memcpy(at + sizeof(HotspanBlock) + length, overload.data(), overload.size());
  publish(thread->blocks, at + bytes);
  *slot = {text, {}, hash_bytes(text, length), ++thread->name_count, registered, {}};
  memcpy(slot->prefix, text, sizeof slot->prefix);
  return slot->name;
}

__attribute__((noinline)) uint32_t find_text(
    HotspanThread *thread, HotspanNameSlot *slot, const char *text, const at::RecordFunction &fn) noexcept {
  const size_t length = strnlen(text, kLongestName);
  if (slot->key == text && slot->hash == hash_bytes(text, length)) return slot->name;
  return write_name(thread, slot, text, length, fn);
}

// An address alone does not identify a name: ranges reuse memory, so their text is compared. Operators can be
// unregistered while recording, but seldom are: for them it is enough to compare the first bytes. Torch holds every name in
// a std::string, which has room for 16 bytes however short the name is.
inline uint32_t name_of(HotspanThread *thread, const at::RecordFunction &fn) noexcept {
  const char *text = fn.name();
  const auto key = reinterpret_cast<uintptr_t>(text);
  HotspanNameSlot *slot = &thread->names[(key >> 4 ^ key >> 12) % HOTSPAN_NAME_SLOTS];
  uint64_t prefix[2];
  memcpy(prefix, text, sizeof prefix);
  const bool same = slot->key == text && prefix[0] == slot->prefix[0] && prefix[1] == slot->prefix[1];
  return HOTSPAN_LIKELY(same && slot->registered) ? slot->name : find_text(thread, slot, text, fn);
}

// Encodes the inputs, or finds the same ones written before: shapes repeat, so most operators write nothing.
__attribute__((noinline)) uint32_t inputs_of(HotspanThread *thread, const at::RecordFunction &fn) noexcept {
  try {
    const auto inputs = fn.inputs();
    const bool ranged = fn.scope() == at::RecordScope::USER_SCOPE;
    if (inputs.empty() && !ranged) return 0;
    for (const uint64_t room : {kRoom, kLargeRoom}) {
      if (!has_room(thread, room)) break;
      uint8_t *at = thread->blocks;
      auto *items = reinterpret_cast<uint64_t *>(at + sizeof(HotspanBlock));
      InputWriter writer{items, items + (room_of(thread) - kSlots - sizeof(HotspanBlock)) / 8};
      for (const c10::IValue &input : inputs) writer.value(input);
      if (ranged) writer.keywords(fn);
      if (HOTSPAN_UNLIKELY(writer.full)) continue;
      const size_t words = writer.at - items;
      if (words == 0) return 0;
      const uint64_t hash = hash_words(items, words, inputs.size());
      static_assert(HOTSPAN_INPUT_SLOTS == 1 << (64 - 55), "the top bits of the hash select the slot");
      HotspanInputSlot *slot = &thread->inputs[hash >> 55];
      if (slot->hash == hash && slot->inputs != 0) return slot->inputs;
      *reinterpret_cast<HotspanBlock *>(at) = {
          static_cast<uint32_t>(words + sizeof(HotspanBlock) / 8), HOTSPAN_BLOCK_INPUTS,
          static_cast<uint32_t>(inputs.size()), 0};
      publish(thread->blocks, writer.at);
      *slot = {hash, ++thread->inputs_count, 0};
      return slot->inputs;
    }
  } catch (...) {
    // A tensor subclass that cannot say its shape.
  }
  count(thread->inputs_dropped);
  return 0;
}

// Receives the reports of torch's allocators. Torch casts whatever is in the PROFILER_STATE slot to this base class,
// so the object derives from it; its configuration says "disabled", so torch.profiler takes it for no profiler.
// One object serves all threads and sessions and is never destroyed.
struct MemoryReporter final : torch::profiler::impl::ProfilerStateBase {
  MemoryReporter()
      : ProfilerStateBase(torch::profiler::impl::ProfilerConfig(torch::profiler::impl::ProfilerState::Disabled)) {}
  torch::profiler::impl::ActiveProfilerType profilerType() override {
    return torch::profiler::impl::ActiveProfilerType::NONE;
  }
  bool memoryProfilingEnabled() const override {
    return with_memory.load(std::memory_order_relaxed) && running_session.load(std::memory_order_relaxed) != 0;
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
    if (!with_memory.load(std::memory_order_relaxed)) return;
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

std::shared_ptr<c10::DebugInfoBase> &memory_reporter() {
  static auto *reporter = new std::shared_ptr<c10::DebugInfoBase>(std::make_shared<MemoryReporter>());
  return *reporter;
}
// The same without the guard of a local static; set before it is needed.
const c10::DebugInfoBase *reporter_address = nullptr;

// Makes this thread's allocations visible. The slot is scoped: backward and JIT continuations install and restore whole
// sets of slots, so it is looked at before each operator. Another profiler's object there is left alone.
inline void listen_to_allocators() noexcept {
  const auto *present = c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::PROFILER_STATE);
  if (present != nullptr) return;
  try {
    c10::ThreadLocalDebugInfo::_push(c10::DebugInfoKind::PROFILER_STATE, memory_reporter());
  } catch (...) {
    // Out of memory: this thread's allocations stay unseen.
  }
}

void stop_listening() noexcept {
  if (reporter_address == nullptr ||
      c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::PROFILER_STATE) != reporter_address) {
    return;
  }
  try {
    c10::ThreadLocalDebugInfo::_pop(c10::DebugInfoKind::PROFILER_STATE);
  } catch (...) {
    // Something else was pushed after it. The object stays, and says that it is disabled.
  }
}

std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction &fn) noexcept {
  HotspanThread *thread = current_thread();
  if (HOTSPAN_UNLIKELY(thread == nullptr)) return nullptr;
  if (with_memory.load(std::memory_order_relaxed)) listen_to_allocators();
  const uint32_t name = HOTSPAN_LIKELY(has_room(thread, kRoom)) ? name_of(thread, fn) : 0;
  const uint32_t inputs = with_inputs && name != 0 ? inputs_of(thread, fn) : 0;
  // The inputs may have taken what was left.
  if (HOTSPAN_UNLIKELY(name == 0 || !has_room(thread, 0))) {
    count(thread->dropped);
    return nullptr;
  }
  auto *record = reinterpret_cast<HotspanOperator *>(thread->records) - 1;
  const auto sequence = static_cast<uint64_t>(fn.seqNr());
  const uint64_t forward = fn.forwardThreadId();
  *record = {0, 0, name, inputs, static_cast<uint32_t>(sequence), static_cast<uint8_t>(sequence >> 32),
             static_cast<uint8_t>(fn.scope()), static_cast<uint16_t>(forward < 0xffff ? forward : 0xffff)};
  auto context = context_of(record);
  record->start = ticks();
  publish(thread->records, record);
  return context;
}

void on_end(const at::RecordFunction &fn, at::ObserverContext *context) noexcept {
  if (context == nullptr) return;
  const uint64_t now = ticks();
  HotspanOperator *record = static_cast<Context *>(context)->record;
  // Only ranges can be asynchronous.
  if (HOTSPAN_UNLIKELY(record->kind == kUserScope) && fn.isAsync()) {
    __atomic_store_n(&record->kind, kUserScope | HOTSPAN_KIND_ASYNC, __ATOMIC_RELAXED);
  }
  // From here on the record may be gone.
  __atomic_store_n(&record->end, now, __ATOMIC_RELEASE);
}

// The profiler of all threads, if there is one: likewise.
template <typename State>
auto global_profiler(int) -> decltype(State::getGlobal()) {
  return State::getGlobal();
}
template <typename State>
auto global_profiler(long) -> decltype(State::get(true)) { // up to 2.11, at least
  return State::get(true);
}

bool torch_profiler_is_active() {
  if (torch::profiler::impl::profilerEnabled()) return true;
  const auto everywhere = global_profiler<torch::profiler::impl::ProfilerStateBase>(0);
  return everywhere != nullptr && !everywhere->config().disabled();
}

void fail(const char *message) noexcept {
  strncpy(last_error, message, sizeof last_error - 1);
}

} // namespace

uint32_t hotspan_shim_abi(void) {
  return HOTSPAN_ABI;
}

int32_t hotspan_shim_begin(const HotspanSink *given_sink, uint64_t session, uint32_t flags) {
  try {
    if (torch_profiler_is_active()) return HOTSPAN_TORCH_PROFILER_ACTIVE;
    sink = given_sink;
    with_inputs = (flags & HOTSPAN_FLAG_INPUTS) != 0;
    with_ticks = (flags & HOTSPAN_FLAG_TICKS) != 0;
    with_memory.store((flags & HOTSPAN_FLAG_MEMORY) != 0, std::memory_order_relaxed);
    reporter_address = memory_reporter().get();
    // Callbacks are registered once and switched on and off: torch allows that at any time, but not removal.
    at::CallbackHandle &handle = with_inputs ? inputs_handle : plain_handle;
    running_session.store(session, std::memory_order_release);
    if (handle == at::INVALID_CALLBACK_HANDLE) {
      handle = at::addGlobalCallback(at::RecordFunctionCallback(&on_start, &on_end).needsInputs(with_inputs));
    } else {
      at::reenableCallback(handle);
    }
    if ((flags & HOTSPAN_FLAG_MEMORY) != 0) listen_to_allocators();
    return HOTSPAN_OK;
  } catch (const std::exception &error) {
    running_session.store(0);
    fail(error.what());
  } catch (...) {
    running_session.store(0);
    fail("an exception of unknown type");
  }
  return HOTSPAN_FAILED;
}

void hotspan_shim_gate(uint64_t session) {
  running_session.store(session, std::memory_order_release);
}

int32_t hotspan_shim_end(void) {
  running_session.store(0, std::memory_order_release);
  with_memory.store(false, std::memory_order_relaxed);
  try {
    for (const at::CallbackHandle handle : {plain_handle, inputs_handle}) {
      if (handle != at::INVALID_CALLBACK_HANDLE) at::disableCallback(handle);
    }
    stop_listening();
    return HOTSPAN_OK;
  } catch (const std::exception &error) {
    fail(error.what());
  } catch (...) {
    fail("an exception of unknown type");
  }
  return HOTSPAN_FAILED;
}

void hotspan_shim_forked(void) {
  running_session.store(0, std::memory_order_relaxed);
  with_memory.store(false, std::memory_order_relaxed);
  this_thread = nullptr;
}

const char *hotspan_shim_dtype(uint8_t dtype, uint64_t *length) {
  *length = 0;
  if (dtype >= static_cast<uint8_t>(c10::ScalarType::NumOptions)) return "";
  try {
    const auto name = c10::scalarTypeToTypeMeta(static_cast<c10::ScalarType>(dtype)).name();
    *length = name.size();
    return name.data();
  } catch (...) {
    return ""; // a dtype of which no tensor can be made
  }
}

const char *hotspan_shim_error(void) {
  return last_error;
}
