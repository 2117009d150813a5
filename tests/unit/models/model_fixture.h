// SPDX-License-Identifier: Apache-2.0
/// Helpers for tests of models: a model made from YAML, its parameter counts, and its shapes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/nn/model.h"

namespace pipewright::test {

using Shape = std::vector<std::int64_t>;
using Counts = std::vector<std::int64_t>;

/// Makes the model `name` with options such as "{classes: 100}". Fails the test on any problem.
std::unique_ptr<Model> make_model(const std::string& name, const std::string& options = "{}");
/// The problems that the options cause, one per line.
std::string model_problems(const std::string& name, const std::string& options);

std::int64_t parameter_count(const Layer& layer);
std::vector<std::int64_t> parameter_counts(const Model& model);  ///< per layer
std::int64_t total_parameters(const Model& model);
std::vector<std::string> layer_names(const Model& model);
/// Full names of all parameters of a layer, in order.
std::vector<std::string> parameter_names(const Layer& layer);

/// A float64 tensor with sin(1 + 10 c + i) at element i, where c is the sum of the name's
/// characters. Parameters of other libraries' models had these values when ours were compared with
/// them.
at::Tensor made_up(const std::string& name, at::IntArrayRef shape);

/// The shape of the first tensor after every layer, without the batch dimension. Computed on the
/// meta device for a batch of two.
std::vector<Shape> boundary_shapes(const Model& model);
/// As above for all tensors. cut_shapes() returns them at the boundaries of the published cut.
std::vector<std::vector<Shape>> all_boundary_shapes(const Model& model);
std::vector<std::vector<Shape>> cut_shapes(const Model& model, int stages);
/// Number of parameters, or of batch norms, of each stage of the published cut into that many
/// stages. Fails the test if the cut does not cover the model.
std::vector<std::int64_t> stage_parameters(const Model& model, int stages);
std::vector<std::int64_t> stage_norms(const Model& model, int stages);
std::vector<Shape> stage_shapes(const Model& model, int stages);
std::vector<std::size_t> boundary_sizes(const Model& model);  ///< tensors after every layer
/// Shape of the output of the head after that layer, without the batch dimension.
Shape head_shape(const Model& model, std::size_t last_layer);
/// As boundary_shapes(), of all tensors.
std::vector<std::vector<Shape>> all_boundary_shapes(const Model& model);

}  // namespace pipewright::test
