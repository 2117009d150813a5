/// Random experiments, a function of the scheme's name and a number: small enough for a run in well
/// under a second, varied enough that each option of each scheme meets fills, drains, several
/// epochs and optimizers.
#pragma once

#include "experiment.h"

#include <string>
#include <vector>

namespace oracle {

/// Experiments 0 … count−1 of a scheme; options of the scheme go round so that all combinations
/// occur.
std::vector<Experiment> cases(const std::string& scheme, int count);

/// Samples of the experiment's data seed; training samples are not test samples.
Data training_data(const Experiment& experiment);
Data test_data(const Experiment& experiment);

/// Initial parameters of every stage.
std::vector<Tensors> initial_weights(const Experiment& experiment);

}  // namespace oracle
