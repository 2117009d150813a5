// SPDX-License-Identifier: Apache-2.0
#include "core/tensor_files/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "core/base/error.h"

namespace pipewright {
namespace {

PCRE2_SPTR bytes_of(std::string_view text) {
  return reinterpret_cast<PCRE2_SPTR>(text.data());
}

std::string reason(int code) {
  std::string text(256, '\0');
  const int size =
      pcre2_get_error_message(code, reinterpret_cast<PCRE2_UCHAR*>(text.data()), text.size());
  text.resize(static_cast<std::size_t>(size < 0 ? 0 : size));
  return text;
}

pcre2_code* code_of(const std::shared_ptr<void>& code) {
  return static_cast<pcre2_code*>(code.get());
}

}  // namespace

Pattern::Pattern(std::string_view expression) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code =
      pcre2_compile(bytes_of(expression), expression.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF, &error, &offset, nullptr);
  PIPEWRIGHT_CHECK(code != nullptr, expression, " at ", offset, ": ", reason(error));
  code_ = {code, [](void* it) { pcre2_code_free(static_cast<pcre2_code*>(it)); }};
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // without JIT, matching is only slower
}

void Pattern::for_each(std::string_view text,
                       const std::function<void(std::string_view match)>& visit) const {
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data(
      pcre2_match_data_create_from_pattern(code_of(code_), nullptr), &pcre2_match_data_free);
  std::uint32_t options = 0;
  for (std::size_t at = 0; at < text.size();) {
    const int result =
        pcre2_match(code_of(code_), bytes_of(text), text.size(), at, options, data.get(), nullptr);
    if (result == PCRE2_ERROR_NOMATCH) return;
    PIPEWRIGHT_CHECK(result > 0, reason(result));
    const PCRE2_SIZE* found = pcre2_get_ovector_pointer(data.get());
    PIPEWRIGHT_CHECK(found[1] > found[0], "an empty match at ", found[0]);
    visit(text.substr(found[0], found[1] - found[0]));
    at = found[1];
    options = PCRE2_NO_UTF_CHECK;  // the first call has checked the whole text
  }
}

bool Pattern::is_in(std::string_view text) const {
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data(
      pcre2_match_data_create_from_pattern(code_of(code_), nullptr), &pcre2_match_data_free);
  const int result =
      pcre2_match(code_of(code_), bytes_of(text), text.size(), 0, 0, data.get(), nullptr);
  PIPEWRIGHT_CHECK(result > 0 || result == PCRE2_ERROR_NOMATCH, reason(result));
  return result > 0;
}

std::string Pattern::replaced(std::string_view text, const std::string& replacement) const {
  constexpr std::uint32_t kOptions =
      PCRE2_SUBSTITUTE_GLOBAL | PCRE2_SUBSTITUTE_EXTENDED | PCRE2_SUBSTITUTE_OVERFLOW_LENGTH;
  std::string out(2 * text.size() + 16, '\0');
  for (;;) {
    PCRE2_SIZE size = out.size();  // in: capacity; out: bytes written, or bytes needed
    const int result = pcre2_substitute(code_of(code_), bytes_of(text), text.size(), 0, kOptions,
                                        nullptr, nullptr, bytes_of(replacement), replacement.size(),
                                        reinterpret_cast<PCRE2_UCHAR*>(out.data()), &size);
    PIPEWRIGHT_CHECK(result >= 0 || result == PCRE2_ERROR_NOMEMORY, reason(result));
    out.resize(size);
    if (result >= 0) return out;
  }
}

std::string lower_case(std::string_view text) {
  static const Pattern upper("[\\p{Lu}\\p{Lt}]+");
  return upper.replaced(text, "\\L$0");
}

}  // namespace pipewright
