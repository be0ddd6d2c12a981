// Threads run operators while sessions begin, are read and end: compiled with ThreadSanitizer, which reports every access
// of the shim that is not ordered. Its sink does what crates/hotspan-collect/src/torch/threads.rs does, in a few lines.

#include "hotspan_shim.cc"

#include <ATen/ATen.h>

#include <chrono>
#include <cstdio>
#include <thread>

namespace {

constexpr size_t kChunk = 4 << 20;

// The session is over for a thread whose chunk is full.
struct Buffer {
  HotspanThread shared{};
  std::mutex mutex;
  uint8_t *chunk = nullptr;

  void begin(uint64_t session) {
    shared = HotspanThread{};
    chunk = static_cast<uint8_t *>(std::aligned_alloc(4096, kChunk)); // never freed: operators may still end in it
    shared.session = session;
    publish(shared.blocks, chunk);
    publish(shared.records, chunk + kChunk);
  }

  // Reads all that is published, as Rust does; how many operators.
  uint64_t read(uint64_t session) {
    const std::lock_guard<std::mutex> guard(mutex);
    if (shared.session != session) return 0;
    const uint8_t *records = __atomic_load_n(&shared.records, __ATOMIC_ACQUIRE);
    const uint8_t *blocks = __atomic_load_n(&shared.blocks, __ATOMIC_ACQUIRE);
    uint64_t count = __atomic_load_n(&shared.dropped, __ATOMIC_RELAXED);
    volatile uint64_t sum = 0;
    for (const uint8_t *slot = chunk + kChunk - 32; slot >= records; slot -= 32) {
      const auto *record = reinterpret_cast<const HotspanOperator *>(slot);
      if (__atomic_load_n(&record->kind, __ATOMIC_RELAXED) >= HOTSPAN_KIND_MEMORY) {
        slot -= 32;
        continue;
      }
      sum = sum + record->start + record->name + record->inputs + __atomic_load_n(&record->end, __ATOMIC_ACQUIRE);
      ++count;
    }
    for (const uint8_t *word = chunk; word < blocks; word += 8) sum = sum + *reinterpret_cast<const uint64_t *>(word);
    return count;
  }
};

std::atomic<uint64_t> current_session{0};
std::mutex all_mutex;
std::vector<Buffer *> all_buffers;

HotspanThread *attach_buffer(uint64_t session, uint64_t) {
  thread_local Buffer *mine = nullptr;
  if (mine == nullptr) {
    mine = new Buffer;
    const std::lock_guard<std::mutex> guard(all_mutex);
    all_buffers.push_back(mine);
  }
  const std::lock_guard<std::mutex> guard(mine->mutex);
  if (current_session.load() != session) return nullptr;
  if (mine->shared.session != session) mine->begin(session);
  return &mine->shared;
}

const HotspanSink test_sink{attach_buffer, [](HotspanThread *, uint64_t) { return 0; }, [](HotspanThread *) {}};

uint64_t read_all(uint64_t session) {
  const std::lock_guard<std::mutex> guard(all_mutex);
  uint64_t count = 0;
  for (Buffer *buffer : all_buffers) count += buffer->read(session);
  return count;
}

} // namespace

int main() {
  if (hotspan_shim_check() != HOTSPAN_OK) {
    std::fprintf(stderr, "%s\n", hotspan_shim_error());
    return 1;
  }
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;
  for (int index = 0; index < 3; ++index) {
    threads.emplace_back([&] {
      auto values = at::ones({4, 4});
      while (!is_over.load()) {
        RECORD_USER_SCOPE("range");
        values = at::mul(at::add(values, values), 0.5);
      }
    });
  }
  uint64_t count = 0;
  for (uint64_t session = 1; session <= 40; ++session) {
    const uint32_t flags = HOTSPAN_FLAG_MEMORY | (session % 2 == 0 ? HOTSPAN_FLAG_INPUTS : 0) |
                           (session % 3 == 0 ? HOTSPAN_FLAG_TICKS : 0) | (session % 5 == 0 ? HOTSPAN_FLAG_RANGES : 0);
    current_session.store(session);
    if (hotspan_shim_begin(&test_sink, session, flags) != HOTSPAN_OK) {
      std::fprintf(stderr, "%s\n", hotspan_shim_error());
      return 1;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    read_all(session);
    if (session % 4 == 0) hotspan_shim_release_memory();
    std::thread([] { at::ones({2}).add_(1); }).join();
    hotspan_shim_end();
    current_session.store(0);
    count += read_all(session);
  }
  is_over.store(true);
  for (std::thread &thread : threads) thread.join();
  std::printf("%llu operators\n", static_cast<unsigned long long>(count));
  return count > 0 ? 0 : 1;
}
