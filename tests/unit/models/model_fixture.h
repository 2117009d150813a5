/// What the tests of models share: a model made from YAML, its counts, and its shapes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/stage/model.h"

namespace pipewright::test {

using Shape = std::vector<std::int64_t>;

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

/// Shapes after every layer, of the first tensor there, for a batch of two, without the batch; on
/// the meta device.
std::vector<Shape> boundary_shapes(const Model& model);
/// Parameters of each stage of the published cut; fails the test if that does not cover the model.
std::vector<std::int64_t> stage_counts(const Model& model, int stages);
/// As boundary_shapes(), of all tensors at each of the published cut's boundaries.
std::vector<std::vector<Shape>> cut_shapes(const Model& model, int stages);
/// What the head after that layer gives for a batch of two, without the batch.
Shape head_shape(const Model& model, std::size_t last_layer);
/// As boundary_shapes(), of all tensors.
std::vector<std::vector<Shape>> all_boundary_shapes(const Model& model);

}  // namespace pipewright::test
