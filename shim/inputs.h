// How the inputs of an operator become 64-bit words: the layout is HotspanInputs in hotspan_shim.h.
#ifndef HOTSPAN_INPUTS_H
#define HOTSPAN_INPUTS_H

#include "recorder.h"

#include <ATen/record_function.h>
#include <c10/core/ScalarType.h>

#include <cstring>
#include <string>
#include <unordered_map>

namespace {

// The keyword inputs of a range. `kwinputs()` copies them, which costs something even where there are none. Naming a private
// member in an explicit instantiation is allowed.
using KeywordInputs = std::unordered_map<std::string, c10::IValue>;
struct KeywordsOfRange {
  friend KeywordInputs at::RecordFunction::*private_keywords(KeywordsOfRange);
};
template <KeywordInputs at::RecordFunction::*Member>
struct RevealKeywords {
  friend KeywordInputs at::RecordFunction::*private_keywords(KeywordsOfRange) {
    return Member;
  }
};
template struct RevealKeywords<&at::RecordFunction::kwinputs_>;

inline const KeywordInputs &keywords_of(const at::RecordFunction &fn) noexcept {
  return fn.*private_keywords(KeywordsOfRange{});
}

// As in Kineto: longer lists are recorded without their elements.
constexpr size_t kLongestList = 30;
// Inputs that need more bytes than this are dropped, and counted.
constexpr uint64_t kLargeRoom = 65536;

// Writes items of inputs; a write that does not fit is remembered instead of done.
struct InputWriter {
  uint64_t *at;
  uint64_t *limit;
  bool full = false;

