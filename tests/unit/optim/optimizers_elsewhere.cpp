// SPDX-License-Identifier: Apache-2.0
// Compiles the optimizers a second time in a world where CPU tensors are of another device, so that
// their very rules run over whole tensors; they register in a table of their own.
#include "tests/unit/optim/optimizers_elsewhere.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <map>

#include "core/tensors/torch.h"

namespace pipewright::test {
namespace {

using Make = std::unique_ptr<Optimizer> (*)(Options&);

std::map<std::string, Make>& elsewhere() {
  static std::map<std::string, Make> table;
  return table;
}

template <class Type>
bool add(const char* name) {
  return elsewhere()
      .emplace(name,
               [](Options& o) -> std::unique_ptr<Optimizer> { return std::make_unique<Type>(o); })
      .second;
}

}  // namespace
}  // namespace pipewright::test

#undef PIPEWRIGHT_OPTIMIZER
#define PIPEWRIGHT_OPTIMIZER(name, Type, summary) \
  [[maybe_unused]] const bool elsewhere_##name = test::add<Type>(#name);
#define is_cpu is_xpu
#include "core/optim/adam.cpp"
#include "core/optim/adan.cpp"
#include "core/optim/lion.cpp"
#include "core/optim/muon.cpp"
#include "core/optim/nadamw.cpp"
#include "core/optim/rmsprop.cpp"
#include "core/optim/sgd.cpp"
#include "core/optim/soap.cpp"
#include "core/optim/spike_compensation.cpp"
#undef is_cpu

namespace pipewright::test {
namespace {

template <class MakeOne>
std::unique_ptr<Optimizer> made(const std::string& text, const MakeOne& make) {
  const Value document = parse_yaml(text, "test");
  Problems problems;
  Options options(&document, "optimizer", problems);
  std::unique_ptr<Optimizer> optimizer = make(options);
  options.finish();
  for (const Error& problem : problems.errors()) ADD_FAILURE() << problem.what();
  return optimizer;
}

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const std::string& name, const std::string& text) {
  return made(text, Registry<Optimizer>::instance().find(name)->make);
}

std::unique_ptr<Optimizer> make_optimizer_elsewhere(const std::string& name,
                                                    const std::string& text) {
  return made(text, elsewhere().at(name));
}

}  // namespace pipewright::test
