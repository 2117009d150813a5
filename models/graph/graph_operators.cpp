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

bool is_dropout(const std::string& name) {
  return name == "aten::dropout" || name == "aten::dropout_" || name == "aten::feature_dropout";
}

}  // namespace pipewright
