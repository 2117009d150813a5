// SPDX-License-Identifier: Apache-2.0
/// The costs of stages in a simulation: from a table, from a profile, or counted at the rates of
/// the hardware.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/mutex.h"
#include "core/cost/cost.h"
#include "core/cost/profile.h"
#include "core/cost/roofline.h"
#include "core/experiment/experiment.h"
#include "core/simulation/hardware.h"

namespace pipewright {

/// The files that say what stages cost. Without any, operations and bytes are counted.
struct CostFiles {
  std::filesystem::path table;    ///< seconds and bytes of stages; excludes `profile`
  std::filesystem::path profile;  ///< what `pipewright profile` has written
  bool other_device = false;      ///< a profile of another device than the hardware's will do
  /// The experiment's file, for messages of commands that have options for these files.
  std::string experiment;
};

/// The costs of an experiment's stages.
struct SourcedCosts {
  std::vector<StageCost> stages;
  std::string from;                       ///< their origin in words
  Layout layout;                          ///< the experiment's, cut if `balance` is time or memory
  std::optional<std::int64_t> minibatch;  ///< samples of a mini-batch, if a table says it
};

/// The source of counted times in words, with the format and its rate: "operations and bytes of the
/// model at the rates of DGX-1, 8 x V100: float32 at 15.7 × 0.5 TFLOPS".
std::string counted_from(const Hardware& hardware, std::string_view precision);

/// Reads each file and counts each model once. Any thread may use it.
class CostSource {
 public:
  /// Throws Error{Experiment} if both files are given or one is wrong, Error{Data} if it is not
  /// there.
  explicit CostSource(CostFiles files);

  bool is_table() const { return !files_.table.empty(); }
  /// Throws Error{Experiment} if no source fits the experiment or the hardware, as where times are
  /// counted and its devices do not compute in the experiment's precision.
  SourcedCosts of(const Experiment& experiment, const Hardware& hardware)
      PIPEWRIGHT_EXCLUDES(mutex_);
  /// What is counted, with the times at the rates of the hardware. Throws as of() does.
  Profile counted_on(const Experiment& experiment, const Hardware& hardware)
      PIPEWRIGHT_EXCLUDES(mutex_);

 private:
  Roofline roofline(const Experiment& experiment, const Hardware& hardware) const;
  SourcedCosts of_table(const Experiment& experiment) const;
  SourcedCosts of_profile(const Experiment& experiment, const Hardware& hardware)
      PIPEWRIGHT_EXCLUDES(mutex_);
  Profile counted(const Experiment& experiment) PIPEWRIGHT_EXCLUDES(mutex_);
  AuxiliaryHeads counted_heads(const Experiment& experiment) PIPEWRIGHT_EXCLUDES(mutex_);

  CostFiles files_;
  Value table_;
  std::optional<Profile> profile_;
  Mutex mutex_;
  std::map<std::string, Profile> counted_ PIPEWRIGHT_GUARDED_BY(mutex_);  ///< without times
  std::map<std::string, std::vector<LayerCost>> heads_ PIPEWRIGHT_GUARDED_BY(mutex_);
};

}  // namespace pipewright
