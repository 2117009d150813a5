// SPDX-License-Identifier: Apache-2.0
#include "core/base/markup.h"

#include <algorithm>
#include <cctype>
#include <span>
#include <utility>

#include "core/base/parsed.h"
#include "core/base/printable.h"
#include "core/base/text.h"

namespace pipewright {
namespace {

using Replacement = std::pair<std::string_view, std::string_view>;

/// Replaces every occurrence of a replacement's first part by its second.
std::string replaced(std::string_view text, std::span<const Replacement> replacements) {
  std::string out;
  while (!text.empty()) {
    const auto found = std::ranges::find_if(
        replacements, [&](const Replacement& entry) { return text.starts_with(entry.first); });
    const bool special = found != replacements.end();
    out += special ? found->second : text.substr(0, 1);
    text.remove_prefix(special ? found->first.size() : 1);
  }
  return out;
}

bool is_word(std::string_view text, std::size_t at) {
  return at < text.size() && std::isalnum(static_cast<unsigned char>(text[at])) != 0;
}

/// Whether the underscore stands between letters or digits, as in test_accuracy, where it begins no
/// emphasis.
bool within_word(std::string_view text, std::size_t underscore) {
  std::size_t first = underscore, last = underscore;
  while (first > 0 && text[first - 1] == '_') --first;
  while (last + 1 < text.size() && text[last + 1] == '_') ++last;
  return first > 0 && is_word(text, first - 1) && is_word(text, last + 1);
}

bool is_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  return parsed<double>(text).has_value();
}

/// Whether a spreadsheet would take the text for a formula. Some localised spreadsheets also act on
/// full-width signs.
bool begins_formula(std::string_view text) {
  for (const std::string_view sign : {"=", "+", "-", "@", "＝", "＋", "－", "＠"})
    if (text.starts_with(sign)) return !is_number(text);
  return false;
}

}  // namespace

std::string markdown_text(std::string_view given) {
  const std::string text = printable(given);
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    switch (c) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += is_word(text, i + 1) || text.substr(i + 1, 1) == "#" ? "&amp;" : "&"; break;
      case '_':
        if (!within_word(text, i)) out += '\\';
        out += c;
        break;
      case '\\':
      case '|':
      case '`':
      case '*':
      case '[':
      case ']':
      case '~':
      case '$': out += '\\'; [[fallthrough]];
      default: out += c;
    }
  }
  return out;
}

std::string latex_text(std::string_view given) {
  static constexpr Replacement kReplacements[] = {
      {"&", "\\&"},
      {"%", "\\%"},
      {"$", "\\$"},
      {"#", "\\#"},
      {"_", "\\_"},
      {"{", "\\{"},
      {"}", "\\}"},
      {"~", "\\textasciitilde{}"},
      {"^", "\\textasciicircum{}"},
      {"\\", "\\textbackslash{}"},
      {"<", "\\textless{}"},
      {">", "\\textgreater{}"},
      {"|", "\\textbar{}"},
      {"±", "$\\pm$"},
      {"–", "--"},
      {"−", "$-$"},
  };
  const std::string text = replaced(printable(given), kReplacements);
  // The `\\` that ends the row before would take a leading star or bracket as its own argument.
  return text.starts_with('[') || text.starts_with('*') ? "{}" + text : text;
}

std::string csv_text(std::string_view given) {
  std::string text = printable(given);
  if (begins_formula(text)) text.insert(0, "'");
  if (text.find_first_of(",;\"") == std::string::npos) return text;
  static constexpr Replacement kReplacements[] = {{"\"", "\"\""}};
  return concat('"', replaced(text, kReplacements), '"');
}

std::string xml_text(std::string_view text) {
  static constexpr Replacement kReplacements[] = {
      {"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}};
  return replaced(printable(text), kReplacements);
}

}  // namespace pipewright
