// One range of our own, looked at before anything is recorded: do torch's libraries do what their headers say?
#ifndef HOTSPAN_CHECK_H
#define HOTSPAN_CHECK_H

#include <ATen/record_function.h>

#include <cstring>
#include <memory>

namespace {

constexpr const char *kCheckedName = "hotspan checks its hooks";

struct CheckedContext final : at::ObserverContext {};

struct Checked {
  int starts = 0;
  int ends = 0;
  const at::ObserverContext *context = nullptr;
  bool is_named = false;
  bool is_paired = false;
};
thread_local Checked checked;

std::unique_ptr<at::ObserverContext> on_checked_start(const at::RecordFunction &fn) noexcept {
  std::unique_ptr<at::ObserverContext> context = std::make_unique<CheckedContext>();
  ++checked.starts;
  checked.is_named = fn.scope() == at::RecordScope::USER_SCOPE && strcmp(fn.name(), kCheckedName) == 0;
  checked.context = context.get();
  return context;
}

void on_checked_end(const at::RecordFunction &, at::ObserverContext *context) noexcept {
  ++checked.ends;
  checked.is_paired = context != nullptr && context == checked.context;
}

// The callback is this thread's own and is gone afterwards; those of other threads do not see the range.
bool torch_is_as_declared() {
  checked = {};
  const at::RecordFunctionGuard enabled(true);
  const auto handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback(&on_checked_start, &on_checked_end).scopes({at::RecordScope::USER_SCOPE}));
  { RECORD_USER_SCOPE(kCheckedName); }
  at::removeCallback(handle);
  return checked.starts == 1 && checked.ends == 1 && checked.is_named && checked.is_paired;
}

} // namespace

#endif
