// SPDX-License-Identifier: Apache-2.0
/// Tells experiment files from other files, whose content must not be quoted in messages because it
/// may be private. Private to config.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/config/value.h"

namespace pipewright {

/// The keys that an experiment file may have at its top level.
const std::vector<std::string>& experiment_keys();

/// Whether some line of the text begins with the name of a section, so that messages may quote the
/// text. False for a file such as /etc/shadow, even if an experiment extends it.
bool looks_like_experiment(std::string_view text);

/// Whether the document has a section at its top level; with `near`, a key that resembles one of
/// experiment_keys() is enough. True also for an empty mapping, in which nothing can be private.
bool is_experiment(const Value& document, bool near);

}  // namespace pipewright
