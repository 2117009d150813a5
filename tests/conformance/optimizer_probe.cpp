// SPDX-License-Identifier: Apache-2.0
// Steps one of our optimizers in float64 as optimizers_test.py says on standard input:
// {"name": …, "options": "{…}", "parameters": [[name, shape, numbers], …], "rates": [lr of each
// step], "gradients": [[numbers of each parameter] of each step]}, and prints the numbers of each
// parameter after each step.
#include <cstdint>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/optim/optimizer.h"
#include "core/stage/weight_store.h"
#include "core/tensors/torch.h"

using nlohmann::json;
using namespace pipewright;

namespace {

std::unique_ptr<Optimizer> optimizer_of(const json& given) {
  const Value document = parse_yaml(given["options"].get<std::string>(), "options");
  Problems problems;
  Options options(&document, "optimizer", problems);
  auto made = Registry<Optimizer>::instance().find(given["name"].get<std::string>())->make(options);
  options.finish();
  problems.throw_if_any();
  return made;
}

at::Tensor numbers_of(const json& numbers, at::IntArrayRef shape) {
  return at::tensor(numbers.get<std::vector<double>>(), at::kDouble).reshape(shape);
}

}  // namespace

int main() {
  const json given = json::parse(std::cin);
  const auto optimizer = optimizer_of(given);
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> shapes;
  for (const json& parameter : given["parameters"])
    shapes.emplace_back(parameter[0].get<std::string>(),
                        parameter[1].get<std::vector<std::int64_t>>());
  const FlatLayout layout = flat_layout(shapes, 8);
  at::Tensor weights = at::zeros({layout.size}, at::kDouble);
  for (std::size_t p = 0; p < shapes.size(); ++p)
    layout.entries[p].view(weights).copy_(numbers_of(given["parameters"][p][2], shapes[p].second));
  OptimizerState state = fresh_state(*optimizer, layout, at::kDouble, false, false);
  json after = json::array();
  for (std::size_t t = 0; t < given["rates"].size(); ++t) {
    std::vector<at::Tensor> gradients;
    for (std::size_t p = 0; p < shapes.size(); ++p)
      gradients.push_back(numbers_of(given["gradients"][t][p], shapes[p].second));
    optimizer->step({.layout = layout,
                     .gradients = gradients,
                     .weights = weights,
                     .next = weights,
                     .state = state,
                     .lr = given["rates"][t].get<double>()});
    json& step = after.emplace_back(json::array());
    for (const FlatLayout::Entry& entry : layout.entries) {
      const at::Tensor flat = entry.view(weights).flatten().contiguous();
      step.push_back(std::vector<double>(flat.const_data_ptr<double>(),
                                         flat.const_data_ptr<double>() + flat.numel()));
    }
  }
  std::cout << after.dump() << "\n";
}
