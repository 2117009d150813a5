// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/versions.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/schedule/dependencies.h"

namespace pipewright {
namespace {

/// Resolves the weights of all actions of one worker.
class WorkerVersions {
 public:
  WorkerVersions(const Schedule& schedule, const PassIndex& index, int worker)
      : schedule_(schedule),
        index_(index),
        actions_(schedule.workers[as_size(worker)]),
        worker_(worker),
        result_(actions_.size()) {}

  std::vector<ActionWeights> resolved() {
    name_keys();
    free_keys();
    return std::move(result_);
  }
  /// Puts the stages' part into Versions::waiting; after resolved().
  void give_waiting(std::vector<std::vector<int>>& all) {
    for (auto& [place, stage] : stages_)
      all[stage_index(place.first, place.second)] = std::move(stage.waiting);
  }

 private:
  struct LastUse {
    WeightKey key;
    std::size_t action = 0;
  };
  /// The keys used at one stage, grouped by version.
  struct StageKeys {
    /// The oldest version, with its predicted steps, that forwards of a mini-batch have read.
    struct Read {
      int minibatch = 0, oldest = 0;
    };
    int latest = 0;
    int earlier = 0;                             ///< Schedule::earlier
    std::vector<Read> reads;                     ///< of mini-batches without an update yet
    std::vector<int> waiting;                    ///< staleness of gradients, the oldest first
    std::vector<std::vector<LastUse>> versions;  ///< [version + earlier]

    /// Whether the version is there when the next schedule begins; asked after the first walk.
    bool outlives(int version) const { return version >= latest - earlier; }
  };

  StageKeys& keys_of(const Action& action) {
    const auto [found, fresh] = stages_.try_emplace({action.stage, action.replica});
    if (!fresh) return found->second;
    found->second.earlier = schedule_.earlier_of(action.stage);
    if (!schedule_.waiting.empty())
      found->second.waiting = schedule_.waiting[stage_index(action.stage, action.replica)];
    return found->second;
  }
  /// The key's last use so far; nullptr if it has not been used.
  static LastUse* find(StageKeys& stage, const WeightKey& key) {
    const auto version = as_size(key.version + stage.earlier);
    if (version >= stage.versions.size()) return nullptr;
    for (LastUse& each : stage.versions[version])
      if (each.key == key) return &each;
    return nullptr;
  }

  /// First walk: finds the key that each pass reads, and the last action that reads each key.
  void name_keys() {
    for (std::size_t i = 0; i < actions_.size(); ++i) {
      const Action& action = actions_[i];
      StageKeys& stage = keys_of(action);
      int& latest = stage.latest;
      ActionWeights& weights = result_[i];
      weights.latest = latest;
      if (action.kind == ActionKind::Update && schedule_.updates_compare) name_read(i, stage);
      if (action.kind == ActionKind::Update) {
        weights.staleness = staleness_at(action, stage);
        ++latest;
      }
      if (!is_pass(action.kind)) continue;
      weights.key = key_of(action, latest);
      if (weights.key.version > latest || weights.key.version < -stage.earlier)
        fail(action,
             concat("asks for version ", weights.key.version, " of its stage's weights, but only ",
                    counted(latest, "update"), latest == 1 ? " has" : " have",
                    " run by then; expected a version from ", -stage.earlier, " to ", latest));
      if (action.kind == ActionKind::Forward && schedule_.shape.training)
        note_read(action, weights.key, stage);
      const bool first = use(stage, weights.key, i);
      if (first && weights.key.ahead != 0) {
        if (weights.key.version != latest)
          fail(action, concat("predicts ", counted(weights.key.ahead, "step"), " from version ",
                              weights.key.version, ", but the newest version is ", latest,
                              " by then; a prediction must first be made while its version is "
                              "the newest"));
        weights.makes = true;
      }
    }
  }

  static void note_read(const Action& forward, const WeightKey& key, StageKeys& stage) {
    const int version = key.version + key.ahead;
    const auto known = std::ranges::find(stage.reads.rbegin(), stage.reads.rend(),
                                         forward.minibatch, &StageKeys::Read::minibatch);
    if (known == stage.reads.rend())
      stage.reads.push_back({forward.minibatch, version});
    else
      known->oldest = std::min(known->oldest, version);
  }

