// SPDX-License-Identifier: Apache-2.0
/// Random experiments, each a function of the scheme's name and a number. They are small enough to
/// run in well under a second, and varied enough that each option of each scheme is combined with
/// fills, drains, several epochs and optimizers.
#pragma once

#include "experiment.h"

#include <string>
#include <vector>

namespace oracle {

/// Experiments 0 … count−1 of a scheme. They cycle through its options, so that all combinations
/// occur.
std::vector<Experiment> cases(const std::string& scheme, int count);

/// An experiment with that optimizer for each of several schemes.
std::vector<Experiment> cases_of_optimizer(const std::string& optimizer);

/// Experiments whose stages have momenta of their own, one of each optimizer and of each scheme.
std::vector<Experiment> cases_of_stage_momenta();

/// PipeOptim with FTPipe's prediction: of gradients of 0, each at the rate of its update.
std::vector<Experiment> cases_of_ftpipe(int count);

/// Experiments with that gradient rule, some with another one behind it, for several schemes.
std::vector<Experiment> cases_of_rule(const std::string& rule);

/// Experiments of more than one epoch whose updates depend on how late the gradients are that they
/// apply, and apply those of some updates before.
std::vector<Experiment> cases_of_waiting_gradients();

/// Those of the rule error_feedback, and some whose learning rate changes in each step.
std::vector<Experiment> cases_of_error_feedback();

/// Changes an experiment with SOAP so that its bases are unique.
void make_bases_unique(Experiment& experiment);

/// As cases(), with the defects of the code of the scheme's authors, and with epochs of different
/// learning rates.
std::vector<Experiment> cases_with_defects(const std::string& scheme, int count);

/// Samples generated from the experiment's data seed. Training and test samples differ.
Data training_data(const Experiment& experiment);
Data test_data(const Experiment& experiment);

/// Initial parameters of every stage.
std::vector<Tensors> initial_weights(const Experiment& experiment);

}  // namespace oracle
