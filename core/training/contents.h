/// What lies at the paths of an experiment, known by its content, so that moved data or weights are
/// the same experiment and changed ones are not.
///
/// Of a file it is the SHA-256 of its bytes ("sha256:…"). Of a data set in folders it is a digest
/// of samples ("samples:…"): of both splits how many there are, their shape, classes and
/// vocabulary, and of 32 samples of each split, the first, the last and others at equal distances,
/// all inputs and targets as training gets them without augmentation. Another data set, version,
/// order, resolution or vocabulary and a copy that lacks samples change it; a change of other
/// samples alone does not.
#pragma once

#include <string>

#include "core/config/value.h"
#include "core/experiment/experiment.h"

namespace pipewright {

/// {"model.weights": "sha256:…", "dataset": "samples:…"}, of the paths that are set; the layout's
/// are left out. The data set is open. Throws Error{Data}.
Value contents_of(const Experiment& experiment);

/// "model.weights", "dataset and model.weights": what has another content now, or "".
std::string changed_contents(const Value& before, const Value& now);

}  // namespace pipewright