  /// ActionWeights::staleness of an update, which applies all gradients up to its mini-batch.
  /// Those that wait count from their own update. Where the update has none to apply, the one that
  /// begins to wait stands for it.
  int staleness_at(const Action& update, StageKeys& stage) const {
    int staleness = 0;
    std::erase_if(stage.reads, [&](const StageKeys::Read& read) {
      if (read.minibatch > update.minibatch) return false;
      staleness = std::max(staleness, stage.latest - read.oldest);
      return true;
    });
    if (schedule_.gradient_delay == 0) return staleness;
    stage.waiting.push_back(staleness);
    if (stage.waiting.size() > as_size(schedule_.gradient_delay)) {
      staleness = stage.waiting.front();
      stage.waiting.erase(stage.waiting.begin());
    }
    return staleness + schedule_.gradient_delay;
  }

  std::size_t stage_index(int stage, int replica) const {
    return as_size(replica * schedule_.shape.stages + stage);
  }

  /// Finds the weights that an update compares its own with.
  void name_read(std::size_t position, StageKeys& stage) {
    const Action& update = actions_[position];
    std::optional<WeightKey> read;
    for (int m = 0; m < schedule_.shape.microbatches; ++m) {
      Action pass = update;
      pass.microbatch = m;
      const auto [worker, forward] = index_.forward(pass);
      if (worker != worker_ || as_size(forward) > position) continue;
      const WeightKey& key = result_[as_size(forward)].key;
      if (read && *read != key)
        fail(update,
             concat("applies a gradient whose micro-batches have read different weights, of "
                    "versions ",
                    read->version, " and ", key.version,
                    "; expected the same for all, as with pipeline.microbatches: 1"));
      read = key;
    }
    if (!read || *read == WeightKey{stage.latest, 0, 0}) return;
    result_[position].read = read;
    use(stage, *read, position);
  }

  /// Second walk: finds the keys that may be freed after each action.
  void free_keys() {
    for (std::size_t i = 0; i < actions_.size(); ++i) {
      const Action& action = actions_[i];
      StageKeys& stage = keys_of(action);
      ActionWeights& weights = result_[i];
      if (action.kind == ActionKind::Update) {
        const LastUse* last = find(stage, {weights.latest, 0, 0});
        weights.in_place = (last == nullptr || last->action < i) && !stage.outlives(weights.latest);
        if (weights.read && find(stage, *weights.read)->action == i &&
            (weights.read->ahead != 0 || !stage.outlives(weights.read->version)))
          weights.frees.push_back(*weights.read);
        continue;
      }
      if (!is_pass(action.kind) || find(stage, weights.key)->action != i) continue;
      const bool stays = weights.key.ahead == 0 && (weights.key.version == weights.latest ||
                                                    stage.outlives(weights.key.version));
      if (!stays) weights.frees.push_back(weights.key);
    }
  }

  /// Records a use of the key; true if it is the first.
  static bool use(StageKeys& stage, const WeightKey& key, std::size_t action) {
    if (LastUse* known = find(stage, key)) {
      known->action = action;
      return false;
    }
    const auto version = as_size(key.version + stage.earlier);
    if (version >= stage.versions.size()) stage.versions.resize(version + 1);
    stage.versions[version].push_back({key, action});
    return true;
  }

  WeightKey key_of(const Action& action, int latest) const {
    const Weights& asked = action.weights;
    if (asked.source == Weights::Source::OfForward) {
      const auto [worker, position] = index_.forward(action);
      if (worker != worker_ || &actions_[as_size(position)] >= &action)
        fail(action,
             "computes with the weights of its forward, which has not run before it on its worker");
      return result_[as_size(position)].key;
    }
    const int version = asked.source == Weights::Source::Latest ? latest : asked.version;
    return {version, asked.ahead, asked.ahead == 0 ? 0 : asked.rule};
  }

  [[noreturn]] void fail(const Action& action, const std::string& message) const {
    throw MissingWeights(concat(action_name(action, schedule_.shape.microbatches), " ", message),
                         {worker_, static_cast<int>(&action - actions_.data())});
  }

