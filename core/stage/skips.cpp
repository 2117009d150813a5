#include "core/stage/skips.h"

#include <algorithm>

#include "core/base/error.h"

namespace pipewright {
namespace {

/// Stages, as Skip has them, and the place in the order of putting aside.
struct PutAside {
  const Layer* layer;
  int stage;
  std::size_t order;
};

struct Ordered {
  std::size_t order;
  Skip skip;
};

}  // namespace

std::vector<Skip> skips_between(std::span<const LayerPtr> layers,
                                std::span<const std::int64_t> balance) {
  std::vector<PutAside> waiting;
  std::vector<Ordered> found;
  std::size_t put = 0, next = 0;
  for (int stage = 0; stage < static_cast<int>(std::ssize(balance)); ++stage)
    for (std::int64_t i = 0; i < balance[static_cast<std::size_t>(stage)]; ++i) {
      const Layer& layer = *layers[next++];
      for (int take = 0; take < layer.skips().takes; ++take) {
        if (waiting.empty())
          throw Error(ErrorKind::Experiment,
                      concat("layer '", layer.name(), "' takes a tensor back, but none before it ",
                             "was put aside and is still there"));
        const PutAside& from = waiting.back();
        if (from.stage < stage) found.push_back({from.order, {from.stage, stage}});
        waiting.pop_back();
      }
      for (int puts = 0; puts < layer.skips().puts; ++puts)
        waiting.push_back({&layer, stage, put++});
    }
  if (!waiting.empty())
    throw Error(ErrorKind::Experiment,
                concat("layer '", waiting.back().layer->name(),
                       "' puts a tensor aside that no layer after it takes back"));
  std::ranges::sort(found, {}, &Ordered::order);
  std::vector<Skip> skips;
  for (const Ordered& each : found) skips.push_back(each.skip);
  return skips;
}

}  // namespace pipewright
