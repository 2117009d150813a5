// SPDX-License-Identifier: Apache-2.0
// What probes find, against explicit formulas in Eigen over what a recorder saw of the same
// training, in float64.
#include <gtest/gtest.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/experiment/dynamics.h"
#include "core/experiment/reading.h"
#include "core/probes/probes.h"
#include "core/schedule/versions.h"
#include "core/stability/stability_report.h"
#include "core/tensors/torch.h"
#include "tests/unit/runtime/laboratory.h"
#include "tests/unit/schemes/scheme_cases.h"
#include "tests/unit/tolerances.h"

namespace pipewright::test {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

/// The parameters in a flat tensor, without the gaps.
VectorXd parameters_of(const at::Tensor& flat, const FlatLayout& layout) {
  std::vector<double> values;
  for (const FlatLayout::Entry& entry : layout.entries)
    for (std::int64_t i = 0; i < entry.size; ++i)
      values.push_back(flat[entry.offset + i].item<double>());
  return Eigen::Map<VectorXd>(values.data(), std::ssize(values));
}

VectorXd values_of(const std::vector<at::Tensor>& gradients) {
  std::vector<double> values;
  for (const at::Tensor& gradient : gradients) {
    const at::Tensor all = gradient.contiguous().flatten();
    for (std::int64_t i = 0; i < all.numel(); ++i) values.push_back(all[i].item<double>());
  }
  return Eigen::Map<VectorXd>(values.data(), std::ssize(values));
}

MatrixXd matrix_of(const at::Tensor& tensor) {
  MatrixXd matrix(tensor.size(0), tensor.size(1));
  for (std::int64_t i = 0; i < tensor.size(0); ++i)
    for (std::int64_t j = 0; j < tensor.size(1); ++j) matrix(i, j) = tensor[i][j].item<double>();
  return matrix;
}

double rms(const VectorXd& v) {
  return std::sqrt(v.squaredNorm() / static_cast<double>(v.size()));
}

double cosine(const VectorXd& a, const VectorXd& b) {
  return a.dot(b) / (a.norm() * b.norm());
}

/// Records weights and gradients, and tells the probes.
class Recorder final : public Observer {
 public:
  explicit Recorder(Probes& probes) : probes_(probes) {}

  struct Update {
    int minibatch = 0;
    VectorXd before, after, gradient;
  };
  struct Message {
    double error = 0, whole = 0;
  };
  using Place = std::pair<int, int>;              // stage, mini-batch
  std::map<Place, VectorXd> forwards, backwards;  // weights that the passes had
  std::map<Place, VectorXd> newest;               // at the backward
  std::map<int, int> oldest_forward;              // [stage]: updates that a forward was behind
  std::map<Place, MatrixXd> incoming;             // gradients of the outputs
  std::map<Place, std::vector<VectorXd>> added;   // gradients by micro-batch
  std::map<int, std::vector<Update>> updates_of;  // [stage]
  std::map<std::tuple<int, int, bool>, Message> messages;
  std::map<std::tuple<int, WeightKey>, VectorXd> predictions;
  std::map<std::tuple<int, WeightKey>, std::set<std::string>> uses;  // passes with a prediction

