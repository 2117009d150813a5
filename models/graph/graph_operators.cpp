// SPDX-License-Identifier: Apache-2.0
#include "models/graph/graph_operators.h"

#include <set>
#include <string_view>

namespace pipewright {
namespace {

const std::set<std::string_view>& operator_names() {
  static const std::set<std::string_view> names{
#include "models/graph/operators.inc"
  };
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
