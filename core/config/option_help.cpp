// SPDX-License-Identifier: Apache-2.0
#include <sstream>

#include "core/base/printable.h"
#include "core/config/option_text.h"
#include "core/config/schema.h"

namespace pipewright {
namespace {

constexpr std::size_t kHelpWidth = 100;

/// The text wrapped into lines that begin with `margin`.
std::string wrapped(const std::string& text, const std::string& margin) {
  std::istringstream words(text);
  std::string out, line = margin;
  for (std::string word; words >> word;) {
    if (line.size() > margin.size() && width_of(line) + 1 + width_of(word) > kHelpWidth) {
      out += line + '\n';
      line = margin;
    }
    if (line.size() > margin.size()) line += ' ';
    line += word;
  }
  return out + line + '\n';
}

std::string default_text(const OptionInfo& info) {
  if (info.required) return "required";
  if (info.type == OptionInfo::Type::Section) return {};
  if (info.fallback.is(Value::Kind::Null)) return "not set by default";
  const std::string text = typed(info.fallback);
  return "default " + (text == "\"\"" ? "empty" : text);
}

void describe(const std::vector<OptionInfo>& options, const std::string& prefix, std::string& out) {
  for (const OptionInfo& info : options) {
    if (!out.empty()) out += '\n';
    const std::string name = prefix + info.name;
    const std::string given = default_text(info);
    std::string head = name + ": " + expected(info);
    if (!given.empty()) head += "; " + given;
    // Continuation lines of the head are aligned with its beginning; the help is indented further.
    std::string lines = wrapped(head, "  ");
    out += lines;
    if (!info.help.empty()) out += wrapped(info.help, "      ");
    describe(info.section, name + ".", out);
  }
}

}  // namespace

std::string describe_options(const std::vector<OptionInfo>& options) {
  std::string out;
  describe(options, "", out);
  return out;
}

}  // namespace pipewright
