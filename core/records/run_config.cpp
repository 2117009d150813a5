// SPDX-License-Identifier: Apache-2.0
#include "core/records/run_config.h"

namespace pipewright {
namespace {

constexpr std::string_view kSection = "train";
constexpr std::string_view kOption = "seed";

Value changed(Value section, std::int64_t seed) {
  *section.find(kOption) = Value::of(seed);
  return section;
}

}  // namespace

std::optional<Value> RunConfig::find_path(std::string_view dotted) const {
  const Value* found = shared_->find_path(dotted);
  if (found == nullptr) return std::nullopt;
  if (seed_ && dotted == "train.seed") return Value::of(*seed_);
  if (seed_ && dotted == kSection) return changed(*found, *seed_);
  return *found;
}

Value RunConfig::whole() const {
  Value resolved = *shared_;
  if (!seed_) return resolved;
  Value& section = *resolved.find(kSection);
  section = changed(std::move(section), *seed_);
  return resolved;
}

RunConfig RunConfig::with_seed(std::int64_t seed) const {
  RunConfig other = *this;
  other.seed_ = seed;
  return other;
}

}  // namespace pipewright
