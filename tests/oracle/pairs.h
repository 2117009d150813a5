// SPDX-License-Identifier: Apache-2.0
/// Experiments in which every two options meet, those of schemes, optimizers, gradient rules,
/// perturbations, learning rates, drains, resumption and shapes: faults of one option alone are the
/// matter of cases.h, those between two stand here.
#pragma once

#include "experiment.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace oracle {

/// Experiments in which every two features of different groups meet that are defined together.
/// Which two meet in which experiment follows from the list of features alone.
std::vector<Experiment> cases_of_pairs();

/// Why the definitions give such an experiment no meaning; "" if they do.
std::string undefined_because(const Experiment& experiment);

/// Experiments of two features that are not defined together, which the program refuses.
std::vector<Experiment> undefined_pairs();

/// The values in the experiments' files of options such as "scheme.pipedream.in_flight" or
/// "perturb.gradient_delay"; and their parts, such as "scheme.pipedream", without values.
using OptionValues = std::map<std::string, std::set<std::string>>;
OptionValues option_values(const std::vector<Experiment>& experiments);

}  // namespace oracle
