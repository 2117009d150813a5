// SPDX-License-Identifier: Apache-2.0
// A graph is verified on the meta device before the processor computes it. For every operator that
// a graph may call and many small arguments: what the meta device makes, the processor makes in
// the same sizes and types, or it throws; no arguments end the program.
#include "models/graph/graph_operators.h"

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/tensors/torch.h"

namespace pipewright {
namespace {

using Numbers = std::vector<std::int64_t>;

/// Draws arguments, for both devices alike. One of two tensors is like the one before it, so that
/// operators find what fits together.
class Drawer {
 public:
  explicit Drawer(std::uint64_t seed) : bits_(seed) {}

  /// The arguments of a call, or nothing where the operator has one that graphs cannot give.
  std::optional<c10::Stack> arguments(const c10::OperatorHandle& op) {
    c10::Stack stack;
    for (const c10::Argument& argument : op.schema().arguments()) {
      std::optional<c10::IValue> value = of(*argument.type(), argument);
      if (!value) return {};
      stack.push_back(*std::move(value));
    }
    return stack;
  }

 private:
  template <typename T>
  T one_of(const std::vector<T>& values) {
    return values[bits_() % values.size()];
  }

  at::Tensor tensor() {
    if (bits_() % 2 == 0) {
      sizes_ = one_of<Numbers>(
          {{2, 2}, {2}, {2, 2, 2}, {}, {2, 2, 2, 2}, {4, 4}, {1, 2, 4, 4, 4}, {1, 4, 4}});
    }
    if (bits_() % 2 == 0)
      type_ = one_of<at::ScalarType>({at::kFloat, at::kFloat, at::kDouble, at::kLong, at::kBool});
    const auto value = one_of<std::int64_t>({1, 1, 1, 0, -1, 100});
    return at::full(sizes_, value, at::TensorOptions(type_));
  }

  Numbers numbers() {
    Numbers made(bits_() % 5);
    for (std::int64_t& each : made) each = one_of<std::int64_t>({1, 1, 2, 0, -1});
    return made;
  }

  std::optional<c10::IValue> of(const c10::Type& type, const c10::Argument& argument) {
    if (argument.name() == "device") return c10::IValue();
    if (argument.name() == "layout" || argument.name() == "pin_memory" ||
        argument.name() == "memory_format")
      return c10::IValue();
    if (argument.name() == "dtype") return one_of<c10::IValue>({{}, at::kFloat, at::kLong});
    if (argument.default_value() && bits_() % 4 != 0) return argument.default_value();
    using Kind = c10::TypeKind;
    switch (type.kind()) {
      case Kind::OptionalType:
        if (bits_() % 2 == 0) return c10::IValue();
        return of(*type.castRaw<c10::OptionalType>()->getElementType(), argument);
      case Kind::TensorType: return tensor();
      case Kind::BoolType: return bits_() % 2 == 0;
      case Kind::FloatType: return one_of<double>({0, 0.5, 1, 2});
      case Kind::NumberType:
      case Kind::IntType:
      case Kind::SymIntType: return one_of<std::int64_t>({1, 0, 2, -1, 4});
      case Kind::StringType:
        return one_of<std::string>({"sum", "mean", "none", "zeros", "reflect", "linear", "fro",
                                    "floor", "L", "ij,jk->ik"});
      case Kind::ListType: return list(*type.castRaw<c10::ListType>()->getElementType());
      default: return {};
    }
  }

  std::optional<c10::IValue> list(const c10::Type& element) {
    using Kind = c10::TypeKind;
    switch (element.kind()) {
      case Kind::TensorType: return std::vector<at::Tensor>{tensor(), tensor()};
      case Kind::OptionalType: {  // of tensors, as an index has them
        c10::List<std::optional<at::Tensor>> places;
        places.push_back(tensor());
        if (bits_() % 2 == 0) places.push_back(std::nullopt);
        return places;
      }
      case Kind::IntType:
      case Kind::SymIntType: return numbers();
      case Kind::FloatType: return std::vector<double>(bits_() % 4, 1.0);
      case Kind::BoolType: return std::vector<bool>(bits_() % 4, true);
      default: return {};
    }
  }

