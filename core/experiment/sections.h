/// The sections of an experiment file that are no parts with names of their own: their options,
/// read and checked each by itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/config/options.h"
#include "core/experiment/experiment.h"

namespace pipewright {

inline constexpr double kLargestSeed = 9e15;  ///< of train.seed

struct BalanceOption {
  std::string rule = "parameters";  ///< "" = a list was given
  std::vector<std::int64_t> list;
  std::optional<MeasuredBalance> measured;  ///< of rules time and memory
};

struct PipelineSection {
  PipelineOptions options;
  BalanceOption balance;
};

/// Problems are reported to the options' own list; what is returned then is a default.
LoaderOptions read_loader(Options& root);
PipelineSection read_pipeline(Options& root);
TrainOptions read_train(Options& root);
OutputOptions read_output(Options& root);
/// Names of registered metrics, or kBleu.
std::vector<std::string> read_metrics(Options& root);
TranslationOptions read_translation(Options& root);

}  // namespace pipewright
