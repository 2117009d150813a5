// SPDX-License-Identifier: Apache-2.0
// ZB-V (Qi, Wan, Huang and Lin, 2024, "Zero Bubble Pipeline Parallelism", section 6): split
// backwards on a V of two stages per worker. The loss is on worker 0, so backwards begin there
// early, and with equal times F = I = W no worker idles between its first pass and its last, for
// the activations of 1F1B's first stage, p micro-batches. The order is PyTorch's
// ScheduleZBVZeroBubble. It is made for at least 2p−1 micro-batches; of fewer, the others' passes
// are left out.
#include <algorithm>
#include <array>

#include "core/base/as_size.h"
#include "core/config/options.h"
#include "core/schedule/builders.h"

namespace pipewright {
namespace {

/// The passes of a worker that holds one stage on the way forth and one on the way back. Each takes
/// the next micro-batch.
class VOrder {
 public:
  VOrder(int worker, int workers) : stages_{worker, 2 * workers - 1 - worker} {}

  void forward(int way) { add(ActionKind::Forward, way, forwards_); }
  void input_half(int way) { add(ActionKind::BackwardInput, way, input_halves_); }
  void weight_half(int way) { add(ActionKind::BackwardWeight, way, weight_halves_); }
  void backward(int way) {
    input_half(way);
    weight_half(way);
  }
  int forwards(int way) const { return forwards_[as_size(way)]; }
  int weight_halves(int way) const { return weight_halves_[as_size(way)]; }
  std::vector<PassStep> take() { return std::move(steps_); }

 private:
  using Counts = std::array<int, 2>;

  void add(ActionKind kind, int way, Counts& done) {
    steps_.push_back({kind, stages_[as_size(way)], done[as_size(way)]++});
  }

  std::array<int, 2> stages_;
  Counts forwards_{}, input_halves_{}, weight_halves_{};
  std::vector<PassStep> steps_;
};

constexpr int kForth = 0, kBack = 1;

std::vector<PassStep> steps_of(int w, int p, int microbatches) {
  VOrder order(w, p);
  for (int i = 0; i < 2 * (p - w) - 1; ++i) order.forward(kForth);
  for (int i = 0; i < w; ++i) {
    order.forward(kBack);
    order.forward(kForth);
  }
  for (int i = 0; i < p - w; ++i) {
    order.forward(kBack);
    order.backward(kBack);
  }
  while (order.forwards(kBack) < microbatches) {
    if (order.forwards(kForth) < microbatches) order.forward(kForth);
    order.backward(kForth);
    order.forward(kBack);
    order.backward(kBack);
  }
  for (int i = 0; i < w; ++i) {
    order.input_half(kForth);
    order.input_half(kBack);
  }
  for (int i = 0; i < p - w; ++i) order.backward(kForth);
  for (const int way : {kBack, kForth})
    while (order.weight_halves(way) < microbatches) order.weight_half(way);
  return order.take();
}

class ZeroBubbleV final : public Scheme {
 public:
  explicit ZeroBubbleV(Options&) {}

  std::vector<int> placement(int stages) const override { return v_placement(stages); }

  Schedule schedule(const PipelineShape& shape) const override {
    const PipelineShape placed = with_placement(shape, v_placement(shape.stages), "zb_v");
    const int workers = placed.workers_per_replica();
    std::vector<std::vector<PassStep>> orders;
    for (int worker = 0; worker < workers; ++worker) {
      auto& steps = orders.emplace_back(
          steps_of(worker, workers, std::max(shape.microbatches, 2 * workers - 1)));
      std::erase_if(steps, [&](const PassStep& step) {
        return step.stage >= shape.stages || step.microbatch >= shape.microbatches;
      });
    }
    return schedule_of_workers(placed, orders);
  }
  bool repeats() const override { return true; }
};

}  // namespace

PIPEWRIGHT_SCHEME(zb_v, ZeroBubbleV,
                  "ZB-V: two stages per worker in a V, no bubble for 1F1B's activations (Qi et "
                  "al., 2024).")

}  // namespace pipewright
