// SPDX-License-Identifier: Apache-2.0
/// The layout of a model's layers on stages as Megatron-Core writes it in
/// `pipeline_model_parallel_layout` (NVIDIA, Megatron-Core 0.13,
/// megatron/core/transformer/pipeline_parallel_layer_layout.py): "Et*2|t*3|t*3L".
///
///   E  the embedding: here all layers before the blocks     t  a transformer block
///   L  the loss head: all layers behind the blocks          |  ends a stage
///   x*n  the letter or | before it n times                  (…)*n  a group n times; groups are
///   commas and spaces: ignored                              not nested
///
/// Stages are in the order of the layers. The multi-token prediction m is refused, and so are
/// stages without layers, which Megatron-Core can have.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/nn/layer.h"

namespace pipewright {

/// Whether a text is meant as such a layout, rather than as the name of a rule.
bool looks_like_layout(std::string_view text);

/// Returns the letters of each stage, repetitions written out. Throws Error{Experiment} with a
/// message that continues "the layout …" and names the character, counted from 1, at which the text
/// is wrong. A text that stands for more letters than any model has layers takes no memory.
std::vector<std::string> parse_stage_layout(std::string_view text);

/// Layers per stage. The blocks are those layers whose names differ in their number only (h.0,
/// h.1, …). Throws Error{Experiment} if the model has none or another number of them, or a stage
/// gets no layer.
std::vector<std::int64_t> balance_of_layout(const std::vector<std::string>& stages,
                                            const std::vector<LayerPtr>& layers);

/// The layout of a balance, short: "Et|(t*2|)*3t*2L". "" if the model has no blocks, or the layers
/// before or behind them are not on one stage.
std::string layout_of_balance(const std::vector<std::int64_t>& balance,
                              const std::vector<LayerPtr>& layers);

}  // namespace pipewright
