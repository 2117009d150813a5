// SPDX-License-Identifier: Apache-2.0
#include "models/graph/graph_matching.h"

#include <ATen/ScalarOps.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <sstream>

#include "core/base/error_at.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

constexpr std::array<std::pair<std::string_view, at::MemoryFormat>, 3> kNamedFormats{{
    {"contiguous_format", at::MemoryFormat::Contiguous},
    {"preserve_format", at::MemoryFormat::Preserve},
    {"channels_last", at::MemoryFormat::ChannelsLast},
}};

class Matching {
 public:
  Matching(const GraphNode& node, const PlaceOf& place) : node_(node), place_(place) {}

  std::vector<MatchedArgument> all(const c10::FunctionSchema& schema) const {
    for (const auto& [name, value] : node_.arguments)
      if (!schema.argumentIndexWithName(name))
        misfit(schema, concat("there is no argument '", name, "'"));
    std::vector<MatchedArgument> found;
    for (const c10::Argument& argument : schema.arguments()) {
      const auto given = std::ranges::find(node_.arguments, argument.name(),
                                           [](const auto& field) { return field.first; });
      const bool placed = argument.name() == "layout" || argument.name() == "pin_memory";
      if (placed && given != node_.arguments.end() && !given->second.is(Kind::Null))
        misfit(schema, concat("the argument '", argument.name(), "' is the stage's"));
      if (argument.name() == "device") {
        found.push_back({.source = MatchedArgument::Source::Device});
      } else if (given == node_.arguments.end()) {
        if (!argument.default_value())
          misfit(schema, concat("the argument '", argument.name(), "' is missing"));
        found.push_back({.constant = *argument.default_value()});
      } else if (auto one = matched(argument, given->second)) {
        found.push_back(std::move(*one));
      } else {
        misfit(schema, concat("the argument '", argument.name(), "' is ", given->second.described(),
                              "; expected ", argument.type()->str()));
      }
    }
    return found;
  }

 private:
  using Kind = Value::Kind;
  using Found = std::optional<MatchedArgument>;

  [[noreturn]] void misfit(const c10::FunctionSchema& schema, const std::string& what) const {
    std::ostringstream ours;
    ours << schema;
    throw data_error(node_.where, what, "; this LibTorch has ", ours.str(), ", the file ",
                     node_.schema);
  }

  Found matched(const c10::Argument& argument, const Value& value) const {
    if ((argument.name() == "training" || argument.name() == "train") && value.is(Kind::Flag))
      return MatchedArgument{.source = MatchedArgument::Source::Switch, .constant = value.flag};
    return of_type(*argument.type(), value);
  }

  Found of_type(const c10::Type& type, const Value& value) const {
    switch (type.kind()) {
      case c10::TypeKind::OptionalType:
        if (value.is(Kind::Null)) return MatchedArgument{};
        return of_type(*type.castRaw<c10::OptionalType>()->getElementType(), value);
      case c10::TypeKind::ListType:
        return list(*type.castRaw<c10::ListType>()->getElementType(), value);
      case c10::TypeKind::TensorType: return tensor(value);
      case c10::TypeKind::NumberType: return number(value);
      case c10::TypeKind::FloatType:
        if (const Found found = number(value);
            found && found->source == MatchedArgument::Source::Constant)
          return MatchedArgument{.constant = found->constant.toScalar().toDouble()};
        return {};
      case c10::TypeKind::IntType: return integer(value);
      case c10::TypeKind::BoolType:
        if (value.is(Kind::Flag)) return MatchedArgument{.constant = value.flag};
        return {};
      case c10::TypeKind::StringType:
        if (value.is(Kind::Text)) return MatchedArgument{.constant = value.text};
        return {};
      default: return {};
    }
  }

  Found tensor(const Value& value) const {
    if (const GraphReference to = reference_of(value); !to.kind.empty())
      return MatchedArgument{.source = MatchedArgument::Source::Frame, .place = place_(to)};
    const Found scalar = number(value);
    if (!scalar || scalar->source != MatchedArgument::Source::Constant) return {};
    // PyTorch gives such a number no say in the type of the result.
    return MatchedArgument{.constant =
                               at::native::wrapped_scalar_tensor(scalar->constant.toScalar())};
  }

