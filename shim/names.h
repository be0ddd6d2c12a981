// Names of operators and ranges: written once a thread and session, then referred to by number.
//
// A training step calls thousands of operators of a hundred kinds, with megabytes of other code in between: what is looked
// at for every operator is in the cache, what is looked at for every kind is not. So a kind costs one line of memory here.
#ifndef HOTSPAN_NAMES_H
#define HOTSPAN_NAMES_H

#include "inputs.h"
#include "recorder.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>

namespace {

constexpr size_t kLongestName = 1 << 20;
// Below this many free bytes a chunk counts as full.
constexpr uint64_t kRoom = 2048;

// Counts operators that were unregistered: then an address may have become another name.
std::atomic<uint32_t> unregistered{0};

struct Unregistered final : c10::OpRegistrationListener {
  void onOperatorRegistered(const c10::OperatorHandle &) override {}
  void onOperatorDeregistered(const c10::OperatorHandle &) override {
    unregistered.fetch_add(1, std::memory_order_relaxed);
  }
};

// Once in a process, and for the rest of it.
void listen_to_registrations() {
  static const auto *handle = new c10::RegistrationHandleRAII(
      c10::Dispatcher::singleton().addRegistrationListener(std::make_unique<Unregistered>()));
  (void)handle;
}

// Writes a name; 0: there is no room.
uint32_t write_name(
    HotspanThread *thread, const char *text, size_t length, const std::string &overload) noexcept {
  const size_t bytes = (sizeof(HotspanBlock) + length + overload.size() + 7) & ~size_t{7};
  if (!has_room(thread, bytes + kRoom)) return 0;
  uint8_t *at = thread->blocks;
  *reinterpret_cast<HotspanBlock *>(at) = {
      static_cast<uint32_t>(bytes / 8), HOTSPAN_BLOCK_NAME, static_cast<uint32_t>(length),
      static_cast<uint32_t>(overload.size())};
  memcpy(at + sizeof(HotspanBlock), text, length);
  memcpy(at + sizeof(HotspanBlock) + length, overload.data(), overload.size());
  publish(thread->blocks, at + bytes);
  return ++thread->name_count;
}

// Two neighbours, which share a line, for each address.
inline HotspanNameSlot *slots_of(HotspanThread *thread, const char *text) noexcept {
  static_assert(HOTSPAN_NAME_SLOTS == 1 << 10, "the top bits of the product, without the last, select the slots");
  return &thread->names[(reinterpret_cast<uintptr_t>(text) * 0x9e3779b97f4a7c15u >> 54) & ~uint64_t{1}];
}

// The name of an address that is not in the table: of a range, whose text torch overwrites, or of a new operator.
__attribute__((noinline)) uint32_t find_name(HotspanThread *thread, const char *text, const at::RecordFunction &fn) noexcept {
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
  const size_t length = strnlen(text, kLongestName);
  // The same text may be that of a range, or of another overload.
  const uint64_t hash =
      mix(hash_bytes(text, length), hash_bytes(overload.data(), overload.size()) ^ (registered ? 0 : ~uint64_t{0}));
  HotspanTextSlot *slot = &thread->texts[hash % HOTSPAN_TEXT_SLOTS];
  if (slot->hash != hash || slot->name == 0) {
    const uint32_t name = write_name(thread, text, length, overload);
    if (name == 0) return 0;
    *slot = {hash, name, 0};
  }
  if (registered) {
    HotspanNameSlot *slots = slots_of(thread, text);
    slots[slots[0].key != nullptr] = {text, slot->name, 0};
  }
  return slot->name;
}

__attribute__((noinline, cold)) void forget_addresses(HotspanThread *thread, uint32_t now) noexcept {
  memset(thread->names, 0, sizeof thread->names);
  thread->unregistered = now;
}

// The number of an operator's or range's name; 0: there is no room. An address identifies the name of an operator for as
// long as that is registered.
inline uint32_t name_of(HotspanThread *thread, const at::RecordFunction &fn) noexcept {
  const uint32_t now = unregistered.load(std::memory_order_relaxed);
  if (HOTSPAN_UNLIKELY(thread->unregistered != now)) forget_addresses(thread, now);
  const char *text = fn.name();
  const HotspanNameSlot *slots = slots_of(thread, text);
  if (HOTSPAN_LIKELY(slots[0].key == text)) return slots[0].name;
  if (slots[1].key == text) return slots[1].name;
  return find_name(thread, text, fn);
}

} // namespace

#endif
