// SPDX-License-Identifier: Apache-2.0
#include "core/config/yaml_fault.h"

#include <array>
#include <string_view>

namespace pipewright {

std::string explained_fault(const std::string& message) {
  struct Explanation {
    std::string_view begin, text;
  };
  static constexpr std::array kExplanations = std::to_array<Explanation>({
      {"end of map not found",
       "expected 'key: value' here; check the indentation and the line before"},
      {"end of sequence not found",
       "expected '- item' here; check the indentation and the line before"},
      {"end of map flow not found", "a '{' has no '}', or a comma is missing"},
      {"end of sequence flow not found", "a '[' has no ']', or a comma is missing"},
      {"illegal map value", "':' cannot stand here; put a text that holds ': ' in quotes"},
      {"illegal map key", "'?' cannot stand here; put the text in quotes"},
      {"illegal block entry", "'- ' cannot stand here; begin the list on a line of its own"},
      {"illegal flow end", "a closing bracket has no opening one"},
      {"illegal tab", "a tab cannot indent; use spaces"},
      {"illegal EOF in scalar", "a quote is never closed"},
      {"illegal document indicator in scalar", "a quote is not closed before '---' or '...'"},
      {"unknown token", "a text cannot begin with this character; put it in quotes"},
      {"unknown escape character", "unknown escape in double quotes; write \\\\ for a backslash"},
      {"invalid unicode", "an escape that is no character"},
      {"bad character found while scanning hex", "an escape needs more hexadecimal digits"},
      {"the referenced anchor is not defined", "the alias names no anchor that stands before it"},
  });
  for (const Explanation& known : kExplanations)
    if (message.starts_with(known.begin)) return std::string(known.text);
  return "not YAML: " + message;
}

}  // namespace pipewright
