// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/schedule_size.h"

#include <limits>

#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/system/machine_limits.h"

namespace pipewright {
namespace {

/// Actions, messages and passes are numbered with int.
constexpr double kMostActions = std::numeric_limits<int>::max();

}  // namespace

void check_minibatch_numbers(const PipelineShape& shape, std::int64_t minibatches) {
  const double microbatches =
      static_cast<double>(shape.microbatches) * static_cast<double>(minibatches);
  if (microbatches > kMostActions)
    throw Error(ErrorKind::Data,
                concat("the schedule has ", count_text(microbatches), " micro-batches (",
                       counted(shape.microbatches, "micro-batch"), " in each of ",
                       counted(minibatches, "mini-batch"),
                       " without a drain between them); at most ", count_text(kMostActions),
                       " are possible; drain more often (train.drain, train.checkpoint)"));
}

void check_schedule_size(const PipelineShape& shape, std::int64_t minibatches,
                         std::size_t bytes_each) {
  const double actions = (shape.training ? 2.0 : 1.0) * shape.stages * shape.replicas *
                         shape.microbatches * static_cast<double>(minibatches);
  const double bytes = actions * static_cast<double>(bytes_each);
  constexpr double kAlwaysThere = 1 << 26;  // bytes; fewer always fit, so no limits are read
  if (bytes < kAlwaysThere) return;
  const MemoryLimit limit = memory_limit();
  if (bytes <= limit.bytes && actions <= kMostActions) return;
  throw Error(
      ErrorKind::Data,
      concat("the schedule has at least ", count_text(actions), " actions (",
             counted(shape.stages, "stage"), ", ", counted(shape.replicas, "replica"), ", ",
             counted(shape.microbatches, "micro-batch"), ", ", counted(minibatches, "mini-batch"),
             " without a drain between them), which take at least ", bytes_text(bytes),
             bytes <= limit.bytes ? concat("; at most ", count_text(kMostActions), " are possible")
             : limit.text.empty() ? std::string()
                                  : "; " + limit.text,
             "; choose fewer of these, or drain more often (train.drain, train.checkpoint)"));
}

}  // namespace pipewright
