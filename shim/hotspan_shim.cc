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
#include <new>
#include <string>

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

thread_local HotspanThread *this_thread = nullptr;
thread_local bool thread_is_gone = false;
thread_local char last_error[256];

// Below this many free bytes a chunk counts as full; every name that is not absurdly long fits.
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

// A record that torch carries from the start of an operator to its end, wherever that is. It lives in a chunk, so
// "deleting" it only says that torch is done with it.
struct Record final : at::ObserverContext {
  union {
    HotspanOperator op;
    HotspanMemory memory;
  };

  Record() noexcept {}
  static void *operator new(size_t, void *place) noexcept { return place; }
  static void operator delete(void *raw) noexcept {
    auto *released = static_cast<uint8_t *>(raw) + HOTSPAN_RECORD_SHIM_BYTES + offsetof(HotspanOperator, released);
    __atomic_store_n(released, 1, __ATOMIC_RELEASE);
  }
  static void operator delete(void *, void *) noexcept {}
};

static_assert(sizeof(Record) == HOTSPAN_RECORD_BYTES, "the record does not have the size Rust expects");
static_assert(sizeof(HotspanOperator) == sizeof(HotspanMemory), "both kinds of records have one size");
static_assert(
    offsetof(HotspanOperator, kind) == offsetof(HotspanMemory, kind) &&
        offsetof(HotspanOperator, released) == offsetof(HotspanMemory, released),
    "the kind and the release mark stand in one place");

