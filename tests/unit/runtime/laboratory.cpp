// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/runtime/laboratory.h"

#include <gtest/gtest.h>

#include "core/config/merge.h"
#include "core/experiment/reading.h"
#include "core/runtime/executor.h"
#include "core/tensors/torch.h"

namespace pipewright::test {
namespace {

/// Another layer, and something around it.
class Watched final : public Layer {
 public:
  Watched(LayerPtr inner, Laboratory::Hook before, std::function<double(const Pass&)> factor)
      : inner_(std::move(inner)), before_(std::move(before)), factor_(std::move(factor)) {
    Layer::set_name(inner_->name());
  }

  std::vector<ParameterSpec> parameters() const override { return inner_->parameters(); }
  std::vector<BufferSpec> buffers() const override { return inner_->buffers(); }
  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor> parameters,
                     std::span<at::Tensor> buffers, const Pass& pass) const override {
    const bool shapes = input.is_meta();  // a plan runs the layers once for their shapes
    if (before_ && !shapes) before_(pass);
    const at::Tensor output = inner_->forward(input, parameters, buffers, pass);
    return factor_ && !shapes ? output.mul(factor_(pass)) : output;
  }

 private:
  LayerPtr inner_;
  Laboratory::Hook before_;
  std::function<double(const Pass&)> factor_;
};

constexpr const char* kSmall = R"(
dataset: {name: synthetic, train: 48, test: 20, classes: 3}
model: {name: mlp, widths: [6, 5, 5, 5, 3]}
loader: {batch_size: 8}
pipeline: {stages: 4}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
train: {epochs: 1}
)";

}  // namespace

Value small_document(const std::string& changes) {
  Value document = parse_yaml(kSmall, "small.yaml");
  Problems problems;
  for (const auto& [key, value] : parse_yaml(changes, "changes.yaml").fields)
    set_path(document, key, value, problems);
  problems.throw_if_any();
  return document;
}

Laboratory::Laboratory(const std::string& changes)
    : experiment(read_experiment(small_document(changes))) {}

Plan& Laboratory::plan() {
  if (!plan_) plan_ = std::make_unique<Plan>(make_plan(experiment, dataset));
  return *plan_;
}

void Laboratory::watch(std::size_t layer, Hook hook) {
  LayerPtr& at = experiment.layers.at(layer);
  at = std::make_shared<Watched>(at, std::move(hook), nullptr);
}

void Laboratory::scale(std::size_t layer, std::function<double(const Pass&)> factor) {
  LayerPtr& at = experiment.layers.at(layer);
  at = std::make_shared<Watched>(at, nullptr, std::move(factor));
}

RunResult train(const Plan& plan, const Stages& stages, Execution execution,
                const std::atomic<bool>* stop, int epoch, Team* team, Observer* observer) {
  Loader loader = plan.training_loader(epoch, 1);
  const auto edges = plan.edges(team != nullptr ? *team : Team());
  const auto exchanges = plan.exchanges(team != nullptr ? *team : Team());
  return execute(plan.training, stages,
                 {.batches = loader,
                  .lr = [](int) { return 0.05; },
                  .seed = plan.experiment->train.seed,
                  .first_epoch = epoch,
                  .minibatches_per_epoch = plan.minibatches,
                  .execution = execution,
                  .stop = stop,
                  .team = team,
                  .edges = edges.empty() ? nullptr : &edges,
                  .exchanges = exchanges.empty() ? nullptr : &exchanges,
                  .observer = observer});
}

std::vector<std::pair<std::string, at::Tensor>> state_of(const Stages& stages) {
  std::vector<std::pair<std::string, at::Tensor>> all;
  for (const auto& stage : stages)
    for (auto& named : stage->named_state()) all.push_back(named);
  return all;
}

std::string difference(const Stages& a, const Stages& b) {
  const auto left = state_of(a), right = state_of(b);
  if (left.size() != right.size()) return "other parameters";
  for (std::size_t i = 0; i < left.size(); ++i)
    if (!at::equal(left[i].second, right[i].second)) return left[i].first;
  return "";
}

double distance(const Stages& a, const Stages& b, std::size_t count) {
  const auto left = state_of(a), right = state_of(b);
  double most = 0;
  for (std::size_t i = 0; i < count; ++i)
    most = std::max(most, (left[i].second - right[i].second).abs().max().item<double>());
  return most;
}

void expect_same_bits(Laboratory& laboratory, const std::string& what) {
  const Plan& plan = laboratory.plan();
  const Stages serial = plan.stages(), threads = plan.stages();
  const RunResult a = train(plan, serial, Execution::Serial);
  const RunResult b = train(plan, threads, Execution::Threads);
  EXPECT_EQ(difference(serial, threads), "") << what;
  EXPECT_EQ(flat_losses(a), flat_losses(b)) << what;
}

std::vector<double> flat_losses(const RunResult& result) {
  std::vector<double> all;
  for (const auto& sites : result.losses) all.insert(all.end(), sites.begin(), sites.end());
  return all;
}

}  // namespace pipewright::test