  std::mt19937_64 bits_;
  Numbers sizes_{2, 2};
  at::ScalarType type_ = at::kFloat;
};

c10::IValue on_meta(const c10::IValue& value) {
  if (value.isTensor()) return value.toTensor().to(at::kMeta);
  if (value.isTensorList()) {
    std::vector<at::Tensor> moved;
    for (const at::Tensor& each : value.toTensorVector()) moved.push_back(each.to(at::kMeta));
    return moved;
  }
  if (value.isList() && !value.isIntList() && !value.isDoubleList() && !value.isBoolList()) {
    c10::List<std::optional<at::Tensor>> moved;
    for (const c10::IValue& each : value.toListRef())
      moved.push_back(each.isNone() ? std::nullopt : std::optional(each.toTensor().to(at::kMeta)));
    return moved;
  }
  return value;
}

/// The arguments without their memory.
c10::Stack on_meta(const c10::OperatorHandle& op, const c10::Stack& given) {
  c10::Stack moved;
  for (std::size_t i = 0; i < given.size(); ++i)
    moved.push_back(op.schema().arguments()[i].name() == "device"
                        ? c10::IValue(at::Device(at::kMeta))
                        : on_meta(given[i]));
  return moved;
}

struct Outcome {
  std::string sizes, types;
};

/// What the operator makes, or nothing where it refuses its arguments.
std::optional<Outcome> outcome(const c10::OperatorHandle& op, c10::Stack stack) {
  try {
    op.callBoxed(&stack);
  } catch (const std::exception&) {
    return {};
  }
  std::ostringstream sizes, types;
  const auto note = [&](const at::Tensor& made) {
    sizes << made.sizes() << ' ';
    types << (made.is_floating_point() ? "floats" : at::toString(made.scalar_type())) << ' ';
  };
  for (const c10::IValue& each : stack)
    if (each.isTensor())
      note(each.toTensor());
    else if (each.isTensorList())
      for (const at::Tensor& item : each.toTensorVector()) note(item);
  return Outcome{sizes.str(), types.str()};
}

/// Whether the operator is a recurrent layer, whose shapes are compared before it is called
/// (graph_recurrent.h), since it trusts them.
bool is_compared_before(const c10::OperatorHandle& op) {
  return std::ranges::any_of(op.schema().arguments(),
                             [](const c10::Argument& each) { return each.name() == "hx"; });
}

/// LibTorch's meta device is wrong about the types that these make of numbers that are not floats.
/// Such a graph is refused when it is verified, or when the processor's result is stored.
bool is_wrong_about_types(const std::string& name) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"aten::prod", "aten::angle", "aten::logit", "aten::special_logit"});
  return std::ranges::count(kNames, name) > 0;
}

/// Compares many calls of an operator. Returns how many both devices have made something of.
std::size_t compare(const c10::OperatorHandle& op, std::uint64_t seed, std::size_t calls) {
  Drawer drawer(seed);
  std::size_t compared = 0;
  for (std::size_t i = 0; i < calls; ++i) {
    const std::optional<c10::Stack> given = drawer.arguments(op);
    if (!given) break;
    const std::optional<Outcome> promised = outcome(op, on_meta(op, *given));
    const std::optional<Outcome> made = promised ? outcome(op, *given) : std::nullopt;
    if (!made) continue;
    ++compared;
    EXPECT_EQ(promised->sizes, made->sizes);
    if (!is_wrong_about_types(op.schema().name())) {
      EXPECT_EQ(promised->types, made->types);
    }
    if (testing::Test::HasFailure()) break;
  }
  return compared;
}

TEST(GraphOperators, MakeOnTheMetaDeviceWhatTheProcessorMakes) {
  const at::NoGradGuard no_grad;
  std::size_t admitted = 0, compared = 0;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    if (!op || !reason_against(*op).empty() || is_compared_before(*op)) continue;
    SCOPED_TRACE(name.name + "." + name.overload_name);
    ++admitted;
    if (compare(*op, 1, 300) > 0) ++compared;
  }
  // The others have no meta kernel for small tensors, or need arguments that are drawn too rarely.
  EXPECT_GT(compared, 0.8 * static_cast<double>(admitted)) << compared << " of " << admitted;
}

}  // namespace
}  // namespace pipewright
