// SPDX-License-Identifier: Apache-2.0
#include "core/config/yaml_fault.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "core/base/text.h"

namespace pipewright {
namespace {

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n';
}

/// Follows the brackets of a document. Quotes and brackets act only where a value may begin, as in
/// YAML; within brackets the latter act everywhere.
class Brackets {
 public:
  explicit Brackets(const YamlSource& source) : source_(source), text_(source.text()) {}

  /// The first bracket that does not fit the open one, or the last that is never closed.
  std::optional<YamlSlip> unmatched() {
    for (at_ = 0; at_ < text_.size(); step()) {
      const char c = text_[at_];
      if (quote_ != 0) {
        pass_quoted(c);
      } else if (c == '#' && (at_ == 0 || is_space(text_[at_ - 1]))) {
        while (at_ + 1 < text_.size() && text_[at_ + 1] != '\n') step();
      } else if (fresh_ && (c == '"' || c == '\'')) {
        quote_ = c;
      } else if ((c == '[' || c == '{') && (fresh_ || !open_.empty())) {
        open_.push_back({c, line_, column_});
        fresh_ = true;
      } else if ((c == ']' || c == '}') && !open_.empty()) {
        if (c != closing(open_.back().sign)) return misfit(c);
        open_.pop_back();
        fresh_ = false;
      } else if (!is_space(c) || c == '\n') {
        fresh_ = c == '\n' || (c == ',' && !open_.empty()) || ends_key(c);
      }
    }
    if (open_.empty()) return std::nullopt;
    const Bracket& last = open_.back();
    return YamlSlip{
        source_.place(last.line, last.column),
        concat("this '", last.sign, "' is never closed; add '", closing(last.sign), "'")};
  }

 private:
  struct Bracket {
    char sign;
    int line, column;
  };

  static char closing(char opening) { return opening == '[' ? ']' : '}'; }

  void step() {
    const bool ended = text_[at_++] == '\n';
    line_ += ended ? 1 : 0;
    column_ = ended ? 0 : column_ + 1;
  }

  void pass_quoted(char c) {
    if (quote_ == '"' && c == '\\' && at_ + 1 < text_.size()) return step();
    if (c != quote_) return;
    quote_ = 0;
    fresh_ = false;
  }

  bool ends_key(char c) const {
    return (c == ':' || c == '-') && (at_ + 1 == text_.size() || is_space(text_[at_ + 1]));
  }

  YamlSlip misfit(char c) const {
    const Bracket& last = open_.back();
    const Place opened = source_.place(last.line, last.column);
    return {source_.place(line_, column_),
            concat("'", c, "' stands here while the '", last.sign, "' of line ", opened.line,
                   ", column ", opened.column, " is open; close that with '", closing(last.sign),
                   "' first")};
  }

