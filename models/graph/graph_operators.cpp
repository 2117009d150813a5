// SPDX-License-Identifier: Apache-2.0
#include "models/graph/graph_operators.h"

#include <set>
#include <string_view>

namespace pipewright {
namespace {

const std::set<std::string_view>& operator_names() {
  static const std::set<std::string_view> names{
      // elementwise
      "abs", "add", "add_", "clamp", "clamp_", "clamp_min", "clamp_max", "cos", "div", "div_",
      "elu", "elu_", "erf", "exp", "gelu", "hardsigmoid", "hardsigmoid_", "hardswish", "hardswish_",
      "hardtanh", "hardtanh_", "leaky_relu", "leaky_relu_", "log", "mish", "mish_", "mul", "mul_",
      "neg", "pow", "prelu", "reciprocal", "relu", "relu_", "relu6", "relu6_", "rsqrt", "rsub",
      "selu", "selu_", "sigmoid", "sigmoid_", "silu", "silu_", "sin", "softplus", "sqrt", "sub",
      "sub_", "tanh", "tanh_",
      // comparisons and masks
      "bitwise_and", "bitwise_not", "bitwise_or", "eq", "ge", "gt", "le", "logical_and",
      "logical_not", "logical_or", "lt", "masked_fill", "masked_fill_", "ne", "tril", "triu",
      "where",
      // products
      "addmm", "baddbmm", "bmm", "conv1d", "conv2d", "conv3d", "conv_transpose1d",
      "conv_transpose2d", "einsum", "linear", "matmul", "mm", "scaled_dot_product_attention",
      // norms, sums, softmax
      "amax", "amin", "argmax", "batch_norm", "cumsum", "group_norm", "layer_norm",
      "linalg_vector_norm", "log_softmax", "logsumexp", "max", "mean", "min", "rms_norm", "softmax",
      "std", "sum", "var",
      // pools
      "adaptive_avg_pool1d", "adaptive_avg_pool2d", "avg_pool1d", "avg_pool2d", "max_pool1d",
      "max_pool2d", "adaptive_max_pool2d", "upsample_nearest2d", "upsample_bilinear2d",
      // shapes
      "alias", "cat", "chunk", "clone", "constant_pad_nd", "contiguous", "detach", "detach_",
      "expand", "expand_as", "fill_", "copy_", "flatten", "flip", "gather", "index_select",
      "lift_fresh_copy", "narrow", "pad", "permute", "pixel_shuffle", "repeat", "repeat_interleave",
      "reshape", "roll", "select", "slice", "split", "split_with_sizes", "squeeze", "stack", "t",
      "transpose", "unbind", "unflatten", "unsqueeze", "view", "view_as",
      // new tensors and types
      "arange", "full", "full_like", "new_full", "new_ones", "new_zeros", "ones", "ones_like", "to",
      "type_as", "zeros", "zeros_like",
      // recurrent layers and tables
      "embedding", "gru", "lstm", "index",
      // dropouts, computed here
      "dropout", "dropout_", "feature_dropout"};
  return names;
}

}  // namespace

bool is_allowed_operator(const std::string& name) {
  constexpr std::string_view prefix = "aten::";
  return name.starts_with(prefix) &&
         operator_names().contains(std::string_view(name).substr(prefix.size()));
}

bool grows_by_numbers(const std::string& name) {
  static const std::set<std::string_view> names{"aten::arange",
                                                "aten::constant_pad_nd",
                                                "aten::full",
                                                "aten::new_full",
                                                "aten::new_ones",
                                                "aten::new_zeros",
                                                "aten::ones",
                                                "aten::pad",
                                                "aten::repeat",
                                                "aten::zeros",
                                                "aten::upsample_nearest2d",
                                                "aten::upsample_bilinear2d"};
  return names.contains(name);
}

bool is_dropout(const std::string& name) {
  return name == "aten::dropout" || name == "aten::dropout_" || name == "aten::feature_dropout";
}

}  // namespace pipewright
