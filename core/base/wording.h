// SPDX-License-Identifier: Apache-2.0
/// Words of messages: counts with their nouns, numbers with grouped digits, names that were meant.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace pipewright {

/// A number for readers: whole numbers from 10,000 on have their digits grouped ("1,000,000",
/// "4096"); others are as number_text() writes them.
std::string grouped_text(double number);

/// "1 worker", "2 workers", "12,000 mini-batches": a count and its noun, singular or plural.
std::string counted_text(std::int64_t count, std::string_view noun);
template <std::integral Count>
std::string counted(Count count, std::string_view noun) {
  return counted_text(static_cast<std::int64_t>(count), noun);
}

/// "a", "a and b", "a, b and c". Requires a name.
std::string listed(std::span<const std::string> names);

/// "; did you mean 'x'?", or "; did you mean 'x' or 'y'?" where several names begin as the given
/// one does; "" with nothing near.
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

/// "; one of a plugin needs --plugin FILE", for the name of a part that none of the known parts
/// has; "" where did_you_mean() says which was meant.
std::string plugin_hint(std::string_view name, std::span<const std::string> known);

}  // namespace pipewright
