// The floor of every operator profiler: a callback on all threads that does nothing. Compiled by bench/profiler.py.

#include <ATen/record_function.h>

namespace {

at::CallbackHandle handles[2] = {at::INVALID_CALLBACK_HANDLE, at::INVALID_CALLBACK_HANDLE};

std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction &) {
  return nullptr;
}

void on_end(const at::RecordFunction &, at::ObserverContext *) {}

} // namespace

extern "C" void empty_callback(bool enabled, bool with_inputs) {
  at::CallbackHandle &handle = handles[with_inputs ? 1 : 0];
  if (handle == at::INVALID_CALLBACK_HANDLE) {
    handle = at::addGlobalCallback(at::RecordFunctionCallback(&on_start, &on_end).needsInputs(with_inputs));
  }
  if (enabled) {
    at::reenableCallback(handle);
  } else {
    at::disableCallback(handle);
  }
}
