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
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/nn/composite.h"
#include "core/nn/model.h"
#include "core/tensors/torch.h"
#include "core/tensors/upload.h"
#include "models/parts/quadratic_form.h"

namespace pipewright {
namespace {

constexpr std::int64_t kMostParameters = 1024;  // A has as many rows, and as many columns
constexpr Range kCount{1, static_cast<double>(kMostParameters)};

struct QuadraticLayerOptions {
  std::int64_t rows = 1;            ///< n: values of the activation
  std::int64_t width = 1;           ///< d: parameters of this layer
  std::vector<double> columns;      ///< A_k [n, d], row by row
  double discrepancy = 0;           ///< Δ as a number; one of the two is 0
  double relative_discrepancy = 0;  ///< Δ in units of the layer's own curvature A_kᵀA_k
  bool last = false;
  Initializer start;
};

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Gives c unchanged. The forward keeps a copy of the weight; the leaf itself shows the backward
/// the weight that is installed then (core/stage/weight_store.h). Their difference is multiplied by
/// `discrepancy`, or by the matrix `curvature` if that has values.
struct Discrepancy : torch::autograd::Function<Discrepancy> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& c, const at::Tensor& weight,
                            double discrepancy, const at::Tensor& curvature) {
    variable_list kept{weight.detach().clone(), weight};
    if (curvature.numel() > 0) kept.push_back(curvature);
    context->save_for_backward(std::move(kept));
    context->saved_data["discrepancy"] = discrepancy;
    return c.clone();
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor& gradient = gradients[0];
    if (!gradient.defined()) return {{}, {}, {}, {}};
    const variable_list saved = context->get_saved_variables();
    const double discrepancy = context->saved_data["discrepancy"].toDouble();
    variable_list of(4);
    if (context->needs_input_grad(0)) of[0] = gradient;
    if (!context->needs_input_grad(1)) return of;
    const at::Tensor apart = saved[0] - saved[1].detach();
    of[1] = saved.size() > 2 ? at::mv(saved[2], apart) * gradient.sum()
                             : apart * (gradient.sum() * discrepancy);
    return of;
  }
};

/// s ← s + A_k·weight for s [batch, n] and weight [d]; the last layer then gives ½|s|², [batch, 1].
///
/// With Δ ≠ 0 a second tensor c [batch, 1], which is 0, goes through all layers and is added to the
/// last one's output. Its gradient has the sum g, the part that the samples have in the loss. The
/// backward adds g·Δ·(w_f − w_b) to the gradient of the weight: w_f is the weight that the forward
/// read, w_b the one that is there in the backward. A relative Δ adds g·Δ·A_kᵀA_k·(w_f − w_b).
class QuadraticLayer final : public BoundaryLayer {
 public:
  explicit QuadraticLayer(QuadraticLayerOptions options) : options_(std::move(options)) {
    const std::int64_t values = options_.rows * options_.width;
    PIPEWRIGHT_CHECK(std::ssize(options_.columns) == values, options_.columns.size(), " values");
  }

  std::vector<ParameterSpec> parameters() const override {
    return {{"weight", {options_.width}, options_.start}};
  }

  Tensors forward_all(const Tensors& inputs, std::span<const at::Tensor> parameters,
                      std::span<at::Tensor>, const Pass&) const override {
    const at::Tensor& weight = parameters[0];
    const at::Tensor s = inputs[0] + at::linear(weight.unsqueeze(0), columns_like(weight));
    const at::Tensor output = options_.last ? s.square().sum(1, /*keepdim=*/true).mul(0.5) : s;
    if (options_.discrepancy == 0 && options_.relative_discrepancy == 0) return {output};
    const at::Tensor given =
        inputs.size() > 1 ? inputs[1] : at::zeros({inputs[0].size(0), 1}, inputs[0].options());
    const at::Tensor c =
        Discrepancy::apply(given, weight, options_.discrepancy, discrepancy_like(weight));
    if (options_.last) return {output + c};
    return {output, c};
  }

 private:
  /// Δ·A_kᵀA_k for a relative Δ, in the weight's format and on its device; else without values.
  at::Tensor discrepancy_like(const at::Tensor& weight) const {
    if (options_.relative_discrepancy == 0) return at::empty({0}, weight.options());
    const at::Tensor columns = columns_like(weight);
    return at::mm(columns.t(), columns) * options_.relative_discrepancy;
  }

  /// A_k in the weight's format and on its device.
  at::Tensor columns_like(const at::Tensor& weight) const {
    at::Tensor columns = at::empty({options_.rows, options_.width}, at::kDouble);
    std::ranges::copy(options_.columns, columns.mutable_data_ptr<double>());
    return upload(columns.to(weight.scalar_type()), weight.device());
  }

  QuadraticLayerOptions options_;
};

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
      all.push_back(std::make_shared<QuadraticLayer>(
          QuadraticLayerOptions{.rows = layers_ * width_,
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
