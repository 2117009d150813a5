// SPDX-License-Identifier: Apache-2.0
/// A model on tokens with its parameters, run without a stage.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/models/model_fixture.h"

namespace pipewright::test {

/// The model in float64, with random parameters of the size that initialisers give.
class TextModel {
 public:
  TextModel(const std::string& name, const std::string& options, std::uint64_t seed = 1);

  const Model& model() const { return *model_; }
  const std::vector<LayerPtr>& layers() const { return layers_; }
  /// Parameters of each layer; after require_gradients() they are leaves.
  std::vector<std::vector<at::Tensor>>& parameters() { return parameters_; }
  std::vector<at::Tensor> all_parameters() const;
  const at::Tensor& parameter(const std::string& full_name) const { return by_name_.at(full_name); }
  void require_gradients();
  void make_up();  ///< parameters as made_up() gives them

  /// Random tokens from `first` on, int64 [samples, tokens].
  at::Tensor ids(std::int64_t samples, std::int64_t tokens, std::uint64_t seed,
                 std::int64_t first = 0) const;
  /// The outputs of layer `last`, by default those of the last one.
  Tensors run(const at::Tensor& ids, const Pass& pass = {}, std::size_t last = SIZE_MAX) const;
  at::Tensor outputs(const at::Tensor& ids, const Pass& pass = {}) const {
    return run(ids, pass)[0];
  }

 private:
  std::unique_ptr<Model> model_;
  std::vector<LayerPtr> layers_;
  std::vector<std::vector<at::Tensor>> parameters_;
  std::map<std::string, at::Tensor> by_name_;
};

}  // namespace pipewright::test
