// SPDX-License-Identifier: Apache-2.0
/// Reads `pipeline.compression`, the codecs of the edges between stages, and
/// `pipeline.gradient_compression`, the compression of the gradients that replicas sum.
#pragma once

#include "core/codecs/edge_ends.h"
#include "core/codecs/gradient_exchange.h"
#include "core/config/options.h"

namespace pipewright {

/// Both read a section of `pipeline`, which has so many stages, and report problems to it.
Compression read_compression(Options& pipeline, int stages);
GradientCompression read_gradient_compression(Options& pipeline);

}  // namespace pipewright
