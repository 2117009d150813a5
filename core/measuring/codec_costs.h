// SPDX-License-Identifier: Apache-2.0
/// Costs of an experiment's codecs, for simulation: bytes and times of compressed messages and of
/// compressed gradient sums.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/codecs/frame.h"
#include "core/cost/cost.h"
#include "core/experiment/experiment.h"
#include "core/simulation/hardware.h"

namespace pipewright {

/// Whose messages are encoded: those of the model, or messages of the costs' output_bytes and
/// input_bytes, where these are not 0, and gradients of their parameter_bytes, of which a codec
/// saves the same share.
enum class MessageSizes { OfModel, OfCosts };

/// The message that crosses an edge for one micro-batch.
struct EdgeMessage {
  double values = 0;                 ///< bytes of tensors that codecs encode, of one slice
  std::int64_t exact = 0;            ///< bytes of tensors that cross as they are
  std::vector<FrameHeader> headers;  ///< one per encoded tensor
};

/// The messages of all edges; empty where no codec encodes any and the model reads no integers.
/// They depend on the cut, not on the hardware. Allocates no tensors.
std::vector<EdgeMessage> edge_messages(const Experiment& experiment);

/// Sets the bytes of a gradient's message where integers cross forwards beside the values, and the
/// encoded bytes of messages in the costs of the stages at both ends, and adds the time of
/// encoding and decoding to their passes if the hardware file has it. Does the same for reductions
/// with PowerSGD's factors. Codecs whose bytes depend on the values count as uncompressed.
/// Returns the names of codecs whose time is unknown. Allocates no tensors. `messages` are
/// edge_messages() of the experiment.
std::vector<std::string> account_for_codecs(std::vector<StageCost>& costs,
                                            const Experiment& experiment,
                                            const std::vector<EdgeMessage>& messages,
                                            const Hardware& hardware,
                                            MessageSizes sizes = MessageSizes::OfModel);

}  // namespace pipewright
