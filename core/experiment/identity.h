/// What makes a resumed run the same experiment: everything but its name, what it leaves behind,
/// how far it loads ahead, how many epochs it trains, and its layout, that is, how the training is
/// cut and where it runs. Of a path only that it is given: what lies there is compared by content
/// (contents.h), and how many epochs fit is decided by the past that they share (checkpoint.h).
#pragma once

#include <string>
#include <vector>

#include "core/config/value.h"

namespace pipewright {

/// Digest of what a checkpoint and the experiment that takes it up must agree on. `resolved`: every
/// default written out; `paths`: the options of it that are paths (path_options.h).
std::string identity_of(const Value& resolved, const std::vector<std::string>& paths);

/// "optimizer.lr 0.1 → 0.05, scheme.name 'gpipe' → 'pipedream'": the options by which identities
/// differ, the first few and how many more; "" where they are equal.
std::string identity_changes(const Value& before, const Value& now,
                             const std::vector<std::string>& paths);

/// Digest of an experiment but for its name: run.json's `digest`.
std::string config_digest(Value resolved);

/// Digest of an experiment but for its name, what it leaves behind and its seed.
std::string digest_without_seed(const Value& resolved);

/// The layout: pipeline.stages, replicas, balance, cut, placement, execution, threads, timeout,
/// device, recompute.
Value layout_of(const Value& resolved);

/// "pipeline.stages 2 → 4, …": the differences that may show in the bits of the result (execution
/// and recomputation never do), or "".
std::string layout_changes(const Value& before, const Value& now);

/// All differences of what mappings hold, at any depth, as identity_changes() words them.
std::string changes_between(const Value& before, const Value& now);

}  // namespace pipewright
