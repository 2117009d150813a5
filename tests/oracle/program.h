// SPDX-License-Identifier: Apache-2.0
/// Runs the program under test, using only its files: an experiment file and safetensors as input,
/// the run folder as output.
#pragma once

#include "experiment.h"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace oracle {

/// The experiment file (YAML) of an experiment whose data and weights lie beside it.
std::string experiment_file(const Experiment& experiment);

/// A line of steps.csv.
struct StepLine {
  int epoch = 0;      // from 0
  int minibatch = 0;  // within its epoch
  std::vector<double> numbers;
};

struct ProgramRun {
  int exit_code = -1;
  std::string log;                                     // output of the program
  std::map<std::string, std::vector<double>> weights;  // final.safetensors; row-major
  std::vector<StepLine> steps;                         // in order of epoch and mini-batch
};

/// The options of the program in the JSON Schema of experiment files, in the sections that pairs.h
/// is about, such as "scheme.pipedream.refill", with the JSON texts of their defaults; and their
/// parts, such as "scheme.pipedream".
std::map<std::string, std::string> options_of_program(const std::filesystem::path& folder);

/// Writes experiment.yaml, data.safetensors and init.safetensors into `folder`, runs the program
/// there and reads its files, unless it failed. Throws std::runtime_error if the program is missing
/// or its files are damaged.
ProgramRun run_program(const Experiment& experiment, const std::filesystem::path& folder);

}  // namespace oracle
