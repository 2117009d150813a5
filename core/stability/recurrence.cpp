// SPDX-License-Identifier: Apache-2.0
#include "core/stability/recurrence.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/base/wording.h"

namespace pipewright {
namespace {

constexpr int kLongestPeriod = 12;  // mini-batches
constexpr std::int64_t kMostWithoutRepeats = 50'000;
constexpr std::int64_t kMostActions = 1'000'000;

/// One update of a stage with the backwards whose gradients it applies, of all replicas.
struct AppliedUpdate {
  int minibatch = 0;
  double scale = 1;
  std::vector<ActionPlace> backwards;
};

/// The readers of each version in a schedule, with versions counted from the schedule's start.
class Ledger {
 public:
  Ledger(const ProvedSchedule& proved, const SteadyStateOptions& options)
      : schedule_(proved.schedule),
        index_(proved.index),
        versions_(proved.versions),
        stages_(as_size(schedule_.shape.stages)) {
    const PipelineShape& shape = schedule_.shape;
    shares_ = options.shares;
    const int whole = shape.whole_microbatches();
    if (shares_.empty())
      shares_.assign(as_size(shape.replicas * whole), 1.0 / shape.replicas / whole);
    for (std::size_t worker = 0; worker < schedule_.workers.size(); ++worker) {
      collect_updates(worker);
      collect_scales(worker);
    }
  }

  /// Updates of `stage` that apply mini-batches before `minibatch`.
  int updates_before(int stage, int minibatch) const {
    const auto& updates = stages_[as_size(stage)];
    const auto end = std::ranges::lower_bound(updates, minibatch, {}, &AppliedUpdate::minibatch);
    return static_cast<int>(end - updates.begin());
  }

  /// The versions that updates of mini-batches [begin, begin + length) read, as one period.
  Recurrence period(int begin, int length) const {
    std::vector<int> first;
    for (int stage = 0; stage < schedule_.shape.stages; ++stage)
      first.push_back(updates_before(stage, begin));
    Recurrence period{.rules = schedule_.rules, .minibatches = length};
    for (int stage = 0; stage < schedule_.shape.stages; ++stage) {
      auto& updates = period.stages.emplace_back();
      const int end = updates_before(stage, begin + length);
      for (int i = first[as_size(stage)]; i < end; ++i)
        updates.push_back(update_of(stages_[as_size(stage)][as_size(i)], first));
    }
    return period;
  }

 private:
  /// Worker, stage and replica, version, steps ahead and rule: a prediction that somebody makes.
  using Made = std::array<int, 6>;

  static Made made(int worker, const Action& action, const WeightKey& key) {
    return {worker, action.stage, action.replica, key.version, key.ahead, key.rule};
  }

  const Action& action(ActionPlace place) const { return action_at(schedule_, place); }

  void collect_updates(std::size_t worker) {
    const auto& actions = schedule_.workers[worker];
    std::map<std::pair<int, int>, std::vector<ActionPlace>> open;
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const Action& each = actions[i];
      auto& backwards = open[{each.stage, each.replica}];
      if (makes_weight_gradient(each.kind))
        backwards.emplace_back(static_cast<int>(worker), static_cast<int>(i));
      if (each.kind != ActionKind::Update) continue;
      auto& updates = stages_[as_size(each.stage)];
      const auto number = as_size(versions_.workers[worker][i].latest);
      if (number >= updates.size()) updates.resize(number + 1);
      AppliedUpdate& update = updates[number];
      update.minibatch = each.minibatch;
      update.scale = each.scale;
      update.backwards.insert(update.backwards.end(), backwards.begin(), backwards.end());
      backwards.clear();
    }
  }

  /// Notes the scale that each prediction is made with: that of the stage's next update.
  void collect_scales(std::size_t worker) {
    const auto& actions = schedule_.workers[worker];
    std::map<std::pair<int, int>, double> next;
    for (std::size_t i = actions.size(); i-- > 0;) {
      const Action& each = actions[i];
      double& scale = next.try_emplace({each.stage, each.replica}, 1).first->second;
      if (each.kind == ActionKind::Update) scale = each.scale;
      const ActionWeights& weights = versions_.workers[worker][i];
      if (weights.makes) scales_[made(static_cast<int>(worker), each, weights.key)] = scale;
    }
  }

  Reading reading_of(ActionPlace place, const std::vector<int>& first) const {
    const Action& pass = action(place);
    const WeightKey& key = versions_.at(place).key;
    Reading reading{
        .version = key.version - first[as_size(pass.stage)], .ahead = key.ahead, .rule = key.rule};
    if (key.ahead != 0) reading.scale = scales_.at(made(place.first, pass, key));
    return reading;
  }