  const YamlSource& source_;
  const std::string& text_;
  std::size_t at_ = 0;
  int line_ = 0, column_ = 0;
  char quote_ = 0;
  bool fresh_ = true;  // a value or key may begin here
  std::vector<Bracket> open_;
};

std::string_view line_of(const YamlSource& source, int line) {
  const std::string_view text = source.from(line, 0);
  return text.substr(0, text.find('\n'));
}

int indent_of(std::string_view line) {
  return static_cast<int>(std::min(line.find_first_not_of(' '), line.size()));
}

/// The last line before this one that says something; −1 if there is none.
int line_before(const YamlSource& source, int line) {
  for (--line; line >= 0; --line) {
    const std::string_view text = trimmed(line_of(source, line));
    if (!text.empty() && !text.starts_with('#')) break;
  }
  return line;
}

/// Offset of the ':' in "epochs:3", a key without a space behind its colon; npos in other lines.
std::size_t tight_colon(std::string_view line) {
  const auto is_name = [](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
  };
  std::size_t begin = line.find_first_not_of(" -");
  if (begin == std::string_view::npos || line.find(": ") != std::string_view::npos)
    return std::string_view::npos;
  const std::size_t name = begin;
  while (begin < line.size() && is_name(line[begin])) ++begin;
  const bool tight = begin > name && begin + 1 < line.size() && line[begin] == ':' &&
                     !line.substr(begin).starts_with("://");
  return tight ? begin : std::string_view::npos;
}

std::optional<YamlSlip> colon_slip(const YamlSource& source, int line, int column) {
  const std::string_view text = line_of(source, line);
  if (text.substr(0, static_cast<std::size_t>(std::max(column, 0))).find(": ") !=
      std::string_view::npos)
    return std::nullopt;  // it is the second ':' of its line
  const int before = line_before(source, line);
  if (before < 0) return std::nullopt;
  const std::string_view last = line_of(source, before);
  if (const std::size_t colon = tight_colon(last); colon != std::string_view::npos) {
    const std::size_t begin = last.find_first_not_of(" -");
    const std::string_view key = last.substr(begin, colon - begin);
    return YamlSlip{source.place(before, static_cast<int>(colon)),
                    concat("a space is missing after ':'; write '", key, ": ",
                           trimmed(last.substr(colon + 1)), "'")};
  }
  if (indent_of(text) <= indent_of(last) || last.find(": ") == std::string_view::npos)
    return std::nullopt;
  return YamlSlip{source.place(line, indent_of(text)),
                  "this line is indented deeper than the one before, whose key has its value "
                  "already; indent both alike"};
}

}  // namespace

std::string explained_fault(const std::string& message) {
  struct Explanation {
    std::string_view begin, text;
  };
  static constexpr std::array kExplanations = std::to_array<Explanation>({
      {"end of map not found",
       "expected 'key: value' here; is this line indented as the one before, and has that one a "
       "space after ':'?"},
      {"end of sequence not found",
       "expected '- item' here, as in the list that stands before; is this line indented as its "
       "items are?"},
      {"end of map flow not found",
       "a mapping that begins with '{' is not closed with '}', or lacks a comma between two "
       "entries"},
      {"end of sequence flow not found",
       "a list that begins with '[' is not closed with ']', or lacks a comma between two values"},
      {"illegal map value",
       "a second ':' follows the one that ends the key; put a text that holds ': ' in quotes, or "
       "begin a new line"},
      {"illegal map key", "a text cannot begin with '? '; put it in quotes"},
      {"illegal block entry",
       "a list with '- ' cannot begin behind a key; begin it on a line of its own, or write "
       "[a, b]"},
      {"illegal flow end", "this bracket closes nothing; remove it"},
      {"illegal tab", "a tab cannot indent a line in YAML; use spaces"},
      {"illegal EOF in scalar", "a quote is opened here and never closed; add the closing one"},
      {"illegal document indicator in scalar", "a quote is not closed before '---' or '...'"},
      {"unknown token", "a text cannot begin with this character; put it in quotes"},
      {"unknown escape character", "double quotes know no such escape; write \\\\ for a backslash"},
      {"invalid unicode", "this escape in double quotes stands for no character of Unicode"},
      {"bad character found while scanning hex",
       "an escape in double quotes needs more hexadecimal digits: \\x41, \\u00E9"},
      {"the referenced anchor is not defined",
       "an alias such as *name needs an anchor &name before it; put a text that begins with '*' "
       "in quotes"},
  });
  for (const Explanation& known : kExplanations)
    if (message.starts_with(known.begin)) return std::string(known.text);
  return "this is not YAML: " + message;
}

std::optional<YamlSlip> slip_behind(const std::string& message, const YamlSource& source, int line,
                                    int column) {
  const auto begins = [&](const char* known) { return message.starts_with(known); };
  if (begins("end of map flow") || begins("end of sequence flow") || begins("illegal flow end"))
    return Brackets(source).unmatched();
  return begins("illegal map value") || begins("end of map not found")
             ? colon_slip(source, line, column)
             : std::nullopt;
}

}  // namespace pipewright
