// SPDX-License-Identifier: Apache-2.0
/// Digests of the files at an experiment's paths, so that moved data or weights are the same
/// experiment and changed ones are not.
///
/// The digest of a file is the SHA-256 of its bytes ("sha256:…"). That of a data set in folders
/// ("samples:…") covers shape, classes, vocabulary, the size of both splits, and 32 samples of each
/// split: the first, the last and others at equal distances, with all inputs and targets as
/// training gets them without augmentation. Another data set, version, order, resolution or
/// vocabulary and a copy that lacks samples change it; a change in other samples alone does not.
#pragma once

#include <string>

#include "core/config/value.h"
#include "core/experiment/experiment.h"

namespace pipewright {

/// Digests of the paths that are set: {"model.weights": "sha256:…", "dataset": "samples:…"}. Paths
/// of the layout, and files whose option `sha256` is set, are left out. The data set must be open.
/// Throws Error{Data}.
Value contents_of(const Experiment& experiment, const Dataset& dataset);

/// The keys whose digests differ, as in "dataset and model.weights"; "" if none do.
std::string changed_contents(const Value& before, const Value& now);

}  // namespace pipewright