  Found number(const Value& value) const {
    if (value.is(Kind::Integer)) return MatchedArgument{.constant = at::Scalar(value.integer)};
    if (value.is(Kind::Number)) return MatchedArgument{.constant = at::Scalar(value.number)};
    if (value.is(Kind::Flag)) return MatchedArgument{.constant = at::Scalar(value.flag)};
    if (const Value* named = only(value, "number"); named != nullptr) {
      constexpr double infinity = std::numeric_limits<double>::infinity();
      if (named->text == "inf") return MatchedArgument{.constant = at::Scalar(infinity)};
      if (named->text == "-inf") return MatchedArgument{.constant = at::Scalar(-infinity)};
      return {};
    }
    return size(value);
  }

  Found integer(const Value& value) const {
    if (value.is(Kind::Integer)) return MatchedArgument{.constant = value.integer};
    if (const Value* type = only(value, "type"); type != nullptr)
      if (const auto which = graph_type(type->text))
        return MatchedArgument{.source = at::isFloatingType(*which)
                                             ? MatchedArgument::Source::Type
                                             : MatchedArgument::Source::Constant,
                               .constant = static_cast<std::int64_t>(*which)};
    if (const Value* format = only(value, "memory_format"); format != nullptr)
      for (const auto& [name, which] : kNamedFormats)
        if (name == format->text)
          return MatchedArgument{.constant = static_cast<std::int64_t>(which)};
    return size(value);
  }

  Found size(const Value& value) const {
    const Value* pair = only(value, "size");
    if (pair == nullptr || pair->items.size() != 2 || !pair->items[0].is(Kind::Integer) ||
        !pair->items[1].is(Kind::Integer))
      return {};
    return MatchedArgument{.source = MatchedArgument::Source::Size,
                           .size = {pair->items[0].integer, pair->items[1].integer}};
  }

  Found list(const c10::Type& element, const Value& value) const {
    const auto fits = [](const Value& each) {  // sums and products of them do not overflow
      constexpr std::int64_t kMost = std::int64_t{1} << 31;
      return !each.is(Kind::Integer) || (each.integer >= -kMost && each.integer <= kMost);
    };
    if (!fits(value) || !std::ranges::all_of(value.items, fits)) return {};
    if (!value.is(Kind::Sequence)) {  // a number stands for a list of it
      if (element.kind() != c10::TypeKind::IntType || !value.is(Kind::Integer)) return {};
      return MatchedArgument{.constant = std::vector<std::int64_t>{value.integer}};
    }
    MatchedArgument all;
    for (const Value& item : value.items) {
      Found found = of_type(element, item);
      if (!found) return {};
      all.items.push_back(std::move(*found));
    }
    switch (element.kind()) {
      case c10::TypeKind::OptionalType: all.optional = true; [[fallthrough]];
      case c10::TypeKind::TensorType: all.source = MatchedArgument::Source::List; return all;
      case c10::TypeKind::IntType: all.source = MatchedArgument::Source::Sizes; return all;
      case c10::TypeKind::FloatType: return constants<double>(all);
      case c10::TypeKind::BoolType: return constants<bool>(all);
      default: return {};
    }
  }

  template <class T>
  static MatchedArgument constants(const MatchedArgument& all) {
    c10::List<T> values;
    for (const MatchedArgument& item : all.items) values.push_back(item.constant.to<T>());
    return {.constant = values};
  }

  static const Value* only(const Value& value, std::string_view key) {
    return value.is(Kind::Mapping) && value.fields.size() == 1 ? value.find(key) : nullptr;
  }

  const GraphNode& node_;
  const PlaceOf& place_;
};

}  // namespace

std::vector<MatchedArgument> matched_arguments(const GraphNode& node,
                                               const c10::FunctionSchema& schema,
                                               const PlaceOf& place_of) {
  return Matching(node, place_of).all(schema);
}

}  // namespace pipewright
