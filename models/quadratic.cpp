// SPDX-License-Identifier: Apache-2.0
/// A quadratic problem as a pipeline: f(w) = ½ wᵀHw, on which the largest stable learning rate of a
/// scheme can be computed and seen.
///
/// With n = layers · width parameters and a matrix A, AᵀA = H, layer k has `width` parameters w_k
/// and as many columns A_k of A. An activation of n values begins as the data set's sample x; each
/// layer adds A_k·w_k to it, and the last one gives the loss f = ½|s|², s = x + Σ A_k·w_k. So the
/// gradient of w_k is A_kᵀ(x + Σ_j A_j·w_j), with x = 0 the rows of H that belong to layer k, times
/// w; each w_j is of the version that its own forward read. Parameters are "<k>.weight" [width].
///
/// A backward that has other weights w_b than its forward's w_f gives (H + Δ)·w_f − Δ·w_b, the
/// model of PipeMare (Yang et al., 2021). `relative_discrepancy` is Δ in units of the layer's own
/// block of H, A_kᵀA_k, as `stability --discrepancy` means it; `discrepancy` is Δ as a number.
#include <string>
#include <vector>

#include "core/base/text.h"
#include "core/nn/model.h"
#include "models/parts/quadratic_form.h"
#include "models/parts/quadratic_layer.h"
#include "models/parts/quadratic_options.h"

namespace pipewright {
namespace {

constexpr std::int64_t kMostParameters = 1024;  // A has as many rows, and as many columns
constexpr Range kCount{1, static_cast<double>(kMostParameters)};

class Quadratic final : public Model {
 public:
  explicit Quadratic(Options& options)
      : layers_(options.integer(
            "layers", 4, "Number of layers, between which the pipeline can be cut.", kCount)),
        width_(read_width(options)),
        form_(read_quadratic_form(options, static_cast<std::size_t>(layers_ * width_))),
        discrepancy_(options.number(
            "discrepancy", 0,
            "PipeMare's Δ as a number: the gradient is (H + Δ) times the weights that the forward "
            "read, minus Δ times those that are there in the backward. Without effect where both "
            "are the same. It equals a relative_discrepancy of Δ / λ where the layer's curvature "
            "is λ.")),
        relative_discrepancy_(read_relative(options)),
        start_(options.choice("start", {"ones", "normal"}, "ones",
                              "Initial weights: all 1, or normal(0, 1) by train.seed.")) {}

  std::vector<LayerPtr> layers() const override {
    const auto kind = start_ == "ones" ? Initializer::Kind::Constant : Initializer::Kind::Normal;
    std::vector<LayerPtr> all;
    for (std::int64_t k = 0; k < layers_; ++k) {
      all.push_back(quadratic_layer({.rows = layers_ * width_,
                                     .width = width_,
                                     .columns = columns(k),
                                     .discrepancy = discrepancy_,
                                     .relative_discrepancy = relative_discrepancy_,
                                     .last = k + 1 == layers_,
                                     .start = {kind, 1}}));
      all.back()->set_name(std::to_string(k));
    }
    return all;
  }

  std::vector<std::int64_t> input_shape() const override { return {layers_ * width_}; }
  Task task() const override { return Task::Minimize; }
  std::int64_t classes() const override { return 1; }
  LayerPtr head(std::size_t) const override { return nullptr; }

 private:
  std::int64_t read_width(Options& options) const {
    const std::int64_t width =
        options.integer("width", 1, "Number of parameters of each layer.", kCount);
    if (layers_ * width <= kMostParameters) return width;
    options.problem(
        "width", concat("is ", width, ", which makes ", layers_ * width, " parameters of ", layers_,
                        " layers; expected at most ", kMostParameters));
    return 1;
  }

  double read_relative(Options& options) const {
    const double relative = options.number(
        "relative_discrepancy", 0,
        "PipeMare's Δ in units of the layer's own curvature, its block of H, as `pipewright "
        "stability --discrepancy` takes it. Give this or discrepancy, not both.");
    if (relative != 0 && discrepancy_ != 0)
      options.problem("relative_discrepancy", concat("is ", relative, " beside discrepancy: ",
                                                     discrepancy_, "; expected one of the two"));
    return relative;
  }

  /// The columns A_k, row by row.
  std::vector<double> columns(std::int64_t k) const {
    const auto width = static_cast<std::size_t>(width_),
               first = static_cast<std::size_t>(k) * width;
    std::vector<double> part;
    for (std::size_t row = 0; row < form_.size; ++row)
      for (std::size_t i = 0; i < width; ++i) part.push_back(form_.at(row, first + i));
    return part;
  }

  std::int64_t layers_, width_;
  FormMatrix form_;  ///< A
  double discrepancy_, relative_discrepancy_;
  std::string start_;
};

PIPEWRIGHT_MODEL(quadratic, Quadratic,
                 "A quadratic problem of given curvatures, to find the largest stable learning "
                 "rate.")

}  // namespace
}  // namespace pipewright
