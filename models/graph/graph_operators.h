// SPDX-License-Identifier: Apache-2.0
/// Which operators a graph may call. A graph is somebody's file, so what an operator is decides:
/// one of ATen that makes tensors of tensors and numbers, or changes its first argument in the form
/// that another of its name has without the change; that draws no random numbers but from our
/// streams, reaches no file, device or memory of others; and whose results have sizes that the
/// meta device tells. operators.inc lists the exceptions, each with its reason.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <string>

namespace pipewright {

/// Attention, which may drop, too.
inline constexpr const char* kAttentionOperator = "aten::scaled_dot_product_attention";

/// Batch norm, which is computed as our own layer computes it.
inline constexpr const char* kBatchNormOperator = "aten::batch_norm";

/// Why a graph may not call the operator ("draws random numbers"), or "" if it may.
std::string reason_against(const c10::OperatorHandle& op);

/// Whether results may lie in the memory of any argument, although the schema does not say so.
bool shares_silently(const c10::OperatorHandle& op);

/// Whether it is one of the dropouts that we compute ourselves.
bool is_dropout(const std::string& name);

}  // namespace pipewright
