/// What each action of a stage costs, in seconds and bytes: from a profile and a cut, or a table.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/cost/profile.h"
#include "core/schedule/schedule.h"

namespace pipewright {

/// Of one micro-batch where it is about passes.
struct StageCost {
  double forward = 0;  ///< s; so long a recomputation takes, too
  double backward = 0;
  double backward_input = 0;
  double backward_weight = 0;
  double head = 0;    ///< forward, loss and backward of the auxiliary head
  double update = 0;  ///< of the optimizer, once a mini-batch
  /// Of predicting the stage's weights once. It moves weights and velocity in and the prediction
  /// out: 3 of the 5 tensors that an update of SGD with momentum moves (of Adam's, 4 of 7).
  double prediction = 0;
  /// Of codecs: what arrives is decoded and what leaves encoded, in forwards and in backwards.
  double coding_forward = 0, coding_backward = 0;
  double coding_reduce = 0;  ///< the same of gradients that replicas sum, once a reduction
  std::int64_t input_bytes =
      0;  ///< what arrives; kept alone while a forward waits to be recomputed
  std::int64_t output_bytes = 0;  ///< what is sent on; its gradient is as large
  /// What crosses links instead, where codecs compress: the output, and the input's gradient.
  std::optional<std::int64_t> sent_bytes, sent_gradient_bytes;
  /// What replicas sum instead of gradients, in two sums (core/codecs/gradient_exchange.h).
  std::optional<std::array<std::int64_t, 2>> reduced_bytes;
  std::int64_t activation_bytes = 0;  ///< kept between forward and backward, without the input
  /// Most that a pass holds beyond what is kept; a gradient that arrives is in it.
  std::int64_t peak_bytes = 0;
  std::int64_t peak_adding_bytes = 0;  ///< of a backward that adds to gradients that are there
  /// Of all that a backward that makes the gradients comes to hold, what it never holds at once:
  /// it gives back activations as it goes.
  std::int64_t freed_bytes = 0;
  std::int64_t peak_bare_bytes = 0;  ///< of a forward that keeps its input only
  std::int64_t parameter_bytes = 0;  ///< of one version; gradients are as large
  std::int64_t buffer_bytes = 0;
};

/// How long an action of that kind computes. Sums of reductions take no time here: links do.
double seconds_of(const StageCost& cost, ActionKind kind);

/// One more layer at the stage's end. Its bytes are added up as they are held: at the peak of a
/// layer's forward the layers behind it have kept nothing yet, and in its backward no longer.
void add_layer(StageCost& stage, const LayerCost& layer);

/// Of the layers of each stage; what arrives is what the layer before sends on. `balance`: layers
/// per stage, adding up to the profile's.
std::vector<StageCost> stage_costs(const Profile& profile, std::span<const std::int64_t> balance);

}  // namespace pipewright
