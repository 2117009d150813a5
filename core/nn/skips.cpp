// SPDX-License-Identifier: Apache-2.0
#include "core/nn/skips.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <string>

#include "core/base/as_size.h"
#include "core/base/error.h"

namespace pipewright {
namespace {

std::int64_t numbers_of(const ParameterSpec& spec) {
  return std::accumulate(spec.shape.begin(), spec.shape.end(), std::int64_t{1}, std::multiplies());
}

/// A pushed skip tensor and the stages that read it.
struct PutAside {
  const Layer* layer;
  int stage;                 ///< the stage that pushes it
  std::vector<int> wants;    ///< other stages that peek at it or pop it, ascending
  int parameter = 0;         ///< if it is one: its position among the stage's
  std::int64_t numbers = 0;  ///< and how many numbers it has
};

/// Simulates the skip stack over all layers.
class Walk {
 public:
  Walk(std::span<const LayerPtr> layers, std::span<const std::int64_t> balance) {
    std::size_t next = 0;
    for (const std::int64_t count : balance) {
      for (std::int64_t i = 0; i < count; ++i) visit(*layers[next++]);
      behind_.push_back(here());
      ++stage_;
      parameters_ = 0;
    }
    if (!waiting_.empty())
      throw Error(
          ErrorKind::Experiment,
          concat("layer '", put_[waiting_.back()].layer->name(),
                 "' puts a tensor aside for a skip connection, but no later layer takes it back"));
  }

  std::vector<Skip> skips(std::int64_t number_bytes) const {
    std::vector<Skip> skips;
    for (const PutAside& each : put_)
      for (auto to = each.wants.rbegin(); to != each.wants.rend(); ++to)
        skips.push_back({each.stage, *to, each.layer->skips().gradients,
                         each.numbers * number_bytes, each.parameter});
    return skips;
  }

  std::vector<std::vector<int>> copies() const {
    std::vector<std::vector<int>> all;
    for (std::size_t stage = 0; stage < behind_.size(); ++stage) {
      all.emplace_back();
      for (const std::size_t each : behind_[stage])
        all.back().push_back(
            as_size(put_[each].stage) == stage ? static_cast<int>(put_[each].wants.size()) : 0);
    }
    return all;
  }

 private:
  void visit(const Layer& layer) {
    const SkipUse use = layer.skips();
    for (int take = 0; take < use.takes; ++take) {
      want(layer, 0, "takes a tensor back");
      waiting_.pop_back();
    }
    for (int look = 0; look < use.looks; ++look) want(layer, as_size(look), "looks at a tensor");
    for (int puts = 0; puts < use.puts; ++puts) {
      waiting_.push_back(put_.size());
      PutAside& put = put_.emplace_back(PutAside{&layer, stage_, {}});
      if (use.lends.empty()) continue;
      const std::size_t lent = use.lends[as_size(puts)];
      put.parameter = parameters_ + static_cast<int>(lent);
      put.numbers = numbers_of(layer.parameters()[lent]);
    }
    parameters_ += static_cast<int>(layer.parameters().size());
  }

  /// Records that `layer` reads the tensor `depth` below the top of the stack.
  void want(const Layer& layer, std::size_t depth, const char* what) {
    if (depth >= waiting_.size())
      throw Error(ErrorKind::Experiment, concat("layer '", layer.name(), "' ", what,
                                                " of a skip connection, but no layer before it has "
                                                "put one aside that is still there"));
    PutAside& wanted = put_[waiting_[waiting_.size() - 1 - depth]];
    if (!is_here(wanted)) wanted.wants.push_back(stage_);
  }

  bool is_here(const PutAside& each) const {
    return each.stage == stage_ || (!each.wants.empty() && each.wants.back() == stage_);
  }

  /// The tensors on the stack that this stage holds, bottom first.
  std::vector<std::size_t> here() const {
    std::vector<std::size_t> those;
    std::ranges::copy_if(waiting_, std::back_inserter(those),
                         [this](std::size_t each) { return is_here(put_[each]); });
    return those;
  }

  int stage_ = 0;
  int parameters_ = 0;                            ///< of the stage, before the layer
  std::vector<PutAside> put_;                     ///< all pushed tensors, in push order
  std::vector<std::size_t> waiting_;              ///< the stack: indices into put_, top last
  std::vector<std::vector<std::size_t>> behind_;  ///< [stage] → here() behind its last layer
};

}  // namespace

std::vector<Skip> skips_between(std::span<const LayerPtr> layers,
                                std::span<const std::int64_t> balance, std::int64_t number_bytes) {
  return Walk(layers, balance).skips(number_bytes);
}

std::vector<std::vector<int>> leaving_copies(std::span<const LayerPtr> layers,
                                             std::span<const std::int64_t> balance) {
  return Walk(layers, balance).copies();
}

std::vector<TiedCopies> tied_copies(std::span<const LayerPtr> layers,
                                    std::span<const std::int64_t> balance,
                                    std::int64_t number_bytes) {
  struct Copy {
    int stage, parameter;
  };
  std::map<std::string, std::vector<Copy>> copies;  // of each parameter that has some
  for (const LayerPtr& layer : layers)
    for (const ParameterSpec& spec : layer->parameters())
      if (spec.copied) copies[spec.drawn_as];
  std::vector<TiedCopies> tied;
  auto next = layers.begin();
  for (int stage = 0; stage < static_cast<int>(balance.size()); ++stage) {
    int parameter = 0;
    for (const auto end = next + balance[as_size(stage)]; next != end; ++next)
      for (const ParameterSpec& spec : (*next)->parameters()) {
        const Copy here{stage, parameter++};
        const auto found =
            copies.find(spec.copied ? spec.drawn_as : parameter_name(**next, spec.name));
        if (found == copies.end()) continue;
        const std::int64_t numbers = numbers_of(spec);
        for (const Copy& before : found->second)
          tied.push_back({.first = before.stage,
                          .second = here.stage,
                          .of_first = before.parameter,
                          .of_second = here.parameter,
                          .numbers = numbers,
                          .bytes = numbers * number_bytes});
        found->second.push_back(here);
      }
  }
  return tied;
}

}  // namespace pipewright
