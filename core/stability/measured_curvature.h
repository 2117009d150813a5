// SPDX-License-Identifier: Apache-2.0
/// Curvature that the probe `sharpness` has measured beside a run.
#pragma once

#include <filesystem>
#include <map>
#include <optional>

namespace pipewright {

/// The last values of a run: largest eigenvalues of the Hessian.
struct MeasuredCurvature {
  std::map<int, double> stages;  ///< of a stage's block
  std::optional<double> model;   ///< of the whole model

  bool empty() const { return stages.empty() && !model; }
};

/// Reads rows `epoch,minibatch,stage,probe,quantity,value` whose probe is `sharpness`: quantity
/// `preconditioned` if asked for, else `largest`. Throws Error{Data} if the file is missing or
/// damaged, with file and line.
MeasuredCurvature read_curvature(const std::filesystem::path& probes, bool preconditioned);

}  // namespace pipewright
