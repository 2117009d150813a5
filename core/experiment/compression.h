/// `pipeline.compression`: which codec compresses what crosses which edge.
#pragma once

#include "core/codecs/edge_ends.h"
#include "core/config/options.h"

namespace pipewright {

/// The section of `pipeline`, whose number of stages is known. Problems are reported to it.
Compression read_compression(Options& pipeline, int stages);

}  // namespace pipewright
