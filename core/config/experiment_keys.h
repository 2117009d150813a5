// SPDX-License-Identifier: Apache-2.0
/// The keys at the top level of an experiment file: what each is for, and whether a sweep may vary
/// it. By them experiment files are told from other files, whose content must not be quoted in
/// messages because it may be private.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/value.h"

namespace pipewright {

enum class KeyUse : std::uint8_t {
  Option,      ///< of a run: it is part of the resolved experiment
  Shown,       ///< what commands show of runs, or simulate of them
  Composition  ///< how documents are made of files and points
};

struct ExperimentKey {
  std::string name;
  KeyUse use = KeyUse::Option;
  bool may_vary = true;  ///< within a sweep
};

/// The keys that an experiment file may have at its top level, each once.
const std::vector<ExperimentKey>& experiment_keys();
/// Null if there is no such key.
const ExperimentKey* find_experiment_key(std::string_view name);
/// Their names, in the same order.
std::vector<std::string> experiment_key_names();

/// The document without the keys that are no option of a run.
Value options_of_run(Value document);
/// The document with options and with those other keys that may vary: what a point of a sweep has.
Value what_may_vary(Value document);

/// Whether some line of the text begins with the name of a section, so that messages may quote the
/// text. False for a file such as /etc/shadow, even if an experiment extends it.
bool looks_like_experiment(std::string_view text);

/// The document of a text; nothing if it is none of an experiment, and may be any file.
std::optional<Value> parse_if_experiment(std::string_view text, const std::string& name,
                                         Problems& faults);

/// Whether the document has a section at its top level; with `near`, a key that resembles one of
/// experiment_keys() is enough. True also for an empty mapping, in which nothing can be private.
bool is_experiment(const Value& document, bool near);

}  // namespace pipewright