  void began(const Instruction& i, Stage& stage) override {
    const Place place{i.action.stage, i.action.minibatch};
    const VectorXd weights = seen(stage, i.weights.key);
    if (i.action.kind == ActionKind::Forward) {
      forwards.emplace(place, weights);
      read_[place].push_back(i.weights.key.version);
    }
    const bool first_half = i.action.kind == ActionKind::BackwardInput;
    if (i.action.kind == ActionKind::Backward || first_half) {
      backwards.emplace(place, weights);
      newest.emplace(place, seen(stage, {stage.weights().latest_number(), 0, 0}));
    }
    if (makes_weight_gradient(i.action.kind)) sums_ = sums(stage);
    const WeightKey key = i.weights.key;
    if (key.ahead > 0 && i.action.microbatch == 0) {
      predictions.emplace(std::tuple(place.first, key), weights);
      if (i.action.kind == ActionKind::Forward) uses[{place.first, key}].insert("forward");
      if (i.action.kind == ActionKind::Backward) uses[{place.first, key}].insert("backward");
    }
    probes_.began(i, stage);
  }
  void backward(const Backward& b) override {
    const Action& action = b.instruction.action;
    if (!b.request.gradients.empty())
      incoming.emplace(Place{action.stage, action.minibatch}, matrix_of(b.request.gradients[0]));
    probes_.backward(b);
  }
  void ended(const Instruction& i, Stage& stage, const Weighting& weighting) override {
    if (makes_weight_gradient(i.action.kind)) {
      VectorXd now = sums(stage);
      if (sums_.size() == now.size()) now -= sums_;
      std::vector<VectorXd>& parts = added[{i.action.stage, i.action.minibatch}];
      parts.resize(std::max(parts.size(), as_size(i.action.microbatch) + 1));
      parts[as_size(i.action.microbatch)] = now;
    }
    probes_.ended(i, stage, weighting);
  }
  void updates(const Instruction& i, Stage& stage) override {
    updates_of[i.action.stage].push_back({.minibatch = i.action.minibatch,
                                          .before = latest(stage),
                                          .after = {},
                                          .gradient = values_of(stage.gradients())});
    int& oldest = oldest_forward[i.action.stage];
    for (auto& [place, versions] : read_) {
      if (place.first != i.action.stage || place.second > i.action.minibatch) continue;
      for (const int version : std::exchange(versions, {}))
        oldest = std::max(oldest, stage.weights().latest_number() - version);
    }
    probes_.updates(i, stage);
  }
  void updated(const Instruction& i, Stage& stage) override {
    updates_of[i.action.stage].back().after = latest(stage);
    probes_.updated(i, stage);
  }
  bool compares(const Action& pass) const override { return probes_.compares(pass); }
  void compared(const Action& pass, int peer, const Tensors& sent,
                const Tensors& arrived) override {
    Message& message = messages[{pass.stage, pass.minibatch, pass.kind == ActionKind::Forward}];
    for (std::size_t i = 0; i < sent.size(); ++i) {
      const MatrixXd x = matrix_of(sent[i]), y = matrix_of(arrived[i]);
      message.error += (x - y).squaredNorm();
      message.whole += x.squaredNorm();
    }
    probes_.compared(pass, peer, sent, arrived);
  }

 private:
  static VectorXd seen(Stage& stage, const WeightKey& key) {
    return parameters_of(stage.weights().version(key), stage.layout());
  }
  static VectorXd latest(Stage& stage) {
    return parameters_of(stage.weights().latest(), stage.layout());
  }
  static VectorXd sums(Stage& stage) {
    for (const at::Tensor& gradient : stage.gradients())
      if (!gradient.defined()) return {};
    return values_of(stage.gradients());
  }

  Probes& probes_;
  VectorXd sums_;
  std::map<Place, std::vector<int>> read_;  // versions, by forwards that no update has applied
};

/// A training of float64 with probes, and what the recorder saw.
class Trial {
 public:
  explicit Trial(const std::string& changes)
      : laboratory(concat("{train.precision: float64, model.activation: tanh, ", changes, "}")),
        probes(laboratory.experiment.probes, laboratory.plan().training,
               laboratory.experiment.delays),
        seen(probes) {
    const Plan& plan = laboratory.plan();
    probes.begin(0);
    const Stages stages = plan.stages();
    train(plan, stages, Execution::Serial, nullptr, 0, nullptr, &seen);
    for (const ProbeRow& row : probes.take())
      found[{row.stage, static_cast<int>(row.minibatch), row.quantity}] = row.value;
  }