  double share_of(const Action& pass) const {
    const PipelineShape& shape = schedule_.shape;
    const int of_all = pass.replica * shape.whole_microbatches() + pass.microbatch / shape.slices;
    return shares_[as_size(of_all)] / shape.slices;
  }

  StageUpdate update_of(const AppliedUpdate& applied, const std::vector<int>& first) const {
    StageUpdate update{.scale = applied.scale};
    for (const ActionPlace& place : applied.backwards) {
      const Action& backward = action(place);
      GradientTerm term{.weight = backward.scale * share_of(backward),
                        .backward = reading_of(place, first)};
      Action forward = backward;
      for (forward.stage = 0; forward.stage <= backward.loss; ++forward.stage)
        term.forward.push_back(reading_of(index_.forward(forward), first));
      add(update.terms, std::move(term));
    }
    return update;
  }

  /// Adds a term; terms with equal readings are one.
  static void add(std::vector<GradientTerm>& terms, GradientTerm term) {
    for (GradientTerm& known : terms)
      if (known.forward == term.forward && known.backward == term.backward) {
        known.weight += term.weight;
        return;
      }
    terms.push_back(std::move(term));
  }

  const Schedule& schedule_;
  const PassIndex& index_;
  const Versions& versions_;
  std::vector<std::vector<AppliedUpdate>> stages_;  ///< [stage][update]
  std::map<Made, double> scales_;
  std::vector<double> shares_;  ///< SteadyStateOptions::shares
};

/// The shortest period that enough consecutive parts of the schedule's second half repeat.
std::optional<Recurrence> period_of(const ProvedSchedule& proved,
                                    const SteadyStateOptions& options) {
  const Ledger ledger(proved, options);
  const int minibatches = proved.schedule.shape.minibatches;
  const int begin = minibatches / 2, parts = options.periodic ? 3 : 24;
  for (int length = 1; length <= kLongestPeriod; ++length) {
    if (begin + parts * length > minibatches) break;
    Recurrence period = ledger.period(begin, length);
    bool equal = std::ranges::none_of(period.stages, &std::vector<StageUpdate>::empty);
    for (int part = 1; equal && part < parts; ++part)
      equal = ledger.period(begin + part * length, length) == period;
    if (equal) return period;
  }
  return {};
}

}  // namespace

bool is_periodic(const ScheduleMaker& make) {
  constexpr int kExamined = 200;  // mini-batches; drawn delays are not equal in so many
  try {
    return find_loop(make, kExamined).has_value();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Bug) throw;
    return false;
  }
}

Recurrence steady_recurrence(const ScheduleMaker& make, const SteadyStateOptions& options) {
  const PipelineShape shape = make(1).shape;
  // A pipe has filled after as many mini-batches as its stages need micro-batches.
  int minibatches = 2 * ((shape.stages - 1) / shape.microbatches) + 8;
  for (;; minibatches *= 2) {
    const ProvedSchedule proved = prove(make(minibatches));
    if (auto period = period_of(proved, options)) return *std::move(period);
    if (2 * std::ssize(proved.order) > (options.periodic ? kMostActions : kMostWithoutRepeats))
      throw Error(
          ErrorKind::Experiment,
          concat("no stability limit: the schedule of this scheme is not periodic within the ",
                 counted(minibatches, "mini-batch"), " examined"));
  }
}

/// Update i of a period applies the gradient of update i − `updates`, which is one of the same
/// period or of one before; the versions that it has read are older by the updates of the periods
/// between.
Recurrence with_delayed_gradients(const Recurrence& recurrence, int updates) {
  Recurrence delayed = recurrence;
  for (std::size_t k = 0; k < delayed.stages.size(); ++k) {
    const auto& own = recurrence.stages[k];
    const int count = static_cast<int>(own.size());
    for (int i = 0; i < count; ++i) {
      const int from = ((i - updates) % count + count) % count;
      const int periods = (from + updates - i) / count;
      StageUpdate& update = delayed.stages[k][as_size(i)];
      update.terms = own[as_size(from)].terms;
      for (GradientTerm& term : update.terms) {
        term.backward.version -= periods * count;
        for (std::size_t j = 0; j < term.forward.size(); ++j)
          term.forward[j].version -= periods * static_cast<int>(recurrence.stages[j].size());
      }
    }
  }
  return delayed;
}

StageDelay delay_of(const Recurrence& recurrence, int stage) {
  StageDelay delay;
  const auto& updates = recurrence.stages[as_size(stage)];
  for (std::size_t i = 0; i < updates.size(); ++i)
    for (const GradientTerm& term : updates[i].terms) {
      const int applied_to = static_cast<int>(i);
      delay.forward = std::max(delay.forward, applied_to - term.forward[as_size(stage)].version);
      delay.backward = std::max(delay.backward, applied_to - term.backward.version);
    }
  return delay;
}

}  // namespace pipewright
