/// Which files are experiments: what is in others is nobody's to read in our messages. Private to
/// config.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/config/value.h"

namespace pipewright {

/// The keys that an experiment file has at its top.
const std::vector<std::string>& experiment_keys();

/// Whether some line begins with the name of a section, so that its faults may be shown. False for
/// /etc/shadow, whatever asks for it.
bool looks_like_experiment(std::string_view text);

/// Whether a file's document has a section at its top; `near`: or a key that may have been meant
/// for one. An empty mapping has nothing that could be shown.
bool is_experiment(const Value& document, bool near);

}  // namespace pipewright