  /// Expects such a row with that value.
  void expect(int stage, int minibatch, const std::string& quantity, double value) {
    const auto row = found.find({stage, minibatch, quantity});
    ASSERT_NE(row, found.end()) << stage << " " << minibatch << " " << quantity;
    EXPECT_NEAR(row->second, value, tolerance::kProbes * std::max(1.0, std::abs(value)))
        << stage << " " << minibatch << " " << quantity;
    ++expected;
  }
  /// Expects that there are no further rows.
  void expect_no_more() const { EXPECT_EQ(expected, found.size()); }

  Laboratory laboratory;
  Probes probes;
  Recorder seen;
  std::map<std::tuple<int, int, std::string>, double> found;
  std::size_t expected = 0;
};

TEST(ProbeFormulas, OfWeightGap) {
  for (const char* scheme : {"{name: pipedream}", "{name: pipedream, weight_stashing: false}",
                             "{name: spectrain}", "{name: pipedream_2bw}"}) {
    Trial trial(concat("scheme: ", scheme, ", pipeline.microbatches: ",
                       std::string(scheme).find("2bw") != std::string::npos ? 4 : 1,
                       ", probes: [{name: weight_gap, every: 1}]"));
    double most = 0;
    for (const auto& [stage, updates] : trial.seen.updates_of)
      for (const Recorder::Update& update : updates) {
        const double step = rms(update.after - update.before);
        const double forward =
            rms(trial.seen.forwards.at({stage, update.minibatch}) - update.before);
        const double backward =
            rms(trial.seen.backwards.at({stage, update.minibatch}) - update.before);
        trial.expect(stage, update.minibatch, "update", step);
        trial.expect(stage, update.minibatch, "forward", forward);
        trial.expect(stage, update.minibatch, "backward", backward);
        trial.expect(stage, update.minibatch, "forward_relative", forward / step);
        trial.expect(stage, update.minibatch, "backward_relative", backward / step);
        most = std::max(most, forward / step);
      }
    trial.expect_no_more();
    EXPECT_GT(most, 0.5) << scheme << ": weights are some updates old";
  }
}

/// Expects the errors of every prediction that a pass had, and no other rows.
void expect_prediction_errors(Trial& trial) {
  for (const auto& [place, predicted] : trial.seen.predictions) {
    const auto& [stage, key] = place;
    const auto& updates = trial.seen.updates_of.at(stage);
    const int version = key.version + key.ahead;
    if (version > std::ssize(updates)) continue;  // the training ended before
    const Recorder::Update& update = updates[as_size(version) - 1];
    const VectorXd& from = updates[as_size(key.version)].before;
    const double with = rms(predicted - update.after), without = rms(from - update.after);
    for (const std::string& pass : trial.seen.uses.at(place)) {
      trial.expect(stage, update.minibatch, pass + "_predicted", with);
      trial.expect(stage, update.minibatch, pass + "_unpredicted", without);
      if (without > 0) trial.expect(stage, update.minibatch, pass + "_ratio", with / without);
    }
  }
  trial.expect_no_more();
}

/// Every stage whose passes predict has rows of both passes, whether or not the backward has the
/// forward's prediction again.
TEST(ProbeFormulas, OfPredictionErrorOfEveryScheme) {
  std::set<std::string> names;
  for (const SchemeCase& scheme : every_scheme()) {
    const std::string changes =
        concat("scheme: ", scheme_text(scheme),
               ", pipeline.stages: ", scheme.name == "data_parallel" ? 1 : 4,
               ", pipeline.microbatches: 2, probes: [{name: prediction_error, every: 1}]");
    try {
      const Schedule schedule =
          read_experiment(small_document(concat("{", changes, "}"))).schedule(6);
      if (!predictions_of(schedule).any) continue;  // PipeMare extrapolates back
    } catch (const Error&) {
      continue;  // it predicts nothing
    }
    Trial trial(changes);
    SCOPED_TRACE(scheme_text(scheme));
    expect_prediction_errors(trial);
    std::map<int, std::set<std::string>> passes;  // [stage]: of those that predict
    for (const auto& [place, uses] : trial.seen.uses)
      passes[std::get<0>(place)].insert(uses.begin(), uses.end());
    for (const auto& [stage, of] : passes)
      for (const std::string& pass : of) {
        const auto has = [&](const auto& row) {
          return std::get<0>(row.first) == stage && std::get<2>(row.first) == pass + "_predicted";
        };
        EXPECT_TRUE(std::ranges::any_of(trial.found, has)) << stage << " " << pass;
      }
    names.insert(scheme.name);
  }
  EXPECT_EQ(names, (std::set<std::string>{"lwp", "pipeoptim", "spectrain", "xpipe"}));
}

/// PipeMare's backward extrapolates back to the forward's weights.
TEST(ProbeFormulas, OfPredictionErrorBackToTheForward) {
  Trial trial("scheme: {name: pipemare}, probes: [{name: prediction_error, every: 1}]");
  for (const auto& [place, forward] : trial.seen.forwards)
    if (const VectorXd& backward = trial.seen.backwards.at(place);
        trial.found.contains({place.first, place.second, "backward_predicted"})) {
      const VectorXd& newest = trial.seen.newest.at(place);
      const double with = rms(backward - forward), without = rms(newest - forward);
      trial.expect(place.first, place.second, "backward_predicted", with);
      trial.expect(place.first, place.second, "backward_unpredicted", without);
      if (without > 0) trial.expect(place.first, place.second, "backward_ratio", with / without);
    }
  EXPECT_GT(trial.expected, 30U);
  trial.expect_no_more();
}

/// The gradient of the weights of a linear layer with tanh, W [out, in] before the bias [out].
VectorXd gradient_of_tanh_layer(const VectorXd& parameters, const MatrixXd& x,
                                const MatrixXd& of_output) {
  const Eigen::Index out = of_output.cols(), in = x.cols();
  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::Map<const RowMajor> weight(parameters.data(), out, in);
  const VectorXd bias = parameters.tail(out);
  const MatrixXd y =
      ((x * weight.transpose()).rowwise() + bias.transpose()).array().tanh().matrix();
  const MatrixXd of_sum = (of_output.array() * (1 - y.array().square())).matrix();
  const RowMajor of_weight = of_sum.transpose() * x;
  VectorXd gradient(parameters.size());
  gradient << Eigen::Map<const VectorXd>(of_weight.data(), of_weight.size()),
      of_sum.colwise().sum().transpose();
  return gradient;
}

/// Of the first stage, which has one layer, and whose inputs are the data.
TEST(ProbeFormulas, OfGradientAlignmentAndMismatch) {
  for (const bool newest : {true, false}) {
    Trial trial(
        concat("scheme: {name: pipedream, weight_stashing: false}, optimizer.lr: 0.5, "
               "probes: [{name: ",
               newest ? "gradient_alignment" : "mismatch", ", every: 1}]"));
    Loader loader = trial.laboratory.plan().training_loader(0, 1);
    double least = 1;
    for (const auto& [place, of_output] : trial.seen.incoming) {
      if (place.first != 0) continue;
      const MatrixXd x =
          matrix_of(loader.inputs(place.second, loader.share(place.second, 0, 0), at::kCPU)[0]);
      const VectorXd scheme = gradient_of_tanh_layer(trial.seen.forwards.at(place), x, of_output);
      const VectorXd other = gradient_of_tanh_layer(
          newest ? trial.seen.newest.at(place) : trial.seen.backwards.at(place), x, of_output);
      trial.expect(0, place.second, "cosine", cosine(scheme, other));
      trial.expect(0, place.second, "norm_ratio", scheme.norm() / other.norm());
      least = std::min(least, cosine(scheme, other));
    }
    EXPECT_GT(trial.expected, 8U);
    EXPECT_LT(least, 0.99999) << "the weights differ";
  }
}

TEST(ProbeFormulas, OfDelayAlignmentAndNorms) {
  Trial trial("scheme: {name: pipedream}, probes: [{name: delay_alignment, every: 1, delay: 2}]");
  for (const auto& [stage, updates] : trial.seen.updates_of)
    for (std::size_t i = 2; i < updates.size(); ++i)
      trial.expect(stage, updates[i].minibatch, "cosine",
                   cosine(updates[i].gradient, updates[i - 2].gradient));
  trial.expect_no_more();
  Trial norms("scheme: {name: pipedream}, probes: [{name: norms, every: 1}]");
  for (const auto& [stage, updates] : norms.seen.updates_of)
    for (const Recorder::Update& update : updates) {
      norms.expect(stage, update.minibatch, "weights", update.before.norm());
      norms.expect(stage, update.minibatch, "gradient", update.gradient.norm());
      norms.expect(stage, update.minibatch, "update", (update.after - update.before).norm());
    }
  norms.expect_no_more();
}

/// Clipping, of a stage or of the model, shows in the update and not in the gradient.
TEST(ProbeFormulas, OfNormsAreOfTheGradientBeforeItsRules) {
  const std::string flushing =
      "scheme: {name: gpipe}, optimizer: {name: sgd, momentum: 0}, "
      "probes: [{name: norms, every: 1}]";
  Trial plain(flushing);
  for (const char* over : {"stage", "model"}) {
    Trial clipped(
        concat(flushing, ", gradient_rules: [{name: clip, norm: 1.0e-4, over: ", over, "}]"));
    for (const auto& [stage, unused] : plain.seen.updates_of) {
      const auto first = [&](Trial& trial, const char* quantity) {
        return trial.found.at({stage, 0, quantity});
      };
      clipped.expect(stage, 0, "gradient", first(plain, "gradient"));
      EXPECT_GT(first(plain, "gradient"), 1e-3) << "would be clipped";
      EXPECT_LT(first(clipped, "update"), first(plain, "update") / 2) << over;
    }
  }
}

/// The gradient of the mean cross entropy of a chain of tanh layers that ends with a linear one, by
/// backpropagation written out; one layer a stage.
std::vector<VectorXd> gradient_of_chain(const std::vector<VectorXd>& parameters, const MatrixXd& x,
                                        const std::vector<std::int64_t>& classes) {
  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  std::vector<MatrixXd> inputs{x};
  std::vector<MatrixXd> weights;
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    const Eigen::Index in = inputs[k].cols(), out = parameters[k].size() / (in + 1);
    weights.emplace_back(Eigen::Map<const RowMajor>(parameters[k].data(), out, in));
    const Eigen::RowVectorXd bias = parameters[k].tail(out).transpose();
    const MatrixXd sum = (inputs[k] * weights[k].transpose()).rowwise() + bias;
    inputs.push_back(k + 1 == parameters.size() ? sum : MatrixXd(sum.array().tanh().matrix()));
  }
  MatrixXd of_output = inputs.back().array().exp().matrix();
  for (Eigen::Index n = 0; n < of_output.rows(); ++n) {
    of_output.row(n) /= of_output.row(n).sum();
    of_output(n, classes[as_size(static_cast<int>(n))]) -= 1;
  }
  of_output /= static_cast<double>(of_output.rows());
  std::vector<VectorXd> gradients(parameters.size());
  for (std::size_t k = parameters.size(); k-- > 0;) {
    MatrixXd of_sum = of_output;
    if (k + 1 < parameters.size())
      of_sum = (of_output.array() * (1 - inputs[k + 1].array().square())).matrix();
    const RowMajor of_weight = of_sum.transpose() * inputs[k];
    gradients[k].resize(parameters[k].size());
    gradients[k] << Eigen::Map<const VectorXd>(of_weight.data(), of_weight.size()),
        of_sum.colwise().sum().transpose();
    of_output = of_sum * weights[k];
  }
  return gradients;
}

