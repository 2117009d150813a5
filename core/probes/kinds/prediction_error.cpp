// SPDX-License-Identifier: Apache-2.0
// prediction_error: how well a scheme predicts weights (Guan et al., SpecTrain, figure of the RMSE
// of predicted weights). For a prediction Ŵ of version v + s that a forward makes of version v,
// over the P parameters of a stage, when version v + s has come to be:
//   forward_predicted = |Ŵ − W_{v+s}| / √P,  forward_unpredicted = |W_v − W_{v+s}| / √P,
//   forward_ratio = forward_predicted / forward_unpredicted;
// and backward_… for a prediction that a backward makes. The row is of the mini-batch whose update
// made version v + s. Weights that a backward extrapolates back to an earlier version (PipeMare)
// are compared with those of the forward of the same micro-batch: they are what it means to have.
// A stage keeps a copy of Ŵ and of W_v until then, and of the forward's weights where a scheme
// extrapolates back.
#include <algorithm>
#include <optional>

#include "core/probes/measures.h"
#include "core/probes/probe.h"
#include "core/stage/torch.h"

namespace pipewright {
namespace {

class ErrorAtStage final : public StageProbe {
 public:
  explicit ErrorAtStage(bool extrapolates) : extrapolates_(extrapolates) {}

  void began(const Instruction& pass, Stage& stage) override {
    const WeightKey& key = pass.weights.key;
    const at::Tensor& weights = stage.weights().version(key);
    if (extrapolates_ && pass.action.kind == ActionKind::Forward)
      forwards_.push_back({.minibatch = pass.action.minibatch, .truth = weights.clone()});
    const bool made = key.ahead > 0 && stage.weights().latest_number() == key.version &&
                      std::ranges::find(pending_, key, &Pending::key) == pending_.end();
    if (made)
      pending_.push_back({.key = key,
                          .forward = pass.action.kind == ActionKind::Forward,
                          .predicted = weights.clone(),
                          .from = stage.weights().version({key.version, 0, 0}).clone()});
    if (key.ahead < 0 && pass.action.kind != ActionKind::Forward)
      back_ = Extrapolated{weights.clone(), stage.weights().latest().clone()};
  }

  void ended(const Instruction& pass, Stage& stage, const Added&, const Finding& found) override {
    if (!back_) return;
    for (const Forward& forward : forwards_)
      if (forward.minibatch == pass.action.minibatch)
        report("backward", back_->predicted, back_->from, forward.truth, stage.layout(), found);
    std::erase_if(forwards_, [&](const Forward& forward) {
      return forward.minibatch <= pass.action.minibatch;
    });
    back_.reset();
  }

  void updated(const Update& update, const Finding& found) override {
    WeightStore& weights = update.stage.weights();
    const int now = weights.latest_number();
    for (const Pending& pending : pending_)
      if (pending.key.version + pending.key.ahead == now)
        report(pending.forward ? "forward" : "backward", pending.predicted, pending.from,
               weights.latest(), update.stage.layout(), found);
    std::erase_if(pending_, [&](const Pending& pending) {
      return pending.key.version + pending.key.ahead <= now;
    });
  }

  void drained() override {
    pending_.clear();
    forwards_.clear();
  }

 private:
  struct Forward {
    int minibatch = 0;
    at::Tensor truth;
  };
  struct Pending {
    WeightKey key;
    bool forward = false;  ///< made by a forward
    at::Tensor predicted, from;
  };
  struct Extrapolated {
    at::Tensor predicted, from;
  };

  static void report(const char* pass, const at::Tensor& predicted, const at::Tensor& from,
                     const at::Tensor& truth, const FlatLayout& layout, const Finding& found) {
    const double with = rms_between(predicted, truth, layout),
                 without = rms_between(from, truth, layout);
    found(concat(pass, "_predicted"), with);
    found(concat(pass, "_unpredicted"), without);
    if (without > 0) found(concat(pass, "_ratio"), with / without);
  }

  bool extrapolates_;
  std::vector<Forward> forwards_;
  std::vector<Pending> pending_;
  std::optional<Extrapolated> back_;
};

class PredictionError final : public Probe {
 public:
  using Probe::Probe;
  std::string refusal(const ProbedTraining& training) const override {
    if (training.predicts) return {};
    return concat("needs a scheme that predicts weights, such as spectrain; ", training.scheme,
                  " predicts none");
  }
  std::vector<Quantity> quantities() const override {
    return {
        {"forward_predicted, backward_predicted",
         "root mean square of the weights that the pass predicted minus those that came to be"},
        {"forward_unpredicted, backward_unpredicted",
         "the same for the weights that it predicted from"},
        {"forward_ratio, backward_ratio", "predicted / unpredicted: below 1 the prediction helps"}};
  }
  std::unique_ptr<StageProbe> at(const ProbedStage& stage) const override {
    return std::make_unique<ErrorAtStage>(stage.extrapolates);
  }
};

}  // namespace

PIPEWRIGHT_PROBE(prediction_error, PredictionError,
                 "Error of predicted weights against those that came to be, and of predicting "
                 "nothing.")

}  // namespace pipewright