  const Schedule& schedule_;
  const PassIndex& index_;
  const std::vector<Action>& actions_;
  int worker_;
  std::map<std::pair<int, int>, StageKeys> stages_;  ///< (stage, replica)
  std::vector<ActionWeights> result_;
};

/// Counts the copies alive on one worker, action by action; the maximum of each stage goes into
/// `stages`.
void count_copies(const Schedule& schedule, const std::vector<Action>& actions,
                  const std::vector<ActionWeights>& weights,
                  std::vector<std::vector<StageVersions>>& stages) {
  std::map<std::pair<int, int>, int> alive;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const Action& action = actions[i];
    const int first = 1 + schedule.earlier_of(action.stage);
    int& copies = alive.try_emplace({action.stage, action.replica}, first).first->second;
    if (weights[i].makes) ++copies;
    if (action.kind == ActionKind::Update && !weights[i].in_place) ++copies;
    int& most = stages[as_size(action.stage)][as_size(action.replica)].copies;
    most = std::max(most, copies);
    copies -= static_cast<int>(weights[i].frees.size());
  }
}

/// Measures the staleness of each stage in the steady state, at the passes of the last mini-batch;
/// where its micro-batches differ, the value furthest from zero counts. Walks backwards, so that
/// the update that applies a pass's gradient is known.
void measure_staleness(const Schedule& schedule, const std::vector<Action>& actions,
                       const std::vector<ActionWeights>& weights,
                       std::vector<std::vector<StageVersions>>& stages) {
  auto further = [](int& worst, int staleness) {
    if (std::abs(staleness) > std::abs(worst)) worst = staleness;
  };
  const int last = schedule.shape.minibatches - 1;
  std::map<std::pair<int, int>, int> applied;  // version that the next update is applied to
  for (std::size_t i = actions.size(); i-- > 0;) {
    const Action& action = actions[i];
    if (action.minibatch != last) continue;
    if (action.kind == ActionKind::Update)
      applied[{action.stage, action.replica}] = weights[i].latest;
    const auto to = applied.find({action.stage, action.replica});
    if (!is_pass(action.kind) || to == applied.end()) continue;
    StageVersions& stage = stages[as_size(action.stage)][as_size(action.replica)];
    const int staleness = to->second - (weights[i].key.version + weights[i].key.ahead);
    if (action.kind == ActionKind::Forward) further(stage.forward_staleness, staleness);
    if (makes_weight_gradient(action.kind)) further(stage.backward_staleness, staleness);
  }
}

}  // namespace

Versions resolve_versions(const Schedule& schedule, const PassIndex& index) {
  Versions versions;
  versions.stages.assign(as_size(schedule.shape.stages),
                         std::vector<StageVersions>(as_size(schedule.shape.replicas)));
  if (schedule.gradient_delay > 0)
    versions.waiting.resize(as_size(schedule.shape.stages * schedule.shape.replicas));
  for (std::size_t worker = 0; worker < schedule.workers.size(); ++worker) {
    WorkerVersions own(schedule, index, static_cast<int>(worker));
    versions.workers.push_back(own.resolved());
    if (schedule.gradient_delay > 0) own.give_waiting(versions.waiting);
    count_copies(schedule, schedule.workers[worker], versions.workers.back(), versions.stages);
    measure_staleness(schedule, schedule.workers[worker], versions.workers.back(), versions.stages);
  }
  return versions;
}

Predictions predictions_of(const Schedule& schedule) {
  Predictions predictions;
  for_each_action(schedule, [&](ActionPlace, const Action& action) {
    if (action.weights.ahead == 0) return;
    const auto& rule = schedule.rules[as_size(action.weights.rule)];
    predictions.any |= rule.kind != PredictionRule::Kind::Drift;
    predictions.by_drift |= rule.kind == PredictionRule::Kind::Drift;
    predictions.by_lookahead |= rule.kind == PredictionRule::Kind::Lookahead;
  });
  return predictions;
}

Schedule with_rates_by_staleness(Schedule schedule, const std::function<double(int)>& factor) {
  const Versions versions = resolve_versions(schedule, PassIndex(schedule));
  for (std::size_t w = 0; w < schedule.workers.size(); ++w)
    for (std::size_t i = 0; i < schedule.workers[w].size(); ++i)
      if (Action& action = schedule.workers[w][i]; action.kind == ActionKind::Update)
        action.scale *= factor(versions.workers[w][i].staleness);
  return schedule;
}

}  // namespace pipewright
