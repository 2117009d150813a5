// SPDX-License-Identifier: Apache-2.0
/// The cells of AmoebaNet-D (Real et al., 2019), built as in torchgpipe (Kim et al., 2020) so that
/// results can be compared: where the paper's cell has a 3×3 max-pool, torchgpipe's cell and this
/// one have a 3×3 average pool.
#pragma once

#include <cstdint>
#include <string>

#include "core/nn/layers.h"

namespace pipewright {

struct AmoebaCellOptions {
  std::int64_t last = 0;         ///< channels of the last output, the cell's first input
  std::int64_t before_last = 0;  ///< channels of the output before it, the second input
  std::int64_t channels = 0;     ///< channels of every state; a multiple of 4
  bool reduces = false;          ///< reduction cell: halves the map's size
  /// The previous cell was a reduction cell: the last output has half the size of the one before.
  bool after_reduction = false;
};

/// Makes a cell. It maps {last output, the output before it}, or a single tensor for both, to
/// {output, last output}, so two tensors cross every boundary between cells.
///   state 0      ReLU, 1×1 convolution, batch norm of the last output
///   state 1      the output before it, brought to that shape
///   state 2 + q  operation 2q of one state + operation 2q + 1 of another
///   output       the states that no operation reads (in a normal cell also state 0),
///                concatenated along the channels
/// Parameters are "reduce1.…", "reduce2.…", "operations.<i>.…".
LayerPtr amoeba_cell(const AmoebaCellOptions& options);
/// Channels of the cell's output.
std::int64_t amoeba_cell_channels(const AmoebaCellOptions& options);

/// ReLU, convolution without bias, batch norm; parameters "weight", "bn.weight", "bn.bias".
/// With `in_place` the ReLU overwrites its input, under the condition of activate_in_place().
LayerPtr relu_convolution_norm(std::int64_t in, std::int64_t out, ConvolutionOptions options,
                               bool in_place = false);

}  // namespace pipewright
