/// What the tests of models share: a model made from YAML, its counts, and its shapes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/stage/model.h"

namespace pipewright::test {

using Shape = std::vector<std::int64_t>;
using Counts = std::vector<std::int64_t>;

/// The model `name` with options as in "{classes: 100}". Fails the test on any problem.
std::unique_ptr<Model> make_model(const std::string& name, const std::string& options = "{}");
/// The problems it records, one per line.
std::string model_problems(const std::string& name, const std::string& options);

std::int64_t parameter_count(const Layer& layer);
std::vector<std::int64_t> parameter_counts(const Model& model);  ///< per layer
std::int64_t total_parameters(const Model& model);
std::vector<std::string> layer_names(const Model& model);
/// Full names of all parameters of a layer, in order.
std::vector<std::string> parameter_names(const Layer& layer);

/// sin(1 + 10 c + i) at element i, c the sum of the name's characters, float64: what the parameters
/// of other people's models were set to where ours are compared with them.
at::Tensor made_up(const std::string& name, at::IntArrayRef shape);

/// Shapes after every layer, of the first tensor there, for a batch of two, without the batch; on
/// the meta device.
std::vector<Shape> boundary_shapes(const Model& model);
/// The same of all tensors; and at each of the published cut's boundaries.
std::vector<std::vector<Shape>> all_boundary_shapes(const Model& model);
std::vector<std::vector<Shape>> cut_shapes(const Model& model, int stages);
/// Of each stage of the published cut into that many: parameters, batch norms, and the shape that
/// leaves it (but the last), without the batch. Fails the test if the cut does not cover the model.
std::vector<std::int64_t> stage_parameters(const Model& model, int stages);
std::vector<std::int64_t> stage_norms(const Model& model, int stages);
std::vector<Shape> stage_shapes(const Model& model, int stages);
std::vector<std::size_t> boundary_sizes(const Model& model);  ///< tensors after every layer
/// What the head after that layer gives for a batch of two, without the batch.
Shape head_shape(const Model& model, std::size_t last_layer);
/// As boundary_shapes(), of all tensors.
std::vector<std::vector<Shape>> all_boundary_shapes(const Model& model);

}  // namespace pipewright::test
