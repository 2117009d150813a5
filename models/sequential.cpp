// SPDX-License-Identifier: Apache-2.0
/// A model that an experiment file lists layer by layer, as torch.nn.Sequential does in Python:
/// layer i is called "i", and its parameters "i.weight" and so on, so that files of nn.Sequential's
/// weights fit where the layers are the same. A pipeline may be cut between any two of the list; a
/// `residual` is one layer, the layers of a `repeat` are cut apart.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/wording.h"
#include "core/nn/layers.h"
#include "core/nn/model.h"
#include "models/parts/layer_list.h"

namespace pipewright {
namespace {

constexpr std::size_t kStandIns = 256;

class Sequential final : public Model {
 public:
  explicit Sequential(Options& options)
      : input_{options.integers("input", {3, 32, 32},
                                "Shape of a sample: [channels, height, width] of images, "
                                "[features], [tokens, width] of vectors, or [tokens].",
                                {1, 1e9}),
               options.integer("vocabulary", 0,
                               "Of texts: number of different tokens; 0: the input are numbers.",
                               {0, 1e9})} {
    check_input(options);
    auto listed = read_layer_list(options, input_);
    if (listed && is_complete(options, *listed))
      layers_ = std::move(*listed);
    else  // a model all the same, with layers for any cut, because other problems are reported too
      layers_.assign(kStandIns, {[] { return linear(1, 2); }, {{2}, 0}});
  }

  std::vector<LayerPtr> layers() const override {
    std::vector<LayerPtr> all;
    for (const ListedLayer& layer : layers_) {
      all.push_back(layer.make());
      all.back()->set_name(std::to_string(all.size() - 1));
    }
    return all;
  }

  std::vector<std::int64_t> input_shape() const override { return input_.sizes; }
  bool flattens() const override { return input_.is_flat(); }
  std::int64_t vocabulary() const override { return input_.vocabulary; }
  Task task() const override {
    return layers_.back().after.is_sequence() ? Task::Continue : Task::Classify;
  }
  std::int64_t classes() const override { return layers_.back().after.sizes.back(); }

  LayerPtr head(std::size_t last_layer) const override {
    const SampleShape& shape = layers_.at(last_layer).after;
    if (shape.is_tokens()) return nullptr;
    if (shape.is_image())
      return sequence({{"pool", average_pool_to(1)},
                       {"flat", flatten()},
                       {"fc", linear(shape.sizes[0], classes())}});
    if (shape.is_sequence() && task() == Task::Classify)
      return sequence({{"mean", average_over_tokens()}, {"fc", linear(shape.sizes[1], classes())}});
    return sequence({{"fc", linear(shape.sizes.back(), classes())}});
  }

 private:
  void check_input(Options& options) {
    const std::size_t most = input_.is_tokens() ? 1 : 3;
    if (!input_.sizes.empty() && input_.sizes.size() <= most) return;
    options.problem(
        "input", concat("has ", counted(input_.sizes.size(), "number"),
                        most > 1 ? "; expected 1 to 3" : "; expected 1, the tokens of a sample"));
    input_ = {{3, 32, 32}, 0};
  }

  /// Whether the last layer gives the scores of classes: one row a sample or, of texts that are
  /// continued, one for each token.
  bool is_complete(Options& options, const std::vector<ListedLayer>& listed) const {
    if (listed.empty()) {
      options.problem("layers", "has no layer; expected a list such as [flatten, {linear: 10}]");
      return false;
    }
    const SampleShape& last = listed.back().after;
    const bool continues =
        input_.is_tokens() && last.is_sequence() && last.sizes[0] == input_.sizes[0];
    if (last.is_flat() || continues) return true;
    options.problem("layers",
                    concat("ends with ", last.text(), "; expected features, one number per class",
                           input_.is_tokens()
                               ? concat(", or vectors for each of the ", input_.sizes[0], " tokens")
                               : "",
                           "; end with flatten or average_pool_to, and linear"));
    return false;
  }

  SampleShape input_;
  std::vector<ListedLayer> layers_;
};

PIPEWRIGHT_MODEL(sequential, Sequential, "A model listed layer by layer in the experiment file.");

}  // namespace
}  // namespace pipewright
