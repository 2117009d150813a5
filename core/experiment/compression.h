/// `pipeline.compression`, which codec compresses what crosses which edge, and
/// `pipeline.gradient_compression`, of what replicas sum.
#pragma once

#include "core/codecs/edge_ends.h"
#include "core/codecs/gradient_exchange.h"
#include "core/config/options.h"

namespace pipewright {

/// The section of `pipeline`, whose number of stages is known. Problems are reported to it.
Compression read_compression(Options& pipeline, int stages);
GradientCompression read_gradient_compression(Options& pipeline);

}  // namespace pipewright
