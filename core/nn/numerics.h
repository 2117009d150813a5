// SPDX-License-Identifier: Apache-2.0
/// How exactly kernels compute: `train.numerics`.
#pragma once

#include <string>

#include "core/config/options.h"

namespace pipewright {

/// The default is `repeatable`: float32 is IEEE's, and equal inputs give equal bits.
struct Numerics {
  /// Factors of matrix products and of convolutions in float32 may be rounded: by cuBLAS and cuDNN
  /// to TF32's 11 bits, by oneDNN to bfloat16's 8 where it has kernels that do so.
  bool rounds_products = false, rounds_convolutions = false;
  bool any_order = false;  ///< GPUs add in any order
  bool tuning = false;     ///< cuDNN measures its algorithms, and takes the fastest

  friend bool operator==(const Numerics&, const Numerics&) = default;
};

/// Reads the option `numerics`.
Numerics read_numerics(Options& train);
/// Those of a resolved experiment.
Numerics numerics_of(const Value& resolved);

/// Tells LibTorch to compute so in all threads of the process, on GPUs where there are some.
void compute_with(const Numerics& numerics, bool on_gpu);

/// What LibTorch answers when it is asked for these settings, for run.json.
Value recorded_numerics(bool on_gpu);

/// What the user should know of numerics that are not the default, or "".
std::string numerics_remark(const Numerics& numerics, bool on_cpu, bool on_gpu);

}  // namespace pipewright
