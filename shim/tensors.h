// Which tensors the inputs of an operator are: the layout is HOTSPAN_BLOCK_TENSORS in hotspan_shim.h.
#ifndef HOTSPAN_TENSORS_H
#define HOTSPAN_TENSORS_H

#include "inputs.h"
#include "names.h"
#include "recorder.h"

#include <c10/core/TensorImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <atomic>
#include <utility>

namespace {

// A tensor is told apart by the address of its TensorImpl. So that no other gets that address while recording goes on, the
// object is kept, by a weak reference: what it owns is let go of as ever, the object itself when recording has ended.
struct HeldTensor {
  c10::weak_intrusive_ptr<c10::TensorImpl> tensor;
  HeldTensor *next;
};
std::atomic<HeldTensor *> held_tensors{nullptr};

// What this thread has held in a session, so that it need not be held again; a few are forgotten, and held twice. A pointer,
// because the loader has little room for variables of threads.
constexpr size_t kSeenTensors = 512;
struct SeenTensors {
  uint64_t session;
  const c10::TensorImpl *tensors[kSeenTensors];
};
thread_local SeenTensors *seen_tensors = nullptr;

inline void forget_tensors() noexcept {
  delete std::exchange(seen_tensors, nullptr);
}

void hold(const at::Tensor &tensor, uint64_t session) {
  if (HOTSPAN_UNLIKELY(seen_tensors == nullptr)) seen_tensors = new SeenTensors{};
  SeenTensors &seen = *seen_tensors;
  if (HOTSPAN_UNLIKELY(seen.session != session)) seen = {session, {}};
  const c10::TensorImpl *address = tensor.unsafeGetTensorImpl();
  const c10::TensorImpl *&slot = seen.tensors[mix(reinterpret_cast<uint64_t>(address), kFirstOdd) % kSeenTensors];
  if (slot == address) return;
  auto *held = new HeldTensor{c10::weak_intrusive_ptr<c10::TensorImpl>(tensor.getIntrusivePtr()), nullptr};
  held->next = held_tensors.load(std::memory_order_relaxed);
  while (!held_tensors.compare_exchange_weak(
      held->next, held, std::memory_order_release, std::memory_order_relaxed)) {
  }
  slot = address;
}

// Of all threads. One that is late holds until the next recording ends.
void release_tensors() noexcept {
  HeldTensor *held = held_tensors.exchange(nullptr, std::memory_order_acquire);
  while (held != nullptr) delete std::exchange(held, held->next);
}

// Writes three words for each tensor that `InputWriter` gives a shape.
struct TensorWriter {
  InputWriter words;
  uint64_t session;

  void tensor(const at::Tensor &tensor) {
    const c10::TensorImpl *impl = tensor.unsafeGetTensorImpl();
    if (!InputWriter::has_shape(tensor)) return;
    const void *data = impl->has_storage() ? impl->storage().data() : nullptr;
    const c10::Device device = impl->device();
    words.word(reinterpret_cast<uint64_t>(impl));
    words.word(reinterpret_cast<uint64_t>(data));
    words.word(static_cast<uint64_t>(c10::typeMetaToScalarType(impl->dtype())) |
               static_cast<uint64_t>(impl->layout()) << 8 | static_cast<uint64_t>(device.type()) << 16 |
               static_cast<uint64_t>(static_cast<uint32_t>(device.index())) << 32);
    hold(tensor, session);
  }
  void value(const c10::IValue &value) {
    if (value.isTensor()) {
      tensor(value.toTensor());
    } else if (value.isTensorList()) {
      const c10::ArrayRef<c10::IValue> items = value.toListRef();
      if (items.size() > kLongestList) return;
      for (const c10::IValue &item : items) tensor(item.toTensor());
    }
  }
};

// Writes the block of an operator's tensors; 0 where there are none, or no room.
__attribute__((noinline)) uint32_t tensors_of(HotspanThread *thread, const at::RecordFunction &fn) noexcept {
  try {
    for (const uint64_t room : {kRoom, kLargeRoom}) {
      if (!has_room(thread, room)) break;
      uint8_t *at = thread->blocks;
      auto *items = reinterpret_cast<uint64_t *>(at + sizeof(HotspanBlock));
      TensorWriter writer{{items, items + (room_of(thread) - kSlots - sizeof(HotspanBlock)) / 8}, thread->session};
      for (const c10::IValue &input : fn.inputs()) writer.value(input);
      if (HOTSPAN_UNLIKELY(writer.words.full)) continue;
      const size_t words = writer.words.at - items;
      if (words == 0) return 0;
      *reinterpret_cast<HotspanBlock *>(at) = {
          static_cast<uint32_t>(words + sizeof(HotspanBlock) / 8), HOTSPAN_BLOCK_TENSORS,
          static_cast<uint32_t>(words / 3), 0};
      publish(thread->blocks, writer.words.at);
      return ++thread->tensors_count;
    }
  } catch (...) {
    // A tensor subclass that cannot say where it is.
  }
  return 0;
}

} // namespace

#endif
