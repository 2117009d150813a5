// SPDX-License-Identifier: Apache-2.0
/// Readers of those sections of an experiment file that are not registered parts. Each section is
/// checked by itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/config/options.h"
#include "core/experiment/experiment.h"

namespace pipewright {

inline constexpr double kLargestSeed = 9e15;  ///< largest train.seed

struct BalanceOption {
  std::string rule = "parameters";  ///< "": `list` was given
  std::vector<std::int64_t> list;
  std::vector<std::string> layout;          ///< the letters of each stage, if a layout was given
  std::optional<MeasuredBalance> measured;  ///< set for the rules time and memory
};

struct PipelineSection {
  PipelineOptions options;
  Layout layout;  ///< the placement and memory format that are given
  BalanceOption balance;
};

/// All report problems to the options' list, and return defaults for wrong values.
LoaderOptions read_loader(Options& root);
PipelineSection read_pipeline(Options& root);
TrainOptions read_train(Options& root);
OutputOptions read_output(Options& root);
/// Names of registered metrics, or kBleu.
std::vector<std::string> read_metrics(Options& root);
TranslationOptions read_translation(Options& root);

}  // namespace pipewright