// Says goodbye when the thread ends; touched once in attach.
struct Goodbye {
  bool touched = false;
  ~Goodbye() {
    thread_is_gone = true;
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
  return static_cast<uint64_t>(thread->records - thread->bytes);
}

__attribute__((noinline, cold)) bool grow(HotspanThread *thread, uint64_t room) noexcept {
  return sink->grow(thread, room) != 0;
}

inline bool has_room(HotspanThread *thread, uint64_t room) noexcept {
  return room_of(thread) >= room + sizeof(Record) || grow(thread, room);
}

// A place for the next record; publish makes it visible once it is whole.
inline Record *next_record(HotspanThread *thread) noexcept {
  return new (thread->records - sizeof(Record)) Record;
}

inline void publish(HotspanThread *thread, Record *record) noexcept {
  __atomic_store_n(&thread->records, reinterpret_cast<uint8_t *>(record), __ATOMIC_RELEASE);
}

inline void count(uint64_t &counter) noexcept {
  __atomic_store_n(&counter, counter + 1, __ATOMIC_RELAXED);
}

// The overload of an operator, asked for in the way this torch knows: the first of these that compiles.
template <typename Function>
auto overload_of(const Function &fn, int) -> decltype(std::string(fn.overload_name())) {
  return fn.overload_name();
}
template <typename Function>
std::string overload_of(const Function &fn, long) { // before 2.7
  const auto name = fn.operator_name();
  return name ? name->overload_name : std::string();
}

// Copies a name that was not seen before at this address.
__attribute__((noinline, cold)) const uint8_t *write_name(
    HotspanThread *thread, HotspanNameSlot *slot, const char *text, const at::RecordFunction &fn) noexcept {
  std::string overload;
  try {
    overload = overload_of(fn, 0);
  } catch (...) {
    // Out of memory: the name goes without.
  }
  const size_t length = strnlen(text, 1 << 20);
  const size_t overload_length = overload.size();
  const size_t bytes = (sizeof(HotspanName) + length + 1 + overload_length + 7) & ~size_t{7};
  if (!has_room(thread, bytes + kRoom)) return nullptr;
  uint8_t *at = thread->bytes;
  auto *name = reinterpret_cast<HotspanName *>(at);
  *name = {static_cast<uint32_t>(length), static_cast<uint32_t>(overload_length), 0};
  uint8_t *out = at + sizeof(HotspanName);
  memcpy(out, text, length);
  out[length] = 0;
  memcpy(out + length + 1, overload.data(), overload_length);
  thread->bytes = at + bytes;
  *slot = {text, at};
  return at;
}

// An address alone does not identify a name: ranges reuse memory and operators can be unregistered. So the text is
// compared as well.
inline const uint8_t *name_of(HotspanThread *thread, const at::RecordFunction &fn) noexcept {
  const char *text = fn.name();
  const auto key = reinterpret_cast<uintptr_t>(text);
  HotspanNameSlot *slot = &thread->names[(key >> 4 ^ key >> 12) % HOTSPAN_NAME_SLOTS];
  if (slot->key == text && strcmp(reinterpret_cast<const char *>(slot->name) + sizeof(HotspanName), text) == 0) {
    return slot->name;
  }
  return write_name(thread, slot, text, fn);
}

// Encodes the inputs, or finds the same ones written before: shapes repeat, so most operators write nothing.
const uint64_t *inputs_of(HotspanThread *thread, const at::RecordFunction &fn) noexcept {
  try {
    const auto inputs = fn.inputs();
    const bool ranged = fn.scope() == at::RecordScope::USER_SCOPE;
    if (inputs.empty() && !ranged) return nullptr;
    for (const uint64_t room : {kRoom, kLargeRoom}) {
      if (!has_room(thread, room)) break;
      auto *begin = reinterpret_cast<uint64_t *>(thread->bytes);
      auto *header = reinterpret_cast<HotspanInputs *>(begin);
      uint64_t *items = begin + sizeof(HotspanInputs) / 8;
      InputWriter writer{items, begin + (room_of(thread) - sizeof(Record)) / 8};
      for (const c10::IValue &input : inputs) writer.value(input);
      if (ranged) writer.keywords(fn);
      if (HOTSPAN_UNLIKELY(writer.full)) continue;
      const size_t count = writer.at - items;
      if (count == 0) return nullptr;
      *header = {static_cast<uint32_t>(writer.at - begin), static_cast<uint32_t>(inputs.size()), 0};
      const uint64_t hash = hash_words(items, count);
      HotspanInputSlot *slot = &thread->inputs[hash >> 55];
      static_assert(HOTSPAN_INPUT_SLOTS == 1 << (64 - 55), "the top bits of the hash select the slot");
      const uint64_t *known = slot->inputs;
      if (slot->hash == hash && known != nullptr && known[0] == begin[0] &&
          memcmp(known + (items - begin), items, count * 8) == 0) {
        return known;
      }
      *slot = {hash, begin};
      thread->bytes = reinterpret_cast<uint8_t *>(writer.at);
      return begin;
    }
  } catch (...) {
    // A tensor subclass that cannot say its shape.
  }
  count(thread->inputs_dropped);
  return nullptr;
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
    if (HOTSPAN_UNLIKELY(!has_room(thread, kRoom))) return count(thread->dropped);
    Record *record = next_record(thread);
    record->memory = {
        ticks(), reinterpret_cast<uint64_t>(address), allocated, reserved, bytes, device.index(), kind,
        static_cast<uint8_t>(device.type()), 1, 0};
    publish(thread, record);
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
  if (HOTSPAN_UNLIKELY(!has_room(thread, kRoom))) {
    count(thread->dropped);
    return nullptr;
  }
  const uint8_t *name = name_of(thread, fn);
  const uint64_t *inputs = with_inputs ? inputs_of(thread, fn) : nullptr;
  // The inputs may have taken what was left.
  if (HOTSPAN_UNLIKELY(name == nullptr || !has_room(thread, 0))) {
    count(thread->dropped);
    return nullptr;
  }
  Record *record = next_record(thread);
  record->op = {0, 0, name, inputs, fn.seqNr(), static_cast<uint32_t>(fn.forwardThreadId()),
                static_cast<uint8_t>(fn.scope()), 0, 0, 0};
  record->op.start = ticks();
  publish(thread, record);
  return std::unique_ptr<at::ObserverContext>(record);
}

void on_end(const at::RecordFunction &fn, at::ObserverContext *context) noexcept {
  if (context == nullptr) return;
  const uint64_t now = ticks();
  auto *record = static_cast<Record *>(context);
  if (HOTSPAN_UNLIKELY(fn.isAsync())) __atomic_store_n(&record->op.async, 1, __ATOMIC_RELAXED);
  __atomic_store_n(&record->op.end, now, __ATOMIC_RELEASE);
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
