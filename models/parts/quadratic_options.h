// SPDX-License-Identifier: Apache-2.0
/// The options that say which quadratic form the model `quadratic` minimises.
#pragma once

#include "core/config/options.h"
#include "models/parts/quadratic_form.h"

namespace pipewright {

/// Reads `spectrum`, `hessian`, `coupled` and `seed`. Returns A, AᵀA = H, with `size` rows and
/// columns; some other one if there is a problem, which is recorded.
FormMatrix read_quadratic_form(Options& options, std::size_t size);

}  // namespace pipewright
