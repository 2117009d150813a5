/// What makes a resumed run the same experiment: everything but its name, what it leaves behind,
/// how far it loads ahead, and its layout, that is, how the training is cut and where it runs.
#pragma once

#include <string>

#include "core/config/value.h"

namespace pipewright {

/// Digest of what a checkpoint and the experiment that takes it up must agree on. `resolved`: every
/// default written out.
std::string identity_of(const Value& resolved);

/// Digest of an experiment but for its name: run.json's `digest`.
std::string config_digest(Value resolved);

/// Digest of an experiment but for its name, what it leaves behind and its seed.
std::string digest_without_seed(const Value& resolved);

/// The layout: pipeline.stages, replicas, balance, cut, placement, execution, threads, device,
/// recompute.
Value layout_of(const Value& resolved);

/// "pipeline.stages 2 → 4, …": the differences that may show in the bits of the result (execution
/// and recomputation never do), or "".
std::string layout_changes(const Value& before, const Value& now);

}  // namespace pipewright
