// SPDX-License-Identifier: Apache-2.0
/// The option `betas` of optimizers that keep running means.
#pragma once

#include <string>
#include <vector>

#include "core/base/wording.h"
#include "core/config/options.h"

namespace pipewright {

/// Decay factors of running means, as many as `fallback` has; each is less than 1.
inline std::vector<double> read_betas(Options& options, const std::vector<double>& fallback,
                                      const std::string& help) {
  std::vector<double> betas = options.numbers("betas", fallback, help, {0, 0.9999999});
  if (betas.size() == fallback.size()) return betas;
  options.problem("betas", concat("has ", counted(betas.size(), "number"), "; expected ",
                                  fallback.size() == 2 ? "two, such as [0.9, 0.999]"
                                                       : "three, such as [0.98, 0.92, 0.99]"));
  return fallback;
}

}  // namespace pipewright