  void word(uint64_t value) noexcept {
    if (HOTSPAN_UNLIKELY(at == limit)) {
      full = true;
      return;
    }
    *at++ = value;
  }
  void tag(uint64_t tag, uint64_t count = 0, uint64_t dtype = 0, uint64_t flags = 0) noexcept {
    word(tag | dtype << 8 | flags << 16 | count << 32);
  }
  void words(const int64_t *values, size_t count) noexcept {
    if (HOTSPAN_UNLIKELY(static_cast<size_t>(limit - at) < count)) {
      full = true;
      return;
    }
    for (size_t index = 0; index < count; ++index) at[index] = static_cast<uint64_t>(values[index]);
    at += count;
  }
  void text(const char *bytes, size_t length) noexcept {
    tag(HOTSPAN_INPUT_TEXT, length);
    const size_t count = (length + 7) / 8;
    if (static_cast<size_t>(limit - at) < count) {
      full = true;
      return;
    }
    if (count > 0) at[count - 1] = 0;
    memcpy(at, bytes, length);
    at += count;
  }
  static bool has_shape(const at::Tensor &tensor) {
    return tensor.defined() && !tensor.is_nested() && !tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
  }
  void tensor(const at::Tensor &tensor) {
    const c10::TensorImpl *impl = tensor.unsafeGetTensorImpl();
    if (!has_shape(tensor)) return tag(HOTSPAN_INPUT_UNDEFINED);
    const c10::IntArrayRef sizes = impl->sizes();
    const auto dtype = static_cast<uint64_t>(c10::typeMetaToScalarType(impl->dtype()));
    const bool strided = tensor.layout() == c10::kStrided;
    tag(HOTSPAN_INPUT_TENSOR, sizes.size(), dtype, strided ? 0 : HOTSPAN_INPUT_FLAG);
    words(sizes.data(), sizes.size());
    if (strided) words(impl->strides().data(), sizes.size());
  }
  void scalar(const c10::IValue &value) {
    if (value.isInt()) {
      tag(HOTSPAN_INPUT_INT);
      word(static_cast<uint64_t>(value.toInt()));
    } else if (value.isDouble()) {
      tag(HOTSPAN_INPUT_DOUBLE);
      real(value.toDouble());
    } else if (value.isBool()) {
      tag(HOTSPAN_INPUT_BOOL, value.toBool());
    } else if (value.isComplexDouble()) {
      const auto number = value.toComplexDouble();
      tag(HOTSPAN_INPUT_COMPLEX);
      real(number.real());
      real(number.imag());
    } else {
      tag(HOTSPAN_INPUT_SYMBOLIC); // its text would need Python, and so the GIL
    }
  }
  void real(double value) noexcept {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    word(bits);
  }
  void list(const c10::IValue &value) {
    const c10::ArrayRef<c10::IValue> items = value.toListRef();
    if (value.isTensorList()) {
      const bool long_list = items.size() > kLongestList;
      tag(HOTSPAN_INPUT_TENSOR_LIST, items.size(), 0, long_list ? HOTSPAN_INPUT_FLAG : 0);
      if (long_list) return;
      for (const c10::IValue &item : items) tensor(item.toTensor());
    } else if (items.empty() || (items[0].isScalar() && items.size() <= kLongestList)) {
      tag(HOTSPAN_INPUT_SCALAR_LIST, items.size());
      for (const c10::IValue &item : items) scalar(item);
    } else {
      tag(HOTSPAN_INPUT_OTHER);
    }
  }
  void value(const c10::IValue &value) {
    if (value.isTensor()) {
      tensor(value.toTensor());
    } else if (value.isScalar()) {
      scalar(value);
    } else if (value.isList()) {
      list(value);
    } else {
      tag(HOTSPAN_INPUT_OTHER);
    }
  }
  void text(const c10::IValue &value) { text(value.toStringRef().data(), value.toStringRef().size()); }
  // Keyword inputs: pairs of a name and a scalar, a text or a list of texts. Only ranges have them.
  void keywords(const KeywordInputs &inputs) {
    for (const auto &[key, item] : inputs) {
      const bool is_scalar = item.isInt() || item.isDouble() || item.isBool();
      if (!is_scalar && !item.isString() && !is_list_of_texts(item)) continue;
      text(key.data(), key.size());
      if (is_scalar) {
        scalar(item);
      } else if (item.isString()) {
        text(item);
      } else {
        const c10::ArrayRef<c10::IValue> items = item.toListRef();
        tag(HOTSPAN_INPUT_TEXT_LIST, items.size());
        for (const c10::IValue &one : items) text(one);
      }
    }
  }
  static bool is_list_of_texts(const c10::IValue &value) {
    if (!value.isList()) return false;
    for (const c10::IValue &item : value.toListRef()) {
      if (!item.isString()) return false;
    }
    return true;
  }
};

// Two numbers become one in a way that spreads every bit: equal hashes are taken for equal content.
inline uint64_t mix(uint64_t left, uint64_t right) noexcept {
  const auto product = static_cast<unsigned __int128>(left) * right;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

constexpr uint64_t kFirstOdd = 0xa0761d6478bd642f, kSecondOdd = 0xe7037ed1a0b428db, kThirdOdd = 0x8ebc6af09c88c6e3;

inline uint64_t hash_words(const uint64_t *words, size_t count, uint64_t seed) noexcept {
  uint64_t hash = seed ^ kThirdOdd;
  size_t index = 0;
  for (; index + 1 < count; index += 2) {
    hash = mix(words[index] ^ kFirstOdd, words[index + 1] ^ hash);
  }
  if (index < count) hash = mix(words[index] ^ kSecondOdd, hash ^ kFirstOdd);
  return mix(hash ^ kSecondOdd, count ^ kThirdOdd);
}

inline uint64_t hash_bytes(const char *bytes, size_t length) noexcept {
  uint64_t hash = length ^ kThirdOdd;
  for (size_t at = 0; at < length; at += 8) {
    uint64_t word = 0;
    memcpy(&word, bytes + at, length - at < 8 ? length - at : 8);
    hash = mix(word ^ kFirstOdd, hash ^ kSecondOdd);
  }
  return mix(hash, kThirdOdd);
}

} // namespace

#endif
