// SPDX-License-Identifier: Apache-2.0
/// The resolved experiment of one run of a sweep. Runs that differ only in their seed share one in
/// memory; ten thousand copies would take 400 MB.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "core/config/value.h"

namespace pipewright {

/// Cheap to copy. Every function except known() requires known().
class RunConfig {
 public:
  RunConfig() = default;  ///< not known
  // NOLINTNEXTLINE(google-explicit-constructor): a Value stands for itself, known
  RunConfig(Value resolved) : shared_(std::make_shared<const Value>(std::move(resolved))) {}

  bool known() const { return shared_ != nullptr; }
  /// The value at a dotted path, if there is one.
  std::optional<Value> find_path(std::string_view dotted) const;
  /// The whole document.
  Value whole() const;
  /// The same experiment with another train.seed, sharing everything else. Requires that it has a
  /// seed.
  RunConfig with_seed(std::int64_t seed) const;
  /// The whole document, except that train.seed may be another run's; for values that do not depend
  /// on it.
  const Value& of_any_seed() const { return *shared_; }

 private:
  std::shared_ptr<const Value> shared_;
  std::optional<std::int64_t> seed_;  ///< empty: use the seed in shared_
};

}  // namespace pipewright
