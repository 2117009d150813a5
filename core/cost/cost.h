// SPDX-License-Identifier: Apache-2.0
/// The costs of each action of a stage in seconds and bytes, from a profile and a cut, or from a
/// table.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/cost/profile.h"
#include "core/schedule/schedule.h"

namespace pipewright {

/// The memory of a stage's auxiliary head.
struct HeadMemory {
  std::int64_t parameter_bytes = 0;  ///< its part of StageCost::parameter_bytes
  std::int64_t copy_bytes = 0;       ///< its part of StageCost::copy_bytes
  /// The gradient of the stage's output, kept from the head's pass to the last backward of the
  /// micro-batch where a backward starts from it.
  std::int64_t kept_bytes = 0;
  /// Peak bytes of its pass beyond what is kept and its weights' gradients.
  std::int64_t peak_bytes = 0;
  std::int64_t peak_adding_bytes = 0;  ///< such a peak of a pass that adds to existing gradients

  std::int64_t gradient_bytes() const { return parameter_bytes - copy_bytes; }
};

/// The costs of one stage. Those of passes are for one micro-batch.
struct StageCost {
  double forward = 0;          ///< s, also of a recomputation unless `recompute` says otherwise
  double backward = 0;         ///< s
  double backward_input = 0;   ///< s, of the input-only half
  double backward_weight = 0;  ///< s, of the weight-only half
  /// The part of `backward` and of `backward_input` that only the gradient takes which is sent to
  /// the stage before: a backward that sends none, as one before which nobody learns, takes that
  /// much less. The first stage's times leave it out already.
  double backward_sent = 0, backward_input_sent = 0;
  std::optional<double> recompute;  ///< s of a recomputation, where it was measured by itself
  double head = 0;                  ///< s, forward, loss and backward of the auxiliary head
  double update = 0;                ///< s of the optimizer, once per mini-batch, in place
  double new_version = 0;  ///< s more of an update that keeps the old version beside the new one
  double prediction = 0;   ///< s to predict the stage's weights once
  /// Seconds more of an update directly before a pass that predicts from it: the update makes that
  /// prediction, too. None: the pass makes it, as any other.
  std::optional<double> fused_prediction;
  /// Seconds of codecs per forward and per backward: decoding what arrives and encoding what
  /// leaves.
  double coding_forward = 0, coding_backward = 0;
  double coding_reduce = 0;  ///< s of codecs per reduction of the replicas' gradients
  /// Seconds of a fused pair (is_fused_pair()) whose forward is this stage's, both passes together
  /// and without codecs. None: they follow from the times of the two passes and Hardware::overlap.
  std::optional<double> fused_pair;
  /// Bytes that arrive. A forward that will be recomputed keeps only these.
  std::int64_t input_bytes = 0;
  std::int64_t output_bytes = 0;  ///< bytes sent to the next stage; their gradient is as large
  /// Where a codec encodes messages, or integers cross beside the values, which have no gradient:
  /// the bytes that cross links for the output, and for the input's gradient.
  std::optional<std::int64_t> sent_bytes, sent_gradient_bytes;
  /// With compression: the bytes that replicas sum instead of gradients, in two sums
  /// (core/codecs/gradient_exchange.h).
  std::optional<std::array<std::int64_t, 2>> reduced_bytes;
  std::int64_t activation_bytes = 0;  ///< bytes kept from forward to backward, without the input
  /// Bytes kept besides from the input half of a backward to its weights' half: the gradients that
  /// reach operations with parameters.
  std::int64_t half_bytes = 0;
  /// Peak bytes of a pass beyond what is kept, an arriving gradient included.
  std::int64_t peak_bytes = 0;
  /// Such a peak of a backward that adds to existing gradients.
  std::int64_t peak_adding_bytes = 0;
  /// Bytes by which the peak of a backward that creates the gradients stays below activations +
  /// gradients + peak_bytes, because it frees activations as it goes.
  std::int64_t freed_bytes = 0;
  std::int64_t peak_bare_bytes = 0;  ///< such a peak of a forward that keeps its input only
  /// One version of the weights, an auxiliary head's included, without its narrow copies; sums of
  /// gradients are as large.
  std::int64_t parameter_bytes = 0;
  std::int64_t copy_bytes = 0;  ///< one version's narrow copies
  std::int64_t buffer_bytes = 0;
  HeadMemory head_memory;  ///< all 0 without an auxiliary head

  /// One version of the weights with its copies.
  std::int64_t version_bytes() const { return parameter_bytes + copy_bytes; }
  /// The gradients that one backward makes, which are the layers': in mixed precision as large as
  /// the copies, where there is one, which is half of the parameter.
  std::int64_t gradient_bytes() const {
    return parameter_bytes - copy_bytes - head_memory.gradient_bytes();
  }
  /// Sums of several of them.
  std::int64_t gradient_sum_bytes() const { return parameter_bytes - head_memory.parameter_bytes; }
};

/// The costs of passes of one of `slices` equal slices of a micro-batch: what is proportional to
/// the tokens is divided by their number, bytes rounded up. So is attention, of which later slices
/// in fact have more than earlier ones.
StageCost cost_of_slice(StageCost cost, int slices);

/// Seconds that a worker computes for an action of that kind. For a Reduce these are the codecs'
/// only; the sums take time on links. A host copy takes none of it.
double seconds_of(const StageCost& cost, ActionKind kind);

/// Adds a layer to the end of the stage. Peaks do not simply add up: at the peak of a layer's
/// forward the layers after it have kept nothing yet, and in its backward they hold nothing any
/// longer.
void add_layer(StageCost& stage, const LayerCost& layer);

/// The auxiliary heads of a schedule.
struct AuxiliaryHeads {
  std::vector<int> stages;        ///< those with a head, ascending
  std::vector<LayerCost> behind;  ///< [layer]: the head that a stage which ends there would have
};

/// Adds the auxiliary head to a stage whose layers have all been added. Its activation_bytes are
/// the gradient of the stage's output.
void add_head(StageCost& stage, const LayerCost& head);

/// The seconds of a stage of these layers that only the gradient of its input takes: of its
/// backward, and of its backward's input half. It goes through all layers up to the first with
/// parameters.
struct SentGradient {
  double backward = 0, backward_input = 0;
};
SentGradient sent_gradient(std::span<const LayerCost> layers);

/// The costs of each stage, added up over its layers; the output of the layer before a stage is its
/// input. The first stage's backwards make no gradient of the data. `balance` is the number of
/// layers per stage. Throws Error{Experiment} unless they add up to the profile's.
std::vector<StageCost> stage_costs(const Profile& profile, std::span<const std::int64_t> balance,
                                   const AuxiliaryHeads& heads = {});

}  // namespace pipewright
