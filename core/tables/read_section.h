// SPDX-License-Identifier: Apache-2.0
/// Helpers to read sections of an experiment file that only reports use, and to list their options.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/config/options.h"

namespace pipewright {

/// Calls `read(Options&)` with the document's section `name`, which may be absent, and returns its
/// result. Throws Error{Experiment} with all problems of the section.
template <class Read>
auto read_section(const Value& document, const std::string& name, Read read) {
  Problems problems;
  Options options(document.find(name), name, problems);
  auto result = read(options);
  options.finish();
  problems.throw_if_any();
  return result;
}

/// Reads an optional part of a section. Returns none if it is absent; its options are declared in
/// any case.
template <class Read>
auto read_part(Options& options, const std::string& name, const char* help, Read read) {
  Options part = options.section(name, help);
  const bool given = options.given(name);
  Problems unheard;  // an absent part has no problems
  Options nothing(nullptr, name, unheard);
  std::optional result = read(given ? part : nothing);
  if (given)
    part.finish();
  else
    result.reset();
  return result;
}

/// The options that `read(Options&)` declares when it reads `example`, for `describe`.
template <class Read>
std::vector<OptionInfo> options_read_by(Read read, const std::string& name,
                                        const std::string& example) {
  const Value given = parse_yaml(example, "");
  Problems unheard;
  Options options(&given, name, unheard);
  read(options);
  return options.declared();
}

}  // namespace pipewright