VectorXd joined(const std::vector<VectorXd>& parts) {
  Eigen::Index size = 0;
  for (const VectorXd& part : parts) size += part.size();
  VectorXd all(size);
  Eigen::Index at = 0;
  for (const VectorXd& part : parts) {
    all.segment(at, part.size()) = part;
    at += part.size();
  }
  return all;
}

TEST(ProbeFormulas, OfGradientAlignmentOfAllStages) {
  for (const char* scheme : {"{name: pipedream}", "{name: pipedream, weight_stashing: false}",
                             "{name: spectrain}", "{name: gpipe}", "{name: zb_h1}"}) {
    SCOPED_TRACE(scheme);
    const bool flushes = std::string_view(scheme).find("gpipe") != std::string_view::npos ||
                         std::string_view(scheme).find("zb") != std::string_view::npos;
    Trial trial(concat("scheme: ", scheme,
                       ", optimizer.lr: 0.5, pipeline.microbatches: ", flushes ? 2 : 1,
                       ", probes: [{name: gradient_alignment, every: 1, global: true}]"));
    Loader loader = trial.laboratory.plan().training_loader(0, 1);
    double least = 1;
    for (int m = 0; m < 6; ++m) {
      const Share share = loader.share(m, 0, 0);
      const MatrixXd x = matrix_of(loader.inputs(m, share, at::kCPU)[0]);
      const at::Tensor y = loader.targets(m, share, at::kCPU).contiguous();
      const std::vector<std::int64_t> classes(y.data_ptr<std::int64_t>(),
                                              y.data_ptr<std::int64_t>() + y.numel());
      std::vector<VectorXd> newest, scheme_gradient;
      for (int k = 0; k < 4; ++k) {
        newest.push_back(trial.seen.newest.at({k, m}));
        scheme_gradient.push_back(trial.seen.added.at({k, m})[0] * (flushes ? 2 : 1));
      }
      const VectorXd whole = joined(gradient_of_chain(newest, x, classes)),
                     stale = joined(scheme_gradient);
      trial.expect(kWholeModel, m, "cosine", cosine(stale, whole));
      trial.expect(kWholeModel, m, "norm_ratio", stale.norm() / whole.norm());
      least = std::min(least, cosine(stale, whole));
    }
    if (flushes)
      EXPECT_NEAR(least, 1, tolerance::kProbes) << "no weights are old";
    else
      EXPECT_LT(least, 0.9999) << "weights are old";
  }
}

