// SPDX-License-Identifier: Apache-2.0
// prediction_error: how well a scheme predicts weights (Guan et al., SpecTrain, figure of the RMSE
// of predicted weights). For a prediction Ŵ of version v + s that a forward makes of version v,
// over the P parameters of a stage, when version v + s has come to be:
//   forward_predicted = |Ŵ − W_{v+s}| / √P,  forward_unpredicted = |W_v − W_{v+s}| / √P,
//   forward_ratio = forward_predicted / forward_unpredicted;
// and backward_… for the backward's prediction. If the backward reuses the forward's prediction,
// its rows repeat the forward's, so that every stage that predicts has rows of both. A row belongs
// to the mini-batch whose update made version v + s. Weights that a backward extrapolates back to
// an earlier version (PipeMare) are compared with those of the forward of the same micro-batch,
// which they approximate. A stage keeps copies of Ŵ and W_v until version v + s is made, and the
// errors until the backward; where a scheme extrapolates back it keeps a copy of the forward's
// weights.
#include <algorithm>
#include <optional>

#include "core/probes/measures.h"
#include "core/probes/probe.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

class ErrorAtStage final : public StageProbe {
 public:
  explicit ErrorAtStage(bool extrapolates) : extrapolates_(extrapolates) {}

  void began(const Instruction& pass, Stage& stage) override {
    const WeightKey& key = pass.weights.key;
    const at::Tensor& weights = stage.weights().version(key);
    const bool forward = pass.action.kind == ActionKind::Forward;
    if (extrapolates_ && forward)
      forwards_.push_back({.minibatch = pass.action.minibatch, .truth = weights.clone()});
    const bool made = key.ahead > 0 && stage.weights().latest_number() == key.version &&
                      std::ranges::find(predictions_, key, &Predicted::key) == predictions_.end();
    if (made)
      predictions_.push_back({.key = key,
                              .minibatch = pass.action.minibatch,
                              .of_forward = forward,
                              .of_backward = !forward,
                              .predicted = weights.clone(),
                              .from = stage.weights().version({key.version, 0, 0}).clone()});
    if (key.ahead < 0 && !forward)
      back_ = Extrapolated{weights.clone(), stage.weights().latest().clone()};
  }

  void ended(const Instruction& pass, Stage& stage, const Added&, const Finding& found) override {
    const int minibatch = pass.action.minibatch;
    if (makes_weight_gradient(pass.action.kind) || pass.action.kind == ActionKind::BackwardInput)
      ended_backward(pass.weights.key, minibatch, found);
    if (!back_) return;
    for (const Forward& forward : forwards_)
      if (forward.minibatch == minibatch)
        report("backward", errors_of(*back_, forward.truth, stage.layout()), found);
    std::erase_if(forwards_,
                  [&](const Forward& forward) { return forward.minibatch <= minibatch; });
    back_.reset();
  }

  void updated(const Update& update, const Finding& found) override {
    WeightStore& weights = update.stage.weights();
    const int now = weights.latest_number();
    for (Predicted& each : predictions_) {
      if (each.errors || each.key.version + each.key.ahead != now) continue;
      each.errors = errors_of({each.predicted, each.from}, weights.latest(), update.stage.layout());
      each.row = found.minibatch();
      each.predicted.reset();
      each.from.reset();
      if (each.of_forward) report("forward", *each.errors, found);
      if (each.of_backward) report("backward", *each.errors, found);
    }
    std::erase_if(predictions_, [](const Predicted& each) {
      return each.errors && (!each.of_forward || each.backward_ended);
    });
  }

  void drained() override {
    predictions_.clear();
    forwards_.clear();
  }

 private:
  struct Forward {
    int minibatch = 0;
    at::Tensor truth;
  };
  struct Extrapolated {
    at::Tensor predicted, from;
  };
  struct Errors {
    double with = 0, without = 0;  ///< prediction
  };
  struct Predicted {
    WeightKey key;
    int minibatch = 0;                             ///< of the pass that made it
    bool of_forward = false, of_backward = false;  ///< which passes have it
    bool backward_ended = false;                   ///< that of its mini-batch
    at::Tensor predicted, from;
    std::optional<Errors> errors = {};  ///< once the version has come to be
    std::int64_t row = 0;               ///< mini-batch of its rows
  };

  /// Notes which prediction a backward had, and drops those that no backward will ask for again.
  void ended_backward(const WeightKey& key, int minibatch, const Finding& found) {
    for (Predicted& each : predictions_) {
      if (each.key == key && !each.of_backward) {
        each.of_backward = true;
        if (each.errors) report("backward", *each.errors, found.of(each.row));
      }
      each.backward_ended |= each.minibatch <= minibatch;
    }
    std::erase_if(predictions_,
                  [](const Predicted& each) { return each.errors && each.backward_ended; });
  }

  static Errors errors_of(const Extrapolated& made, const at::Tensor& truth,
                          const FlatLayout& layout) {
    return {.with = rms_between(made.predicted, truth, layout),
            .without = rms_between(made.from, truth, layout)};
  }

  static void report(const char* pass, const Errors& errors, const Finding& found) {
    found(concat(pass, "_predicted"), errors.with);
    found(concat(pass, "_unpredicted"), errors.without);
    if (errors.without > 0) found(concat(pass, "_ratio"), errors.with / errors.without);
  }

  bool extrapolates_;
  std::vector<Forward> forwards_;
  std::vector<Predicted> predictions_;
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
         "root mean square error of the predicted weights; if the backward reuses the forward's "
         "prediction, its rows repeat the forward's"},
        {"forward_unpredicted, backward_unpredicted",
         "the same error of the unpredicted weights, as a baseline"},
        {"forward_ratio, backward_ratio", "predicted / unpredicted: below 1 the prediction helps"}};
  }
  std::unique_ptr<StageProbe> at(const ProbedStage& stage) const override {
    return std::make_unique<ErrorAtStage>(stage.extrapolates);
  }
};

}  // namespace

PIPEWRIGHT_PROBE(prediction_error, PredictionError,
                 "RMS error of predicted weights, and of unpredicted ones as a baseline.")

}  // namespace pipewright
