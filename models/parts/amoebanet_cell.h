/// The cells AmoebaNet-D (Real et al., 2019) is made of, as torchgpipe has them (Kim et al., 2020),
/// so that its numbers can be compared: where the paper's cell has a 3×3 max-pool, torchgpipe's
/// averages, and so does this one.
#pragma once

#include <cstdint>
#include <string>

#include "core/stage/layers.h"

namespace pipewright {

struct AmoebaCellOptions {
  std::int64_t last = 0;         ///< channels of the last output, the cell's first input
  std::int64_t before_last = 0;  ///< channels of the output before it, the second input
  std::int64_t channels = 0;     ///< of every state; a multiple of 4
  bool reduces = false;          ///< makes a map of half the size
  bool after_reduction = false;  ///< the last output is of half the size of the one before it
};

/// From {last output, the one before it}, or a single tensor that is both, to {output, last
/// output}: two tensors cross every boundary between cells.
///   state 0      ReLU, 1×1 convolution, batch norm of the last output
///   state 1      the output before it, brought to that shape
///   state 2 + q  operation 2q of one state + operation 2q + 1 of another
///   output       the states that nothing reads, along the channels; in a normal cell state 0 too
/// Parameters "reduce1.…", "reduce2.…", "operations.<i>.…".
LayerPtr amoeba_cell(const AmoebaCellOptions& options);
/// Channels of its output.
std::int64_t amoeba_cell_channels(const AmoebaCellOptions& options);

/// ReLU, convolution without bias, batch norm; parameters "weight", "bn.weight", "bn.bias".
/// `in_place`: the ReLU, under activate_in_place()'s condition.
LayerPtr relu_convolution_norm(std::int64_t in, std::int64_t out, ConvolutionOptions options,
                               bool in_place = false);

}  // namespace pipewright