/// The default delay is what `stability` prints as the stage's forward delay, and what a literal
/// reading of the versions gives. Returns the number of schemes that were tried.
int expect_delay_alignment(const std::vector<SchemeCase>& all) {
  int schemes = 0;
  for (const SchemeCase& scheme : all) {
    if (scheme.options.find("law: ") != std::string::npos) continue;  // its delays are drawn
    SCOPED_TRACE(scheme_text(scheme));
    const int stages = scheme.name == "data_parallel" ? 1 : 4;
    Trial trial(concat("scheme: ", scheme_text(scheme), ", pipeline.stages: ", stages,
                       ", pipeline.microbatches: 4, dataset.train: 80",
                       ", probes: [{name: delay_alignment, every: 1}]"));
    const StabilityReport report = stability_report(*dynamics_of(trial.laboratory.experiment));
    for (const auto& [stage, updates] : trial.seen.updates_of) {
      const int printed = report.stages[as_size(stage)].delay.forward;
      const auto delay = as_size(std::max(1, printed));
      EXPECT_EQ(printed, trial.seen.oldest_forward.at(stage)) << stage;
      for (std::size_t i = delay; i < updates.size(); ++i)
        trial.expect(stage, updates[i].minibatch, "cosine",
                     cosine(updates[i].gradient, updates[i - delay].gradient));
    }
    trial.expect_no_more();
    ++schemes;
  }
  return schemes;
}

