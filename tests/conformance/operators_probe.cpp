// SPDX-License-Identifier: Apache-2.0
// Prints for every operator of this LibTorch why a graph may not call it, or nothing: name,
// overload and reason, a line each, parted by tabs.
#include <iostream>

#include "core/tensors/torch.h"
#include "models/graph/graph_operators.h"

int main() {
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames())
    if (const auto op = c10::Dispatcher::singleton().findSchema(name))
      std::cout << name.name << '\t' << name.overload_name << '\t'
                << pipewright::reason_against(*op) << '\n';
}
