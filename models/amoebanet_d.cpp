// SPDX-License-Identifier: Apache-2.0
/// AmoebaNet-D (Real et al., 2019) as GPipe and torchgpipe measure it: a stem, two reductions,
/// three groups of normal cells with a reduction between them, a classifier; `cells` + 6 layers.
/// Two tensors cross every boundary between cells, as a cell reads the last two outputs.
#include <string>
#include <utility>
#include <vector>

#include "core/nn/composite.h"
#include "models/parts/amoebanet_cell.h"
#include "models/parts/image_model.h"

namespace pipewright {
namespace {

constexpr std::int64_t kAmoebaGroups = 3;
constexpr std::int64_t kHalvings = 5;

/// A layer that applies another one to the first tensor and drops the other tensors.
class OfTheFirst final : public Composite {
 public:
  explicit OfTheFirst(LayerPtr layer) { add(std::move(layer), ""); }

  Tensors forward_all(const Tensors& inputs, std::span<const at::Tensor> parameters,
                      std::span<at::Tensor> buffers, const Pass& pass) const override {
    return {parts_[0].forward(inputs[0], parameters, buffers, pass)};
  }
};

/// Builds the list of the model's layers.
class Cells {
 public:
  Cells(LayerPtr stem, std::int64_t channels)
      : channels_after{channels}, next_{.last = channels, .before_last = channels} {
    next_.channels = channels;
    add("stem1", std::move(stem));
  }

  void add_reduction(std::string name) {
    next_.channels *= 2;
    next_.reduces = true;
    add_cell(std::move(name));
  }
  void add_normal(std::string name) {
    next_.reduces = false;
    add_cell(std::move(name));
  }
  void add(std::string name, LayerPtr layer) {
    layer->set_name(std::move(name));
    layers.push_back(std::move(layer));
  }

  std::vector<LayerPtr> layers;
  std::vector<std::int64_t> channels_after;

 private:
  void add_cell(std::string name) {
    add(std::move(name), amoeba_cell(next_));
    channels_after.push_back(amoeba_cell_channels(next_));
    next_.before_last = next_.last;
    next_.last = channels_after.back();
    next_.after_reduction = next_.reduces;
  }

  AmoebaCellOptions next_;
};

class AmoebaNetD final : public Model {
 public:
  explicit AmoebaNetD(Options& options)
      : cells_(options.integer(
            "cells", 18, "Number of normal cells, a multiple of 3 (the papers' L).", {3, 3e4})),
        filters_(options.integer("filters", 256,
                                 "Number of filters, a multiple of 8 (the papers' F). The last map "
                                 "has 16 times as many channels.",
                                 {8, 1e6})),
        classes_(options.integer("classes", 1000, "Number of classes.", {1, 1e9})),
        channels_(options.integer("channels", 3,
                                  "Number of channels of the images: 3 for colour, 1 for grey.",
                                  {1, 1e6})),
        size_(options.integer("size", 224,
                              "Height and width of the images, a multiple of 32. The papers' 7x7 "
                              "average pool is a mean over the last map of any size.",
                              {32, 1e6})),
        aux_head_(options, "gbpl_fc") {
    const auto check = [&](const char* name, std::int64_t value, std::int64_t divisor) {
      if (value % divisor != 0)
        options.problem(name, concat("is ", value, "; expected a multiple of ", divisor));
    };
    check("cells", cells_, kAmoebaGroups);
    check("filters", filters_, 8);
    check("size", size_, std::int64_t{1} << kHalvings);
  }

  std::vector<LayerPtr> layers() const override {
    Cells cells = feature_cells();
    cells.add("classifier", std::make_shared<OfTheFirst>(
                                pooled_classifier("", cells.channels_after.back(), classes_)));
    return std::move(cells.layers);
  }

  std::vector<std::int64_t> input_shape() const override { return {channels_, size_, size_}; }
  std::int64_t classes() const override { return classes_; }

  LayerPtr head(std::size_t last_layer) const override {
    const Cells cells = feature_cells();
    return last_layer < cells.layers.size()
               ? aux_head_.on_image(cells.channels_after[last_layer], classes_)
               : ImageHead::on_features(classes_, classes_);
  }

  /// torchgpipe's balances of its speed benchmark with several micro-batches, for the default
  /// model.
  std::vector<std::int64_t> published_balance(int stages) const override {
    if (cells_ != 18) return {};
    switch (stages) {
      case 2: return {9, 15};
      case 4: return {3, 6, 7, 8};
      case 8: return {2, 2, 2, 3, 3, 4, 4, 4};
      default: return {};
    }
  }

 private:
  Cells feature_cells() const {
    const std::int64_t stem = filters_ / 4;
    Cells cells(relu_convolution_norm(channels_, stem, {.kernel = 3, .stride = 2, .padding = 1}),
                stem);
    cells.add_reduction("stem2");
    cells.add_reduction("stem3");
    for (std::int64_t group = 1; group <= kAmoebaGroups; ++group) {
      if (group > 1) cells.add_reduction(concat("reduction", group - 1));
      for (std::int64_t cell = 1; cell <= cells_ / kAmoebaGroups; ++cell)
        cells.add_normal(concat("normal", group, "_", cell));
    }
    return cells;
  }

  std::int64_t cells_, filters_, classes_, channels_, size_;
  ImageHead aux_head_;
};

PIPEWRIGHT_MODEL(amoebanet_d, AmoebaNetD, "AmoebaNet-D for large images, as GPipe measures it.");

}  // namespace
}  // namespace pipewright
