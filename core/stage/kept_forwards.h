// SPDX-License-Identifier: Apache-2.0
/// State that the forwards of a stage keep for their backwards, and these backwards, whole or in
/// halves.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/nn/layer.h"
#include "core/stage/gradient_sums.h"
#include "core/stage/split_backward.h"

namespace pipewright {

/// Whether a forward keeps its graph, or its inputs only.
enum class Keep : std::uint8_t { Graph, Inputs };

/// The gradients that a backward starts from, and the ones that it computes. The outputs of a stage
/// are
///   [neighbour … | bypass … | behind …]
/// where the skip tensors in the middle go to stages that are not the neighbour. `gradients` has
/// one tensor for each floating-point output of the two outer runs, in that order, and `bypass` one
/// for each output of the middle run. An undefined tensor means that there is no gradient.
struct BackwardRequest {
  bool own_loss = false;        ///< starts from this stage's loss, not from `gradients`
  Tensors gradients;            ///< of the outputs outside the `bypass` run
  Tensors bypass;               ///< of the outputs in the `bypass` run
  std::size_t behind = 0;       ///< number of outputs behind the `bypass` run
  double factor = 1;            ///< of the model's own loss, on the last stage
  bool learn = true;            ///< add the weights' gradient
  double scale = 1;             ///< factor of the weights' gradient
  bool input_gradient = false;  ///< return the inputs' gradient
  bool last = true;             ///< no further backward of the forward: free its graph
  /// Replaces `learn`: keeps what the backward_weight() of this loss needs.
  std::optional<int> half_of = {};
};

/// The weights' part of a backward that was split.
struct KeptHalf {
  int loss = 0;
  double loss_scale = 1;  ///< of its gradients
  WeightHalf weights;
};

struct KeptForward {
  int id = -1;              ///< −1: a free entry
  Keep keep = Keep::Graph;  ///< Inputs until it is recomputed
  bool input_gradient = false;
  Tensors inputs, outputs;
  at::Tensor loss;  ///< on the last stage
  at::Tensor head_gradient;
  double head_scale = 1;         ///< the loss scale of head_gradient
  std::vector<KeptHalf> halves;  ///< still to run
  /// Shared by the slices of a micro-batch; null without slices.
  std::shared_ptr<EarlierSlices> earlier;
  bool walked = false;  ///< no further backward() follows
};

/// The roots of a backward: the loss, or the outputs that have a gradient.
struct BackwardRoots {
  std::vector<at::Tensor> outputs, gradients;
};

/// Used by the thread of its stage.
class KeptForwards {
 public:
  /// `leaves`: the stage's parameters without the head's, to whose `gradients` backwards add.
  /// `last`: it is the model's last stage. What the arguments refer to must outlive it.
  KeptForwards(int stage, bool last, bool channels_last, std::span<const at::Tensor> leaves,
               WeightGradients& gradients);

  /// References are valid until the next add().
  KeptForward& add(KeptForward forward);
  /// Throws Error{Bug} if none is kept under that id.
  KeptForward& forward(int id);

  /// Gives all kept forwards the numbers that many later.
  void move_on(int numbers);

  /// Stage::backward() and Stage::backward_weight().
  Tensors backward(int id, BackwardRequest request);
  void backward_weight(int id, int loss, double scale);
  /// The roots of a backward of that forward; it may move gradients out of the request.
  BackwardRoots roots_of(const KeptForward& slot, BackwardRequest& request) const;
  /// A tensor from another stage: codecs decode to contiguous tensors.
  at::Tensor arrived(const at::Tensor& value) const;

 private:
  std::vector<at::Tensor> differentiate(KeptForward& slot, const BackwardRoots& roots,
                                        const BackwardRequest& request);
  Tensors of_inputs(const KeptForward& slot, const std::vector<at::Tensor>& results) const;
  void finish_walk(KeptForward& slot);

  int stage_;
  bool last_, channels_last_;
  std::span<const at::Tensor> leaves_;
  WeightGradients& gradients_;
  std::vector<KeptForward> slots_;
};

}  // namespace pipewright
