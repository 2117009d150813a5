// SPDX-License-Identifier: Apache-2.0
/// Costs of an experiment's codecs, for simulation: bytes and times of compressed messages and of
/// compressed gradient sums.
#pragma once

#include <string>
#include <vector>

#include "core/cost/cost.h"
#include "core/experiment/experiment.h"
#include "core/simulation/hardware.h"

namespace pipewright {

/// Whose messages are encoded: those of the model, or messages of the costs' output_bytes and
/// input_bytes, where these are not 0, of which a codec saves the same share.
enum class MessageSizes { OfModel, OfCosts };

/// Sets the encoded bytes of messages in the costs of the stages at both ends, and adds the time of
/// encoding and decoding to their passes if the hardware file has it. Does the same for reductions
/// with PowerSGD's factors. Codecs whose bytes depend on the values count as uncompressed;
/// auxiliary heads have no costs. Returns the names of codecs whose time is unknown. Allocates no
/// tensors.
std::vector<std::string> account_for_codecs(std::vector<StageCost>& costs,
                                            const Experiment& experiment, const Hardware& hardware,
                                            MessageSizes sizes = MessageSizes::OfModel);

}  // namespace pipewright
