// SPDX-License-Identifier: Apache-2.0
#include "core/optim/weight_decay.h"

#include "core/base/text.h"

namespace pipewright {

WeightDecay::WeightDecay(Options& options, double fallback, const std::string& help)
    : lambda_(options.number("weight_decay", fallback, help, kNotNegative)) {
  const Value given = options.any(
      "no_decay", Value::sequence(),
      "Parameters that do not decay: a list of biases (whose name says so) and norms (all others "
      "of one dimension, such as the gains of normalisations). [biases, norms] leaves the decay to "
      "matrices, as recipes for transformers do.");
  if (!given.is(Value::Kind::Sequence))
    options.problem("no_decay",
                    concat("is ", given.shown(), "; expected a list such as [biases, norms]"));
  for (const Value& kind : given.items) {
    const bool known = kind.is(Value::Kind::Text);
    if (known && kind.text == "biases")
      of_biases_ = false;
    else if (known && kind.text == "norms")
      of_norms_ = false;
    else
      options.problem("no_decay", concat("has ", kind.shown(), "; expected biases or norms"));
  }
}

bool WeightDecay::excludes(const FlatLayout::Entry& parameter) const {
  const std::string_view name = parameter.name;
  const bool bias = name.substr(name.rfind('.') + 1).find("bias") != std::string_view::npos;
  return bias ? !of_biases_ : parameter.shape.size() < 2 && !of_norms_;
}

}  // namespace pipewright
