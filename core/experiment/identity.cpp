#include "core/experiment/identity.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace pipewright {
namespace {

constexpr std::array<std::string_view, 9> kLayout{"stages",  "replicas",  "balance",
                                                  "cut",     "placement", "execution",
                                                  "threads", "device",    "recompute"};

bool is_layout(const std::string& option) {
  return std::ranges::count(kLayout, option) != 0;
}

bool keeps_the_bits(const std::string& option) {
  return option == "execution" || option == "recompute" || option == "cut";
}

Value without_name(const Value& resolved) {
  Value science = resolved;
  std::erase_if(science.fields,
                [](const auto& field) { return field.first == "name" || field.first == "output"; });
  return science;
}

}  // namespace

std::string config_digest(Value resolved) {
  std::erase_if(resolved.fields, [](const auto& field) { return field.first == "name"; });
  return digest(resolved);
}

std::string digest_without_seed(const Value& resolved) {
  Value science = without_name(resolved);
  if (Value* train = science.find("train"))
    std::erase_if(train->fields, [](const auto& field) { return field.first == "seed"; });
  return digest(science);
}

std::string identity_of(const Value& resolved) {
  Value science = without_name(resolved);
  if (Value* pipeline = science.find("pipeline"))
    std::erase_if(pipeline->fields, [](const auto& field) { return is_layout(field.first); });
  if (Value* loader = science.find("loader"))
    std::erase_if(loader->fields, [](const auto& field) { return field.first == "prefetch"; });
  return digest(science);
}

Value layout_of(const Value& resolved) {
  Value layout = Value::mapping();
  if (const Value* pipeline = resolved.find("pipeline"))
    for (const auto& field : pipeline->fields)
      if (is_layout(field.first)) layout.fields.push_back(field);
  return layout;
}

std::string layout_changes(const Value& before, const Value& now) {
  std::vector<std::string> changes;
  for (const auto& [option, value] : now.fields) {
    const Value* const old = before.find(option);
    if (keeps_the_bits(option) || (old != nullptr && *old == value)) continue;
    changes.push_back(concat("pipeline.", option, " ", old != nullptr ? to_json(*old) : "nothing",
                             " → ", to_json(value)));
  }
  return join(changes, ", ");
}

}  // namespace pipewright
