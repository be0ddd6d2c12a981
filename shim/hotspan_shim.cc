// Torch's side of hotspan's operator collector: turns at::RecordFunction callbacks and allocator reports into plain
// records. Compiled against the headers of each release of torch, because they are no stable ABI: for a wheel of hotspan,
// or on the user's machine.
//
// The hot path (on_start, on_end, reportMemoryUsage) takes no lock, allocates nothing, needs no GIL and never throws.
// Where records go, how long they live and what they mean is Rust's business: see hotspan_shim.h.

#include "baseline.h"
#include "check.h"
#include "inputs.h"
#include "memory.h"
#include "names.h"
#include "recorder.h"
#include "script.h"
#include "tensors.h"

#include <ATen/record_function.h>
#include <c10/core/ScalarType.h>

#include <cstring>

namespace torch::profiler::impl {
// Declared in collection.h, which needs headers of Kineto's that torch does not ship. Null in a torch that has no such switch.
__attribute__((weak)) bool get_fwd_bwd_enabled();
} // namespace torch::profiler::impl

namespace {

constexpr auto kUserScope = static_cast<uint8_t>(at::RecordScope::USER_SCOPE);

// Encodes the inputs, or finds the same ones written before: shapes repeat, so most operators write nothing.
__attribute__((noinline)) uint32_t inputs_of(HotspanThread *thread, const at::RecordFunction &fn) noexcept {
  try {
    const auto inputs = fn.inputs();
    const KeywordInputs &keywords = keywords_of(fn);
    if (inputs.empty() && keywords.empty()) return 0;
    for (const uint64_t room : {kRoom, kLargeRoom}) {
      if (!has_room(thread, room)) break;
      uint8_t *at = thread->blocks;
      auto *items = reinterpret_cast<uint64_t *>(at + sizeof(HotspanBlock));
      InputWriter writer{items, items + (room_of(thread) - kSlots - sizeof(HotspanBlock)) / 8};
      for (const c10::IValue &input : inputs) writer.value(input);
      if (!keywords.empty()) writer.keywords(keywords);
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

thread_local char last_error[256];

// Writes what few ask for of the operator whose record comes next; without room the operator goes without.
__attribute__((noinline)) void write_extra(HotspanThread *thread, const at::RecordFunction &fn) noexcept {
  const uint64_t tensors = is_on(with_tensors) ? tensors_of(thread, fn) : 0;
  const uint64_t id = is_on(with_ids) ? fn.handle() : 0;
  // A node of autograd runs where the engine is, not where it was made.
  const bool in_script = is_on(with_modules) && fn.scope() != at::RecordScope::BACKWARD_FUNCTION;
  const uint32_t modules = in_script ? modules_of(thread) : 0;
  if ((id == 0 && tensors == 0 && modules == 0) || !has_room(thread, sizeof(HotspanExtra) + sizeof(HotspanMemoryTotals))) return;
  auto *totals = reinterpret_cast<HotspanMemoryTotals *>(thread->records) - 2;
  *totals = {0, 1, 0, 0};
  *reinterpret_cast<HotspanExtra *>(totals + 1) = {id, 1, tensors, modules, 0, HOTSPAN_KIND_EXTRA, 0};
  publish(thread->records, totals);
}

std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction &fn) noexcept {
  HotspanThread *thread = current_thread();
  if (HOTSPAN_UNLIKELY(thread == nullptr)) return nullptr;
  if (is_on(with_memory)) listen_to_allocators();
  const uint32_t name = HOTSPAN_LIKELY(has_room(thread, kRoom)) ? name_of(thread, fn) : 0;
  const uint32_t inputs = is_on(with_inputs) && name != 0 ? inputs_of(thread, fn) : 0;
  // The inputs may have taken what was left.
  if (HOTSPAN_UNLIKELY(name == 0 || !has_room(thread, 0))) {
    count(thread->dropped);
    return nullptr;
  }
  if (HOTSPAN_UNLIKELY(is_on(with_extra))) {
    write_extra(thread, fn);
    if (!has_room(thread, 0)) {
      count(thread->dropped);
      return nullptr;
    }
  }
  auto *record = reinterpret_cast<HotspanOperator *>(thread->records) - 1;
  const auto sequence = static_cast<uint64_t>(fn.seqNr());
  const uint64_t forward = fn.forwardThreadId();
  *record = {0, 0, name, inputs, static_cast<uint32_t>(sequence), static_cast<uint8_t>(sequence >> 32),
             static_cast<uint8_t>(fn.scope()), static_cast<uint16_t>(forward < 0xffff ? forward : 0xffff)};
  auto context = context_of(record, thread);
  record->start = ticks();
  publish(thread->records, record);
  return context;
}

void on_end(const at::RecordFunction &fn, at::ObserverContext *context) noexcept {
  if (context == nullptr) return;
  const uint64_t now = ticks();
  const auto *started = static_cast<Context *>(context);
  HotspanOperator *record = started->record;
  // Asynchronous is what ends on another thread, or what says so; of those that may, only ranges do.
  if (HOTSPAN_UNLIKELY(started->thread != this_thread || (record->kind == kUserScope && fn.isAsync()))) {
    __atomic_store_n(&record->kind, record->kind | HOTSPAN_KIND_ASYNC, __ATOMIC_RELAXED);
  }
  // From here on the record may be gone.
  __atomic_store_n(&record->end, now, __ATOMIC_RELEASE);
}

// One of our callbacks in torch's list. Registered once and then switched on and off: torch allows that at any time, but not
// removal. Each change takes the lock of the list, which a forked child may have inherited held, by a thread that it does not
// have. Whether our callback is on is known without it.
struct Callback {
  at::CallbackHandle handle = at::INVALID_CALLBACK_HANDLE;
  bool is_on = false;

  void switch_on(bool with_inputs, bool with_ids) {
    if (is_on) return;
    if (handle == at::INVALID_CALLBACK_HANDLE) {
      handle = at::addGlobalCallback(
          at::RecordFunctionCallback(&on_start, &on_end).needsInputs(with_inputs).needsIds(with_ids));
    } else {
      at::reenableCallback(handle);
    }
    is_on = true;
  }

  void switch_off() {
    if (!is_on) return;
    at::disableCallback(handle);
    is_on = false;
  }
};

// By what they need: inputs 1, numbers 2.
Callback callbacks[4];
// Whether the locks of torch's that recording needs were free in this process once.
std::atomic<bool> torch_is_free{false};

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
  if (torch::profiler::impl::profilerEnabled() && !Listeners::is_here()) return true;
  const auto everywhere = global_profiler<torch::profiler::impl::ProfilerStateBase>(0);
  return everywhere != nullptr && !everywhere->config().disabled();
}

// Nothing of torch may be thrown into Rust.
template <typename Action>
int32_t guarded(Action action) noexcept {
  try {
    action();
    return HOTSPAN_OK;
  } catch (const std::exception &error) {
    strncpy(last_error, error.what(), sizeof last_error - 1);
  } catch (...) {
    strncpy(last_error, "an exception of unknown type", sizeof last_error - 1);
  }
  return HOTSPAN_FAILED;
}

} // namespace

uint32_t hotspan_shim_abi(void) {
  return HOTSPAN_ABI;
}

int32_t hotspan_shim_check(void) {
  bool is_right = true;
  const int32_t result = guarded([&] {
    // Another profiler's recording is not the place for a range of ours.
    if (!torch_profiler_is_active()) is_right = torch_is_as_declared();
    // A new thread has no copy of torch's list of callbacks, and takes its lock to get one.
    (void)at::getStepCallbacksUnlessEmpty(at::RecordScope::FUNCTION);
    listen_to_registrations();
    torch_is_free.store(true, std::memory_order_release);
  });
  if (is_right) return result;
  strncpy(last_error, "its libraries are not those of the headers beside them", sizeof last_error - 1);
  return HOTSPAN_FAILED;
}

int32_t hotspan_shim_begin(const HotspanSink *given_sink, uint64_t session, uint32_t flags) {
  const bool inputs = (flags & HOTSPAN_FLAG_INPUTS) != 0;
  const bool ids = (flags & HOTSPAN_FLAG_IDS) != 0;
  Callback &callback = callbacks[(inputs ? 1 : 0) + (ids ? 2 : 0)];
  if (!callback.is_on && !torch_is_free.load(std::memory_order_acquire)) return HOTSPAN_CHECK_FIRST;
  bool taken = false;
  const int32_t result = guarded([&] {
    taken = torch_profiler_is_active();
    if (taken) return;
    const auto set = [flags](std::atomic<bool> &flag, uint32_t bit) {
      flag.store((flags & bit) != 0, std::memory_order_relaxed);
    };
    sink.store(given_sink, std::memory_order_relaxed);
    set(with_inputs, HOTSPAN_FLAG_INPUTS);
    set(with_ranges, HOTSPAN_FLAG_RANGES);
    set(with_ids, HOTSPAN_FLAG_IDS);
    set(with_tensors, HOTSPAN_FLAG_TENSORS);
    set(with_modules, HOTSPAN_FLAG_MODULES);
    set(with_extra, HOTSPAN_FLAG_IDS | HOTSPAN_FLAG_TENSORS | HOTSPAN_FLAG_MODULES);
    set(with_prepared, HOTSPAN_FLAG_PREPARED);
    set(with_ticks, HOTSPAN_FLAG_TICKS);
    set(with_memory, HOTSPAN_FLAG_MEMORY);
    running_session.store(session, std::memory_order_release);
    callback.switch_on(inputs, ids);
    if ((flags & (HOTSPAN_FLAG_MEMORY | HOTSPAN_FLAG_RANGES)) != 0) listen_to_allocators();
  });
  if (result != HOTSPAN_OK) running_session.store(0);
  return taken ? HOTSPAN_TORCH_PROFILER_ACTIVE : result;
}

void hotspan_shim_gate(uint64_t session) {
  running_session.store(session, std::memory_order_release);
}

int32_t hotspan_shim_release_memory(void) {
  with_memory.store(false, std::memory_order_relaxed);
  with_ranges.store(false, std::memory_order_relaxed);
  return guarded([] { stop_listening(); });
}

int32_t hotspan_shim_end(void) {
  running_session.store(0, std::memory_order_release);
  with_memory.store(false, std::memory_order_relaxed);
  with_ranges.store(false, std::memory_order_relaxed);
  return guarded([] {
    // Otherwise they stay on, and find that nothing is to be recorded.
    if (torch_is_free.load(std::memory_order_acquire)) {
      for (Callback &callback : callbacks) callback.switch_off();
    }
    stop_listening();
    release_tensors();
  });
}

void hotspan_shim_before_fork(void) {
  if (!torch_is_free.load(std::memory_order_acquire)) return;
  // Brings the thread's copy of the list of callbacks up to date: whoever finds it old takes the lock.
  guarded([] { (void)at::getStepCallbacksUnlessEmpty(at::RecordScope::FUNCTION); });
}

void hotspan_shim_forked(void) {
  torch_is_free.store(false, std::memory_order_relaxed);
  running_session.store(0, std::memory_order_relaxed);
  with_memory.store(false, std::memory_order_relaxed);
  with_ranges.store(false, std::memory_order_relaxed);
  this_thread = nullptr;
  Listeners::forget_parent();
}

int32_t hotspan_shim_links(void) {
  int32_t linked = 1;
  guarded([&] {
    if (torch::profiler::impl::get_fwd_bwd_enabled != nullptr) linked = torch::profiler::impl::get_fwd_bwd_enabled();
  });
  return linked;
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
