// SPDX-License-Identifier: Apache-2.0
/// Identity of an experiment: what must be equal for a run to be resumed. It covers all options but
/// the name, `output`, `loader.prefetch`, `train.epochs` and the layout, that is, how the model is
/// cut and where it runs. Of a path it covers only whether one is given: files are compared by
/// content (contents.h). Whether a checkpoint fits a number of epochs is decided in checkpoint.h.
#pragma once

#include <string>
#include <vector>

#include "core/config/value.h"

namespace pipewright {

/// Digest on which a checkpoint and the experiment that resumes it must agree. `resolved` has every
/// default written out; `paths` names its options that are paths (catalogue.h).
std::string identity_of(const Value& resolved, const std::vector<std::string>& paths);

/// The options in which two identities differ, as in "optimizer.lr 0.1 → 0.05, scheme.name 'gpipe'
/// → 'pipedream'": the first six and the number of others; "" if they are equal.
std::string identity_changes(const Value& before, const Value& now,
                             const std::vector<std::string>& paths);

/// The document without output.tensorboard if that is false: it is then that of a program which
/// does not have the option.
Value without_idle_output(Value resolved);

/// The document without options that change nothing as they are, but with those that digests of
/// profiles have had since the first candidate.
Value without_idle_options(Value resolved);

/// Digest of an experiment without its name; it is `digest` in run.json.
std::string config_digest(Value resolved);

/// Digest of an experiment without its name, `output` and seed.
std::string digest_without_seed(const Value& resolved);

/// The options of the layout: pipeline.stages, replicas, balance, cut, placement, execution,
/// threads, timeout, device, recompute, memory_format.
Value layout_of(const Value& resolved);

/// The differences of two layouts that may change the bits of the result ("pipeline.stages 2 → 4,
/// …"), or "". Execution, recomputation, `cut` and `timeout` never change them.
std::string layout_changes(const Value& before, const Value& now);

/// All differences between two mappings, at any depth: "optimizer.lr 0.1 → 0.05". Of parts with
/// different names only the names are compared.
std::vector<std::string> all_changes(const Value& before, const Value& now);

/// The first six of all_changes() and the number of others, in the form of identity_changes().
std::string changes_between(const Value& before, const Value& now);

}  // namespace pipewright
