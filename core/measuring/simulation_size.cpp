// SPDX-License-Identifier: Apache-2.0
#include "core/measuring/simulation_size.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/schedule/schedule_size.h"
#include "core/system/machine_limits.h"

namespace pipewright {
namespace {

/// Bytes that each action takes: measured on schedules of eight schemes with 2 to 5 million
/// actions, 186 to 199 and, written to a file, 1715 to 1939. An action itself has 48 of them, its
/// weights 64, its span 40; the rest are what arrives when, and what is proved.
constexpr double kBytesOfAction = 200, kBytesOfWritten = 1950;

/// Forwards and backwards of a mini-batch, the fewest actions that it has.
double passes(const Experiment& experiment) {
  const auto& p = experiment.pipeline;
  return 2.0 * p.stages * p.replicas * p.passes();
}

double actions_of(const Experiment& experiment, int minibatches) {
  double actions = 0;
  for (const auto& worker : experiment.schedule(minibatches).workers)
    actions += static_cast<double>(worker.size());
  return actions;
}

/// Actions of so many mini-batches, from those of one and of two.
double expected_actions(const Experiment& experiment, int minibatches) {
  const double one = actions_of(experiment, 1),
               two = actions_of(experiment, std::min(2, minibatches));
  return one + (two - one) * (minibatches - 1);
}

double bytes_of(double actions, bool written) {
  return actions * (written ? kBytesOfWritten : kBytesOfAction);
}

}  // namespace

void check_simulation_size(const Experiment& experiment, int minibatches, bool written) {
  constexpr double kMostOfAPass = 4;  // actions: halves of a backward, recomputations, updates
  constexpr double kAlwaysThere = 1 << 26;  // bytes; fewer always fit, so no limits are read
  const double most = kMostOfAPass * passes(experiment) * minibatches;
  if (bytes_of(most, written) < kAlwaysThere) return;
  const PipelineShape shape = experiment.shape(minibatches);
  check_minibatch_numbers(shape, minibatches);
  const MemoryLimit limit = memory_limit();
  if (bytes_of(most, written) <= limit.bytes) return;
  const double actions = expected_actions(experiment, minibatches);
  const double bytes = bytes_of(actions, written);
  if (bytes <= limit.bytes) return;
  throw Error(ErrorKind::Data,
              concat("simulating ", counted(minibatches, "mini-batch"), " of ",
                     counted(experiment.pipeline.microbatches, "micro-batch"), " takes about ",
                     bytes_text(bytes), " for ", count_text(actions), " actions",
                     written ? ", which --json and --trace write" : "",
                     limit.text.empty() ? std::string() : "; " + limit.text,
                     "; choose fewer with --minibatches"));
}

}  // namespace pipewright
