// SPDX-License-Identifier: Apache-2.0
/// The operators that a graph may call. A graph is somebody's file, so what it may reach is a list:
/// no operator here draws random numbers (dropout draws from our streams), opens a file, or waits.
#pragma once

#include <string>

namespace pipewright {

/// Attention, which may drop, too.
inline constexpr const char* kAttentionOperator = "aten::scaled_dot_product_attention";

/// Batch norm, which is computed as our own layer computes it.
inline constexpr const char* kBatchNormOperator = "aten::batch_norm";

/// Whether "aten::conv2d" may be called.
bool is_allowed_operator(const std::string& name);
/// Whether it is one of the dropouts that we compute ourselves.
bool is_dropout(const std::string& name);

}  // namespace pipewright
