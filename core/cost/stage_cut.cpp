// SPDX-License-Identifier: Apache-2.0
#include "core/cost/stage_cut.h"

#include <algorithm>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/cost/partition.h"
#include "core/cost/stage_names.h"

namespace pipewright {
namespace {

double sending(std::int64_t bytes, const CutRules& rules) {
  return static_cast<double>(bytes) / rules.bandwidth + rules.latency;
}

/// Sums over the layers before each layer, so that the seconds of a block are a difference.
std::vector<double> summed_seconds(const Profile& profile, const CutRules& rules) {
  std::vector<double> sum{0};
  for (const LayerCost& layer : profile.layers)
    sum.push_back(sum.back() + layer.forward + layer.backward + layer.update / rules.microbatches);
  return sum;
}

double seconds(const Profile& profile, const std::vector<double>& sum, std::size_t begin,
               std::size_t end, const CutRules& rules) {
  double time = sum[end] - sum[begin];
  if (begin == 0) time -= sent_gradient(std::span(profile.layers).first(end)).backward;
  if (begin > 0) time += sending(profile.layers[begin - 1].output_bytes, rules);
  if (end < profile.layers.size()) time += sending(profile.layers[end - 1].output_bytes, rules);
  return time;
}

std::vector<std::int64_t> least_memory(const Profile& profile, const StageMemories& memories,
                                       const CutRules& rules) {
  return min_max_partition(profile.layers.size(), rules.stages,
                           [&](std::size_t begin, std::size_t end, int stage) {
                             return static_cast<double>(memories.of(begin, end, stage).total());
                           });
}

/// Throws because no cut fits. The message names the largest stage of the cut that needs the least
/// memory, and what it needs.
[[noreturn]] void refuse(const Profile& profile, const StageMemories& memories,
                         const CutRules& rules) {
  const auto cut = least_memory(profile, memories, rules);
  std::vector<std::int64_t> needed;
  std::size_t begin = 0;
  for (const std::int64_t layers : cut) {
    const std::size_t end = begin + static_cast<std::size_t>(layers);
    needed.push_back(memories.of(begin, end, static_cast<int>(needed.size())).total());
    begin = end;
  }
  const auto tightest = std::ranges::max_element(needed);
  const auto stage = static_cast<std::size_t>(tightest - needed.begin());
  throw Error(ErrorKind::Experiment,
              concat("no cut into ", counted(rules.stages, "stage"), " fits into ",
                     bytes_text(rules.memory),
                     " per worker (pipeline.cut.memory): in the cut that needs least, stage ",
                     stage, " (", stage_names(profile, cut)[stage], ") needs ",
                     bytes_text(*tightest), "; take more stages or smaller micro-batches"));
}

}  // namespace

double stage_seconds(const Profile& profile, std::size_t begin, std::size_t end,
                     const CutRules& rules) {
  return seconds(profile, summed_seconds(profile, rules), begin, end, rules);
}

std::vector<std::int64_t> best_cut(const Profile& profile, const StageMemories& memories,
                                   const CutRules& rules) {
  const bool by_time = rules.by == CutRules::By::Time;
  if (by_time && !profile.timed)
    throw Error(
        ErrorKind::Experiment,
        concat("the profile of ", profile.model, " was counted on the device ", profile.device,
               " and has no times; `pipewright profile FILE --device cpu` or cuda measures them"));
  const std::vector<double> sum = summed_seconds(profile, rules);
  const auto cut = min_max_partition(
      profile.layers.size(), rules.stages, [&](std::size_t begin, std::size_t end, int stage) {
        const double most = static_cast<double>(rules.memory);
        const double bytes = by_time && rules.memory == 0
                                 ? 0
                                 : static_cast<double>(memories.of(begin, end, stage).total());
        if (rules.memory > 0 && bytes > most) return std::numeric_limits<double>::infinity();
        return by_time ? seconds(profile, sum, begin, end, rules) : bytes;
      });
  if (cut.empty()) refuse(profile, memories, rules);
  return cut;
}

}  // namespace pipewright
