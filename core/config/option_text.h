// SPDX-License-Identifier: Apache-2.0
/// Options in words, for messages and help pages. Private to config.
#pragma once

#include <string>

#include "core/config/options.h"

namespace pipewright {

/// "a whole number of at least 1", "serial, threads or mpi": what a value of the option must be.
std::string expected(const OptionInfo& info);

/// "at least 1", "at most 5", "from 0 to 1", or "" without bounds.
std::string range_text(const OptionInfo& info);

/// The value as a user would type it: "0.5", "[1, 2]"; `""` for the empty text.
std::string typed(const Value& value);

/// "a, b or c"
std::string listed(const std::vector<Value>& choices);

/// A hint at how the given value could become the one that was meant: "; remove the quotes", say;
/// "" without a hint.
std::string advice(const OptionInfo& info, const Value& given);

/// What an unknown key surely means: "; did you mean 'stages'?" for num_stages, say; "" if nothing.
std::string meaning_of_key(const std::string& key, const std::vector<std::string>& known);

/// Where an option of that name is, for a key that stands outside its section: "; did you mean
/// 'optimizer.lr'?"; "" if no section has one.
std::string section_of_key(const std::string& key, const std::vector<OptionInfo>& declared);

}  // namespace pipewright
