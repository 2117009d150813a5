// SPDX-License-Identifier: Apache-2.0
// Interlocking backpropagation (Gomez et al., 2022), N-wise: stage k learns from the loss of stage
// m(k) = min(k + width − 1, N−1), made by an auxiliary head there (the last stage has the model's
// own loss). `combine: sum | mean` learns from all losses k … m(k). A stage relays a loss to the
// stages before it as soon as the loss reaches it, and updates after its own backward, so a stage
// never waits beyond m(k): one mini-batch takes width·(f+b) in the steady state, heads not counted.
#include <algorithm>
#include <set>

#include "core/config/options.h"
#include "core/schedule/builders.h"

namespace pipewright {
namespace {

class Interlocking final : public Scheme {
 public:
  explicit Interlocking(Options& options)
      : width_(read_width(options)),
        combine_(
            options.choice("combine", {"furthest", "sum", "mean"}, "furthest",
                           "Losses that a stage learns from: the furthest that it reaches, as in "
                           "the authors' code, or the sum or the mean of all that it reaches.")),
        train_unused_heads_(
            options.flag("train_unused_heads", true,
                         "Whether heads from whose loss no stage learns are kept and trained.")) {}

  std::vector<int> auxiliary_sites(int stages) const override {
    std::set<int> sites;
    for (int stage = 0; stage < stages; ++stage) {
      if (train_unused_heads_) sites.insert(stage);
      for (const int loss : losses(stage, stages)) sites.insert(loss);
    }
    sites.erase(stages - 1);
    return {sites.begin(), sites.end()};
  }

  Schedule schedule(const PipelineShape& shape) const override {
    const std::vector<int> auxiliary = auxiliary_sites(shape.stages);
    std::vector<std::vector<Action>> orders;
    for (int replica = 0; replica < shape.replicas; ++replica)
      for (int stage = 0; stage < shape.stages; ++stage)
        orders.push_back(stage_order(shape, stage, replica, auxiliary));
    Schedule schedule = schedule_of_stages(shape, std::move(orders));
    schedule.auxiliary = auxiliary;
    for (int stage = 0; stage < shape.stages; ++stage)
      schedule.learns_from[static_cast<std::size_t>(stage)] = losses(stage, shape.stages);
    return schedule;
  }
  bool repeats() const override { return true; }

 private:
  static int read_width(Options& options) {
    const Value width = options.any(
        "width", Value::of(2),
        "Number of stages that a loss reaches back over: 1 is local learning, 2 pairwise, "
        "and so on; all is end-to-end training.");
    if (width.is(Value::Kind::Text) && width.text == "all") return kAll;
    if (width.is(Value::Kind::Integer) && width.integer >= 1 && width.integer < kAll)
      return static_cast<int>(width.integer);
    options.problem(
        "width", concat("is ", width.shown(), "; expected a whole number of at least 1, or all"));
    return 1;
  }

  int furthest(int stage, int stages) const {
    return width_ >= stages - stage ? stages - 1 : stage + width_ - 1;
  }

  /// The losses that `stage` learns from, nearest first.
  std::vector<int> losses(int stage, int stages) const {
    std::vector<int> all;
    for (int loss = combine_ == "furthest" ? furthest(stage, stages) : stage;
         loss <= furthest(stage, stages); ++loss)
      all.push_back(loss);
    return all;
  }

  /// The losses that some stage before this one learns from and whose gradient passes through it.
  std::vector<int> relayed(int stage, int stages) const {
    std::set<int> all;
    for (int before = 0; before < stage; ++before)
      for (const int loss : losses(before, stages))
        if (loss >= stage) all.insert(loss);
    return {all.begin(), all.end()};
  }

  std::vector<Action> stage_order(const PipelineShape& shape, int stage, int replica,
                                  const std::vector<int>& auxiliary) const {
    const std::vector<int> learned = losses(stage, shape.stages);
    const std::vector<int> relays = relayed(stage, shape.stages);
    std::set<int> passing(learned.begin(), learned.end());
    passing.insert(relays.begin(), relays.end());
    const double scale = combine_ == "mean" ? 1.0 / static_cast<double>(learned.size()) : 1;
    std::vector<Action> order;
    for (int minibatch = 0; minibatch < shape.minibatches; ++minibatch) {
      Action action{.stage = stage, .replica = replica, .minibatch = minibatch};
      auto add = [&](ActionKind kind, int loss, double factor = 1) {
        action.kind = kind;
        action.loss = loss;
        action.scale = factor;
        order.push_back(action);
      };
      for (action.microbatch = 0; action.microbatch < shape.microbatches; ++action.microbatch) {
        add(ActionKind::Forward, shape.stages - 1);
        if (std::binary_search(auxiliary.begin(), auxiliary.end(), stage))
          add(ActionKind::Head, stage);
        for (const int loss : passing) {
          const bool learns = std::find(learned.begin(), learned.end(), loss) != learned.end();
          add(learns ? ActionKind::Backward : ActionKind::BackwardInput, loss, learns ? scale : 1);
        }
      }
      action.microbatch = 0;
      if (shape.replicas > 1) add(ActionKind::Reduce, 0);
      add(ActionKind::Update, 0);
    }
    return order;
  }

  static constexpr int kAll = 1 << 20;
  int width_;
  std::string combine_;
  bool train_unused_heads_;
};

}  // namespace

PIPEWRIGHT_SCHEME(
    interlocking, Interlocking,
    "Interlocking backpropagation: each stage learns from a nearby loss (Gomez et al., 2022).")

}  // namespace pipewright
