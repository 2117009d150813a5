/// The resolved experiment of one run of a sweep. Runs that differ in their seed only share one in
/// memory: ten thousand of them would take 400 MB.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "core/config/value.h"

namespace pipewright {

/// Cheap to copy. Every function but known() requires known().
class RunConfig {
 public:
  RunConfig() = default;  ///< not known
  RunConfig(Value resolved) : shared_(std::make_shared<const Value>(std::move(resolved))) {}

  bool known() const { return shared_ != nullptr; }
  /// The value at a dotted path; none where there is none.
  std::optional<Value> find_path(std::string_view dotted) const;
  /// All of it.
  Value whole() const;
  /// The same experiment with that train.seed, sharing everything else. Requires that it has one.
  RunConfig with_seed(std::int64_t seed) const;
  /// All of it, but train.seed may be another run's: for what no seed changes.
  const Value& of_any_seed() const { return *shared_; }

 private:
  std::shared_ptr<const Value> shared_;
  std::optional<std::int64_t> seed_;  ///< empty: the one in shared_
};

}  // namespace pipewright
