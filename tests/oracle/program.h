/// The program under test, seen only through its files: an experiment file and safetensors go in,
/// the run's folder comes out.
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
  int epoch = 0;      // from 0, whatever the file counts from
  int minibatch = 0;  // within its epoch
  std::vector<double> losses;
};

struct ProgramRun {
  int exit_code = -1;
  std::string log;                                     // what the program printed
  std::map<std::string, std::vector<double>> weights;  // final.safetensors; row-major
  std::vector<StepLine> steps;                         // in order of epoch and mini-batch
};

/// Writes experiment.yaml, data.safetensors and init.safetensors into `folder`, runs the program
/// there and reads what it left, unless it failed. Throws std::runtime_error if the program is not
/// there or its files are damaged.
ProgramRun run_program(const Experiment& experiment, const std::filesystem::path& folder);

}  // namespace oracle
