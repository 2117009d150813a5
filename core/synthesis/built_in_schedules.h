// SPDX-License-Identifier: Apache-2.0
/// The schedules of the registered schemes for a pipeline.
#pragma once

#include <string>
#include <vector>

#include "core/schedule/prove.h"

namespace pipewright {

struct NamedSchedule {
  std::string name;
  ProvedSchedule proved;
};

/// The schedules of all registered schemes with their default options that can run in this shape,
/// also those that would place stages elsewhere if nobody told them, with as many chunks as its
/// placement has stages on a worker; first those that place them so by themselves. Without those
/// that read a file.
std::vector<NamedSchedule> built_in_schedules(const PipelineShape& shape);

}  // namespace pipewright