TEST(ProbeFormulas, OfDelayAlignmentByDefault) {
  EXPECT_EQ(expect_delay_alignment(scheme_of_each_kind()), 6);
}

TEST(ProbeFormulas, OfDelayAlignmentByDefaultOfEveryScheme) {
  EXPECT_GT(expect_delay_alignment(every_scheme()), 20);
}

/// Options of a training of mini-batches of 8 samples with gradient_noise.
std::string with_noise(int microbatches, const std::string& more = "") {
  return concat(
      "scheme: {name: gpipe}, loader.batch_size: 8, pipeline.microbatches: ", microbatches,
      ", probes: [{name: gradient_noise, every: 1}]", std::string_view(more));
}

/// Means of `count` gradients at a time.
std::vector<VectorXd> group_means(const std::vector<VectorXd>& gradients, std::size_t count) {
  std::vector<VectorXd> means;
  for (std::size_t i = 0; i + count <= gradients.size(); i += count) {
    VectorXd sum = VectorXd::Zero(gradients[i].size());
    for (std::size_t k = 0; k < count; ++k) sum += gradients[i + k];
    means.push_back(sum / static_cast<double>(count));
  }
  return means;
}

/// The probe against the analysis of variance: groups of b samples each, of which only the means
/// are known, estimate the variance of one sample by b Σ |mean of a group − mean of all|² / (M −
/// 1).
TEST(ProbeFormulas, OfGradientNoise) {
  Trial single(with_noise(8));  // a gradient for each sample
  std::map<int, std::vector<VectorXd>> by_stage;
  for (const auto& [place, added] : single.seen.added)
    if (place.second == 0)
      for (const VectorXd& part : added) by_stage[place.first].push_back(8 * part);
  ASSERT_EQ(by_stage.size(), 4u);
  const auto expect_noise = [&](Trial& trial, std::size_t samples, std::size_t of_replica) {
    for (const auto& [stage, all] : by_stage) {
      const std::vector<VectorXd> own(all.begin(),
                                      all.begin() + static_cast<std::ptrdiff_t>(of_replica));
      const std::vector<VectorXd> groups = group_means(own, samples);
      const VectorXd mean = group_means(own, own.size()).front();
      const double b = static_cast<double>(samples), n = static_cast<double>(of_replica);
      double between = 0;
      for (const VectorXd& group : groups) between += (group - mean).squaredNorm();
      const double variance = b * between / static_cast<double>(groups.size() - 1);
      const double squared = mean.squaredNorm() - variance / n;  // noise of the mean of n samples
      trial.expect(stage, 0, "variance", variance);
      trial.expect(stage, 0, "squared_gradient", squared);
      if (squared > 0) trial.expect(stage, 0, "scale", variance / squared);
    }
  };
  expect_noise(single, 1, 8);
  for (const std::size_t microbatches : {2u, 4u}) {
    Trial grouped(with_noise(static_cast<int>(microbatches)));
    expect_noise(grouped, 8 / microbatches, 8);
    Trial summed(with_noise(static_cast<int>(microbatches), ", train.gradient: sum"));
    expect_noise(summed, 8 / microbatches, 8);
  }
  Trial replicas(with_noise(2, ", pipeline.replicas: 2"));
  expect_noise(replicas, 2, 4);
}

TEST(ProbeFormulas, OfEdgeError) {
  Trial trial(
      "scheme: {name: gpipe}, pipeline.compression: {name: uniform, bits: 3}, "
      "probes: [{name: edge_error, every: 1}]");
  for (const auto& [place, message] : trial.seen.messages) {
    const auto& [stage, minibatch, forward] = place;
    trial.expect(stage, minibatch, forward ? "activation" : "gradient",
                 std::sqrt(message.error / message.whole));
  }
  trial.expect_no_more();
}

}  // namespace
}  // namespace pipewright::test
