// SPDX-License-Identifier: Apache-2.0
// gradient_noise: the simple noise scale of McCandlish et al. (2018, "An Empirical Model of
// Large-Batch Training", appendix A.1) from the M micro-batches of a mini-batch. With g_m the
// gradient of micro-batch m's mean loss, s = mean |g_m|², and S = |mean g_m|², in units of one
// micro-batch of b samples:
//   variance = b (s − S) / (1 − 1/M),  squared_gradient = (M S − s) / (M − 1),
//   scale = variance / squared_gradient: the mini-batch beyond which more samples bring little.
// Both are unbiased, so squared_gradient may be negative; there is no scale then. Micro-batches are
// taken to have equal numbers of samples, and those of replica 0 are looked at. Of a stage that
// learns from several losses it is the gradient of the first. A stage keeps the sum of the
// gradients of a mini-batch, and the one that is being computed.
#include "core/probes/probe.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

class NoiseAtStage final : public StageProbe {
 public:
  explicit NoiseAtStage(int microbatches) : microbatches_(microbatches) {}

  bool all_microbatches() const override { return true; }
  bool wants_gradients() const override { return true; }

  void ended(const Instruction& pass, Stage&, const Added& added, const Finding& found) override {
    if (added.gradients.empty()) return;
    if (pass.action.minibatch != minibatch_) begin(pass.action);
    if (pass.action.loss != loss_) return;
    const double factor = added.weighting.factor;
    squares_ += squares_of(added.gradients) / (factor * factor);
    samples_ += added.weighting.samples;
    add(added.gradients, 1 / factor);
    if (++count_ == microbatches_) report(found);
  }

  void drained() override { minibatch_ = -1; }

 private:
  void begin(const Action& first) {
    minibatch_ = first.minibatch;
    loss_ = first.loss;
    squares_ = 0;
    samples_ = 0;
    count_ = 0;
    sum_.clear();
  }

  void add(const Gradients& added, double factor) {
    const at::NoGradGuard no_grad;
    if (sum_.empty()) sum_.resize(added.size());
    for (std::size_t i = 0; i < added.size(); ++i)
      if (added[i].defined())
        sum_[i] = sum_[i].defined() ? sum_[i].add_(added[i], factor) : added[i].mul(factor);
  }

  void report(const Finding& found) {
    const double m = microbatches_, single = squares_ / m, mean = squares_of(sum_) / (m * m);
    const double samples = static_cast<double>(samples_) / m;  // of a micro-batch
    const double variance = samples * (single - mean) / (1 - 1 / m);
    const double squared = (m * mean - single) / (m - 1);
    found("variance", variance);
    found("squared_gradient", squared);
    if (squared > 0) found("scale", variance / squared);
    sum_.clear();
  }

  int microbatches_;
  int minibatch_ = -1, loss_ = 0;
  int count_ = 0;
  std::int64_t samples_ = 0;
  double squares_ = 0;  ///< sum of |g_m|²
  Gradients sum_;       ///< of g_m
};

class GradientNoise final : public Probe {
 public:
  using Probe::Probe;
  std::string refusal(const ProbedTraining& training) const override {
    if (training.microbatches > 1) return {};
    return "needs micro-batches to compare; pipeline.microbatches is 1";
  }
  std::vector<Quantity> quantities() const override {
    return {{"variance", "of the gradient of one sample, summed over its elements"},
            {"squared_gradient",
             "squared length of the mean gradient, without the noise; an estimate that may be "
             "negative"},
            {"scale",
             "variance / squared_gradient, in samples: the mini-batch beyond which more samples "
             "bring little"}};
  }
  std::unique_ptr<StageProbe> at(const ProbedStage& stage) const override {
    return std::make_unique<NoiseAtStage>(stage.microbatches);
  }
};

}  // namespace

PIPEWRIGHT_PROBE(gradient_noise, GradientNoise,
                 "Noise scale of the gradient, from the micro-batches of a mini-batch.")

}  // namespace pipewright
