// SPDX-License-Identifier: Apache-2.0
/// The curvature of a quadratic loss over the weights of all stages.
#pragma once

#include <string>
#include <vector>

#include "core/stability/eigenvalues.h"

namespace pipewright {

/// H of the loss ½wᵀHw, with rows and columns for the weights of stage 0, then those of stage 1 and
/// so on. A loss that is computed after stage s has the part of the stages 0 … s.
using Hessian = std::vector<std::vector<double>>;

/// [stage] how many weights each stage has, and rows of a Hessian; empty: each has one.
using Blocks = std::vector<int>;

/// (H + Hᵀ) / 2, which is H but for the rounding of written digits.
SquareMatrix<double> symmetric_part(const Hessian& hessian);

/// The reason why a square matrix is not the Hessian of a loss that has a minimum ("is not
/// symmetric: …", "has the negative eigenvalue −1, …"); "" if it lacks nothing.
std::string fault_of(const Hessian& hessian);

}  // namespace pipewright
