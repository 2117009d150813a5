// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/balance.h"

#include <limits>
#include <numeric>

#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/cost/partition.h"
#include "core/runtime/batches.h"
#include "core/stage/stage.h"

namespace pipewright {
namespace {

double parameters_of(const LayerPtr& layer) {
  double sum = 0;
  for (const ParameterSpec& spec : layer->parameters())
    sum += std::accumulate(spec.shape.begin(), spec.shape.end(), 1.0,
                           [](double a, std::int64_t b) { return a * static_cast<double>(b); });
  return sum;
}

}  // namespace

std::vector<std::int64_t> balanced(const Model& model, const std::vector<LayerPtr>& layers,
                                   int stages, const std::string& rule,
                                   const std::vector<std::int64_t>& list) {
  auto refuse = [&](const std::string& message) { throw Error(ErrorKind::Experiment, message); };
  const auto count = static_cast<std::int64_t>(layers.size());
  if (stages > count)
    refuse(concat("pipeline.stages is ", stages, "; the model has ", counted(count, "layer"),
                  ", and a stage holds at least one", model.why_so_few_layers()));
  if (rule.empty()) {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    const std::int64_t sum = std::accumulate(
        list.begin(), list.end(), std::int64_t{0},
        [](std::int64_t a, std::int64_t b) { return b > kMost - a ? kMost : a + b; });
    if (list.size() != static_cast<std::size_t>(stages))
      refuse(concat("pipeline.balance is ", list_text(list), ", which makes ",
                    counted(list.size(), "stage"), "; pipeline.stages is ", stages));
    if (sum != count)
      refuse(concat("pipeline.balance is ", list_text(list), ", in sum ", counted(sum, "layer"),
                    "; the model has ", count));
    return list;
  }
  if (rule == "time" || rule == "memory") return {};
  if (rule == "published") {
    const std::vector<std::int64_t> published = model.published_balance(stages);
    if (published.empty())
      refuse(concat("pipeline.balance is published, but no cut of this model into ",
                    counted(stages, "stage"), " is; use balance: parameters"));
    return published;
  }
  std::vector<double> costs;
  for (const LayerPtr& layer : layers) costs.push_back(rule == "layers" ? 1 : parameters_of(layer));
  if (rule == "layers") {
    std::vector<std::int64_t> equal;
    for (int stage = 0; stage < stages; ++stage)
      equal.push_back(slice_of(count, stages, stage).size);
    return equal;
  }
  return min_max_partition(costs, stages);
}

}  // namespace pipewright
