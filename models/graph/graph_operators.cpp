// SPDX-License-Identifier: Apache-2.0
#include "models/graph/graph_operators.h"

#include <ATen/core/enum_tag.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "core/base/text.h"
#include "core/nn/meta/meta_kernels.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

struct Exception {
  enum class Kind : std::uint8_t { Text, Admitted, Refused, Sharing } kind;
  std::string_view name, reason;
};

#define TEXT(name) Exception{Exception::Kind::Text, name, ""},
#define SHARING(name) Exception{Exception::Kind::Sharing, name, ""},
#define ADMITTED(name, reason) Exception{Exception::Kind::Admitted, name, reason},
#define REFUSED(name, reason) Exception{Exception::Kind::Refused, name, reason},
constexpr auto kExceptions = std::to_array<Exception>({
#include "models/graph/operators.inc"
});
#undef TEXT
#undef SHARING
#undef ADMITTED
#undef REFUSED

constexpr std::string_view kPrefix = "aten::";

/// Whether an exception is meant for the operator: "conv2d", "index.Tensor" or "empty*".
bool is_meant(std::string_view exception, std::string_view name, std::string_view overload) {
  if (exception.ends_with('*')) return name.starts_with(exception.substr(0, exception.size() - 1));
  const std::size_t dot = exception.find('.');
  return exception.substr(0, dot) == name &&
         (dot == std::string_view::npos || exception.substr(dot + 1) == overload);
}

const Exception* exception_of(Exception::Kind kind, const c10::OperatorHandle& op) {
  const std::string_view name = std::string_view(op.operator_name().name).substr(kPrefix.size());
  const auto found = std::ranges::find_if(kExceptions, [&](const Exception& each) {
    return each.kind == kind && is_meant(each.name, name, op.operator_name().overload_name);
  });
  return found == kExceptions.end() ? nullptr : &*found;
}

const c10::Type& inner(const c10::Type& type) {
  if (type.kind() == c10::TypeKind::OptionalType)
    return inner(*type.castRaw<c10::OptionalType>()->getElementType());
  if (type.kind() == c10::TypeKind::ListType)
    return inner(*type.castRaw<c10::ListType>()->getElementType());
  return type;
}

bool is_known(const c10::Argument& argument) {
  switch (inner(*argument.type()).kind()) {
    case c10::TypeKind::TensorType:
    case c10::TypeKind::NumberType:
    case c10::TypeKind::FloatType:
    case c10::TypeKind::IntType:
    case c10::TypeKind::BoolType:
    case c10::TypeKind::GeneratorType: return true;
    case c10::TypeKind::DeviceObjType: return argument.name() == "device";  // the stage's
    case c10::TypeKind::StringType:
      return std::ranges::any_of(kExceptions, [&](const Exception& each) {
        return each.kind == Exception::Kind::Text && each.name == argument.name();
      });
    default: return false;
  }
}

/// Whether the operator changes nothing, or its first argument alone as add_ does beside add.
bool writes_as_known(const c10::OperatorHandle& op) {
  const auto& arguments = op.schema().arguments();
  const auto writes = [](const c10::Argument& argument) {
    return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
  };
  if (std::ranges::none_of(arguments, writes)) return true;
  const auto& [name, overload] = op.operator_name();
  return name.ends_with('_') && writes(arguments[0]) &&
         std::ranges::count_if(arguments, writes) == 1 &&
         c10::Dispatcher::singleton().findSchema({name.substr(0, name.size() - 1), overload});
}

/// Why the tags of an operator without an exception are against it.
std::string reason_of_tags(const c10::OperatorHandle& op) {
  const auto generates = [](const c10::Argument& argument) {
    return inner(*argument.type()).kind() == c10::TypeKind::GeneratorType;
  };
  if (op.hasTag(at::Tag::nondeterministic_seeded) ||
      std::ranges::any_of(op.schema().arguments(), generates))
    return "draws random numbers";
  if (op.hasTag(at::Tag::inplace_view)) return "changes the sizes of a tensor that others read";
  if (op.hasTag(at::Tag::data_dependent_output) || op.hasTag(at::Tag::dynamic_output_shape))
    return "makes results whose sizes depend on data";
  return "";
}

}  // namespace

std::string reason_against(const c10::OperatorHandle& op) {
  const std::string& name = op.operator_name().name;
  if (!name.starts_with(kPrefix)) return "is no operator of ATen";
  if (name[kPrefix.size()] == '_') return "is a part of operators that check shapes for it";
  if (name.find("backward") != std::string::npos) return "is a part of a backward";
  if (const Exception* refused = exception_of(Exception::Kind::Refused, op))
    return std::string(refused->reason);
  for (const c10::Argument& argument : op.schema().arguments())
    if (!is_known(argument)) return concat("has an argument '", argument.name(), "'");
  const auto& returns = op.schema().returns();
  if (returns.empty() || std::ranges::any_of(returns, [](const c10::Argument& each) {
        return inner(*each.type()).kind() != c10::TypeKind::TensorType;
      }))
    return "returns no tensors";
  if (!writes_as_known(op)) return "writes into what it is given";
  const bool admitted = exception_of(Exception::Kind::Admitted, op) != nullptr;
  if (const std::string reason = reason_of_tags(op); !admitted && !reason.empty()) return reason;
  fill_meta_kernels();
  if (!op.hasComputedKernelForDispatchKey(c10::DispatchKey::Meta))
    return "does not say the sizes of its results without computing them";
  return "";
}

bool shares_silently(const c10::OperatorHandle& op) {
  return exception_of(Exception::Kind::Sharing, op) != nullptr;
}

bool is_dropout(const std::string& name) {
  return name == "aten::dropout" || name == "aten::dropout_" || name == "aten::feature_dropout";
}

}  // namespace pipewright
