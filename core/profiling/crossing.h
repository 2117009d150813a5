/// What an experiment's codecs make of what crosses its edges and of what its replicas sum, for
/// simulation.
#pragma once

#include <string>
#include <vector>

#include "core/cost/cost.h"
#include "core/experiment/experiment.h"
#include "core/simulation/hardware.h"

namespace pipewright {

/// Puts the bytes that codecs leave of messages into the costs of the stages at both ends, and adds
/// the time of encoding and decoding to their passes, where the hardware knows it. Codecs whose
/// bytes depend on the values are taken as uncompressed. The same for PowerSGD's factors and
/// reductions, of layers' parameters: auxiliary heads have no costs. Returns the names of codecs
/// whose time is not known, for a remark. No tensor has memory.
std::vector<std::string> compress(std::vector<StageCost>& costs, const Experiment& experiment,
                                  const Hardware& hardware);

}  // namespace pipewright
