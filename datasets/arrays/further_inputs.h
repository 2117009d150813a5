// SPDX-License-Identifier: Apache-2.0
/// Inputs of samples beside the first: arrays that a model takes by name.
#pragma once

#include <span>

#include "core/nn/named_input.h"
#include "datasets/arrays/sample_source.h"

namespace pipewright {

/// Brings part.further, arrays with the names of `wanted`, into the types that the model takes.
/// Small integers and truth values may be numbers, and integers of any width tokens. Throws
/// Error{Data} that names the file, the array and the record if one does not fit the model or has
/// another number of samples than x.
void settle_further(SamplePart& part, std::span<const NamedInput> wanted);

}  // namespace pipewright
