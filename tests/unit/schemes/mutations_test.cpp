// SPDX-License-Identifier: Apache-2.0
// One slip in a right schedule — an action lost, done twice, swapped, on the wrong worker, of the
// wrong loss, version or micro-batch — is refused by name, or leaves a schedule that is right too.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <regex>
#include <set>

#include "core/cost/cost_table.h"
#include "core/drawing/render.h"
#include "core/schedule/prove.h"
#include "core/schedule/rewrites/offload.h"
#include "core/schedule/rewrites/recompute.h"
#include "core/schedule/versions.h"
#include "core/simulation/simulate.h"
#include "tests/unit/schedule/naive_reading.h"
#include "tests/unit/schemes/scheme_cases.h"

namespace pipewright {
namespace {

using Change = std::function<void(Schedule&, std::size_t worker, std::size_t index)>;

/// As gradient rules want it that read W_read, or are over the model.
Schedule comparing(Schedule schedule) {
  schedule.updates_compare = true;
  return schedule;
}
Schedule meeting(Schedule schedule) {
  schedule.updates_meet = true;
  return schedule;
}

/// Small enough to try everything, with every kind of action there is; each schedule once.
std::vector<Schedule> made_right() {
  std::vector<Schedule> all;
  for (const SchemeCase& each : every_scheme())
    for (PipelineShape shape :
         {PipelineShape{.stages = 3, .minibatches = 4},
          PipelineShape{.stages = 3, .microbatches = 3, .minibatches = 2},
          PipelineShape{.stages = 2, .replicas = 2, .microbatches = 2, .minibatches = 2},
          PipelineShape{.stages = 3, .minibatches = 2, .placement = {0, 1, 0}}}) {
      if (each.name == "pipedream_2bw") shape.microbatches = shape.stages;
      if (each.name == "data_parallel") {
        shape.stages = 1;
        shape.placement.clear();
      }
      if (const auto own = SchemeReading(each.name, each.options).scheme->placement(shape.stages);
          !own.empty())
        shape.placement = own;
      Schedule schedule = schedule_of(each.name, each.options, shape);
      const bool known = std::any_of(all.begin(), all.end(), [&](const Schedule& other) {
        return other.workers == schedule.workers;
      });
      if (!known) all.push_back(std::move(schedule));
    }
  for (const SchemeCase& each : schemes_that_share_workers())
    for (const int stages : {2, 4})
      all.push_back(schedule_of(
          each.name, each.options,
          shape_that_shares(
              each.name, {.stages = stages, .replicas = 2, .microbatches = 2, .minibatches = 2})));
  for (const int stages : {1, 3})
    all.push_back(schedule_of(
        "seq1f1b", "{}", {.stages = stages, .microbatches = 4, .slices = 2, .minibatches = 2}));
  const PipelineShape in_three{.stages = 2, .microbatches = 3, .slices = 3};
  all.push_back(schedule_of("gpipe", "{}", in_three));
  all.push_back(with_recomputation(schedule_of("seq1f1b", "{}", in_three), Recomputation::Always));
  for (const char* name : {"gpipe", "pipedream", "interlocking"})
    all.push_back(with_recomputation(
        schedule_of(name, "{}", {.stages = 3, .microbatches = 2, .minibatches = 2}),
        Recomputation::Always));
  for (const char* name : {"gpipe", "pipedream", "zb_h1", "interlocking"})
    for (const int ahead : {0, 1})
      all.push_back(with_offload(
          schedule_of(name, "{}", {.stages = 3, .microbatches = 3, .minibatches = 2}), ahead));
  // With gradient rules.
  const PipelineShape one{.stages = 3, .minibatches = 4};
  const PipelineShape several{.stages = 2, .microbatches = 2, .minibatches = 3};
  for (const char* name : {"pipedream", "spectrain", "pipemare", "interlocking", "zb_h1"})
    all.push_back(comparing(schedule_of(name, "{}", one)));
  for (const char* name : {"gpipe", "pipedream_2bw", "zb_h1"}) {
    all.push_back(comparing(schedule_of(name, "{}", several)));
    if (std::string(name) != "pipedream_2bw") all.push_back(meeting(all.back()));
  }
  all.push_back(meeting(
      schedule_of("zb_v", "{}",
                  {.stages = 4, .microbatches = 2, .minibatches = 2, .placement = {0, 1, 1, 0}})));
  return all;
}

const std::vector<Schedule>& right_schedules() {
  static const std::vector<Schedule> all = made_right();
  return all;
}

/// Links that share a bus, so that who comes first matters; stages unlike each other.
Simulation simulated(const Schedule& schedule) {
  std::vector<StageCost> costs = equal_costs(schedule.shape.stages);
  for (std::size_t k = 0; k < costs.size(); ++k) {
    costs[k].forward += 0.25 * static_cast<double>(k);
    costs[k].head = costs[k].update = 0.5;
    costs[k].input_bytes = costs[k].output_bytes = 1000;
    costs[k].activation_bytes = costs[k].parameter_bytes = 100;
  }
  Hardware hardware = ideal_hardware(schedule.shape.workers());
  hardware.within = {.latency = 0.125, .bandwidth = 4000};
  hardware.host = {.latency = 0.125, .bandwidth = 100};
  hardware.buses = {{.name = "bus", .devices = {0, 1}, .bandwidth = 3000}};
  return simulate(prove(schedule), costs, hardware);
}

/// Every action has run once, after the one before it on its worker and after what it needs.
void expect_run_to_its_end(const Schedule& schedule) {
  const Simulation simulation = simulated(schedule);
  const PassIndex index(schedule);
  for (std::size_t w = 0; w < schedule.workers.size(); ++w) {
    double free = 0;
    std::map<naive::Pass, double> copied;  // when the copy ended
    for (std::size_t i = 0; i < schedule.workers[w].size(); ++i) {
      if (i > 0 && schedule.workers[w][i - 1].with_next) {  // beside it, and so at the same time
        EXPECT_EQ(simulation.spans[w][i].begin, simulation.spans[w][i - 1].begin);
        EXPECT_EQ(simulation.spans[w][i].end, free);
        continue;
      }
      const Span& span = simulation.spans[w][i];
      if (goes_on_beside(schedule.workers[w][i].kind)) {  // beside the others
        EXPECT_GE(span.begin, free);
        EXPECT_GE(span.end, span.begin);
        copied[naive::pass(schedule.workers[w][i])] = span.end;
        continue;
      }
      if (is_pass(schedule.workers[w][i].kind))
        for (const char copy : {'o', 'f'}) {
          const Action& needs = schedule.workers[w][i];
          const auto before = copied.find(naive::pass(copy, needs, needs.stage, -1));
          EXPECT_GE(span.begin, before == copied.end() ? 0 : before->second);
        }
      const ActionPlace input = index.input_of(schedule.workers[w][i]);
      const double made =
          input == kNowhere ? 0 : simulation.spans[as_size(input.first)][as_size(input.second)].end;
      EXPECT_GE(span.begin, std::max(free, made));
      EXPECT_GE(span.end, span.begin);
      free = span.end;
    }
    EXPECT_LE(free, simulation.makespan);
  }
}

/// Every update that compares has what the forwards of its gradient have read, which is still
/// there.
void expect_what_is_compared(const Schedule& schedule) {
  const Versions versions = resolve_versions(schedule, PassIndex(schedule));
  for (std::size_t w = 0; w < schedule.workers.size(); ++w) {
    std::map<std::array<int, 3>, WeightKey> read;  // by stage, replica and mini-batch
    std::set<std::pair<std::array<int, 2>, WeightKey>> gone;
    for (std::size_t i = 0; i < schedule.workers[w].size(); ++i) {
      const Action& action = schedule.workers[w][i];
      const ActionWeights& weights = versions.workers[w][i];
      const std::array<int, 2> stage{action.stage, action.replica};
      const std::array<int, 3> gradient{action.stage, action.replica, action.minibatch};
      if (action.kind == ActionKind::Forward) read[gradient] = weights.key;
      const WeightKey now{weights.latest, 0, 0};
      std::optional<WeightKey> expected;
      if (action.kind == ActionKind::Update && schedule.updates_compare &&
          read.contains(gradient) && read[gradient] != now)
        expected = read[gradient];
      EXPECT_EQ(weights.read, expected) << action_name(action, schedule.shape.microbatches);
      EXPECT_FALSE(expected && gone.contains({stage, *expected}))
          << action_name(action, schedule.shape.microbatches);
      for (const WeightKey& key : weights.frees) gone.insert({stage, key});
      if (weights.in_place) gone.insert({stage, now});
    }
  }
}

/// The text of prove()'s refusal, "" when it accepts. It must accept what the architecture's
/// words allow, and no more; and what it accepts can be simulated.
std::string refusal_of_schedule(const Schedule& schedule) {
  const std::string fault = naive::fault(schedule);
  try {
    const std::vector<ActionPlace> order = prove(schedule).order;
    EXPECT_EQ(fault, "") << "and yet it was accepted";
    if (fault.empty()) {
      EXPECT_EQ(naive::fault_of_order(schedule, order), "");
      expect_run_to_its_end(schedule);
      expect_what_is_compared(schedule);
    }
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Schedule) << error.what();
    EXPECT_NE(fault, "") << "and yet it was refused: " << error.what();
    return error.what();
  }
}

/// Whether a refusal's first line speaks of this pass of its stage, or of the one it feeds or
/// is fed by: an action as in the grid ("1B3"), or in words.
bool names(const std::string& text, const Action& action) {
  const std::string line = text.substr(0, text.find('\n'));
  const std::string words = concat("of stage ", action.stage, ", replica ", action.replica,
                                   ", mini-batch ", action.minibatch);
  if (line.find(words) != std::string::npos) return true;
  for (const int stage : {action.stage - 1, action.stage, action.stage + 1})
    for (const char kind : {'F', 'H', 'r', 'B', 'b', 'W', 'o', 'f', 'R', 'U'})
      if (line.find(concat(stage, kind, action.minibatch)) != std::string::npos) return true;
  return false;
}

bool names_some_action(const std::string& text) {
  static const std::regex action("[0-9][FHrBbWofRU]-?[0-9]|no [a-z -]+ of stage");
  return std::regex_search(text.substr(0, text.find('\n')), action);
}

struct Tried {
  int refused = 0, accepted = 0;
};

enum class Blame { AnyAction, TheChangedOne };

/// Makes one change at a time, to every action it concerns, in every right schedule. Stops at the
/// first surprise.
Tried try_everywhere(const Change& change, const std::function<bool(const Action&)>& concerns,
                     Blame blame = Blame::AnyAction) {
  Tried tried;
  for (const Schedule& right : right_schedules())
    for (std::size_t w = 0; w < right.workers.size(); ++w)
      for (std::size_t i = 0; i < right.workers[w].size(); ++i) {
        const Action& action = right.workers[w][i];
        if (!concerns(action)) continue;
        Schedule wrong = right;
        change(wrong, w, i);
        if (wrong == right) continue;
        const std::string text = refusal_of_schedule(wrong);
        ++(text.empty() ? tried.accepted : tried.refused);
        const Action& changed = i < wrong.workers[w].size() ? wrong.workers[w][i] : action;
        EXPECT_TRUE(text.empty() ||
                    (blame == Blame::AnyAction ? names_some_action(text)
                                               : names(text, action) || names(text, changed)))
            << text;
        if (!testing::Test::HasFailure()) continue;
        ADD_FAILURE() << "by a change of worker " << w << ", action " << i << " ("
                      << action_name(action, right.shape.microbatches) << ") of\n"
                      << render_text(right);
        return tried;
      }
  return tried;
}

/// As try_everywhere; every one must be refused.
void expect_change_refused(const Change& change, const std::function<bool(const Action&)>& concerns,
                           Blame blame = Blame::TheChangedOne) {
  const Tried tried = try_everywhere(change, concerns, blame);
  EXPECT_GT(tried.refused, 0);
  EXPECT_EQ(tried.accepted, 0);
}

bool any(const Action&) {
  return true;
}
bool is_update(const Action& action) {
  return action.kind == ActionKind::Update;
}
bool is_reduce(const Action& action) {
  return action.kind == ActionKind::Reduce;
}
bool is_copy(const Action& action) {
  return action.kind == ActionKind::Offload || action.kind == ActionKind::Fetch;
}
bool is_pass(const Action& action) {
  return !is_update(action) && !is_reduce(action) && !is_copy(action);
}
bool is_recompute(const Action& action) {
  return action.kind == ActionKind::Recompute;
}
/// Passes that must be there and may read any weights.
bool is_free_pass(const Action& action) {
  return is_pass(action) && !is_recompute(action);
}
/// Or a relay. Both halves of a backward have the same weights.
bool is_half(const Action& action) {
  return action.kind == ActionKind::BackwardInput || action.kind == ActionKind::BackwardWeight;
}
bool has_loss(const Action& action) {
  return is_free_pass(action) && action.kind != ActionKind::Forward;
}

void drop(Schedule& schedule, std::size_t worker, std::size_t index) {
  auto& actions = schedule.workers[worker];
  actions.erase(actions.begin() + static_cast<std::ptrdiff_t>(index));
}

void insert(Schedule& schedule, std::size_t worker, std::size_t index, const Action& action) {
  auto& actions = schedule.workers[worker];
  const std::size_t at = std::min(index, actions.size());
  actions.insert(actions.begin() + static_cast<std::ptrdiff_t>(at), action);
}

/// Adds to one of an action's numbers: a neighbour's, and two that are nobody's.
void expect_number_refused(int Action::*number,
                           const std::function<bool(const Action&)>& concerns) {
  for (const int step : {-1, 1, -100, 100})
    expect_change_refused(
        [&](Schedule& schedule, std::size_t worker, std::size_t index) {
          schedule.workers[worker][index].*number += step;
        },
        concerns);
}

/// Of those that stay a forward beside another pass's backward, some wait for each other.
TEST(Mutation, AnActionBesideTheNextIsRefusedUnlessBothAreAPairThatCanBegin) {
  const Change pair = [](Schedule& schedule, std::size_t worker, std::size_t index) {
    schedule.workers[worker][index].with_next = true;
  };
  const Tried tried = try_everywhere(pair, any);
  EXPECT_GT(tried.refused, 0);
  EXPECT_GT(tried.accepted, 0);
  expect_change_refused(pair, [](const Action& each) { return each.kind != ActionKind::Forward; });
}

/// Nothing else is changed: what a gradient rule needs is there, or it is refused.
TEST(Mutation, AGradientRuleIsRefusedWhereTheScheduleHasNotWhatItNeeds) {
  for (bool Schedule::*flag : {&Schedule::updates_compare, &Schedule::updates_meet}) {
    int refused = 0, accepted = 0;
    for (const Schedule& right : right_schedules()) {
      Schedule ruled = right;
      ruled.*flag = true;
      const std::string text = refusal_of_schedule(ruled);
      ++(text.empty() ? accepted : refused);
      EXPECT_TRUE(text.empty() || names_some_action(text)) << text;
      ASSERT_FALSE(HasFailure()) << render_text(right);
    }
    EXPECT_GT(accepted, 20);
    EXPECT_GT(refused, 20);
  }
}

TEST(Mutation, APairInTurnIsRightToo) {
  const Change part = [](Schedule& schedule, std::size_t worker, std::size_t index) {
    schedule.workers[worker][index].with_next = false;
  };
  const Tried tried = try_everywhere(part, any);
  EXPECT_GT(tried.accepted, 0);
  EXPECT_EQ(tried.refused, 0);
}

TEST(Mutation, ALostPassIsMissed) {
  expect_change_refused(drop, is_free_pass);
}

TEST(Mutation, ALostRecomputationIsNot) {
  EXPECT_EQ(try_everywhere(drop, is_recompute).refused, 0);
}

TEST(Mutation, ARecomputationWithOtherWeightsIsRefusedUnlessItsBackwardsHaveThem) {
  const auto with = [](const Weights& weights) {
    return [weights](Schedule& schedule, std::size_t worker, std::size_t index) {
      schedule.workers[worker][index].weights = weights;
    };
  };
  for (const Weights& weights : {Weights::latest(), Weights::of_version(0)}) {
    const Tried tried = try_everywhere(with(weights), is_recompute);
    EXPECT_GT(tried.refused, 0);
    EXPECT_GT(tried.accepted, 0);
  }
  expect_change_refused(with(Weights::latest(1)), is_recompute);
}

TEST(Mutation, ALostHostCopyIsMissed) {
  expect_change_refused(drop, is_copy);
}

TEST(Mutation, ALostReductionIsMissed) {
  expect_change_refused(drop, is_reduce);
}

TEST(Mutation, ALostUpdateIsMissedUnlessTheNextOneAppliesItsGradientToo) {
  const Tried tried = try_everywhere(drop, is_update);
  EXPECT_GT(tried.refused, tried.accepted);
}

TEST(Mutation, NothingHappensTwice) {
  expect_change_refused(
      [](Schedule& schedule, std::size_t worker, std::size_t index) {
        insert(schedule, worker, index, Action(schedule.workers[worker][index]));
      },
      any);
}

TEST(Mutation, NothingHappensOnAnotherWorker) {
  expect_change_refused(
      [](Schedule& schedule, std::size_t worker, std::size_t index) {
        if (schedule.workers.size() == 1) return;
        const Action moved = schedule.workers[worker][index];
        drop(schedule, worker, index);
        insert(schedule, (worker + 1) % schedule.workers.size(), index, moved);
      },
      any);
}

TEST(Mutation, AWrongLossIsRefused) {
  expect_number_refused(&Action::loss, has_loss);
}

TEST(Mutation, AWrongMicroBatchIsRefused) {
  expect_number_refused(&Action::microbatch, is_pass);
  expect_number_refused(&Action::microbatch, is_copy);
}

TEST(Mutation, AWrongMiniBatchIsRefused) {
  expect_number_refused(&Action::minibatch, any);
}

/// Of an update, unless that ends a part of the other stage's gradient on the same worker.
TEST(Mutation, AWrongStageOrReplicaIsRefused) {
  expect_number_refused(&Action::stage, [](const Action& action) { return !is_update(action); });
  for (const int step : {-1, 1}) {
    const Tried tried =
        try_everywhere([&](Schedule& schedule, std::size_t worker,
                           std::size_t index) { schedule.workers[worker][index].stage += step; },
                       is_update);
    EXPECT_GT(tried.refused, 10 * tried.accepted);
  }
  expect_number_refused(&Action::replica, any);
}

TEST(Mutation, AnActionOfAnotherKindIsRefused) {
  for (const ActionKind kind :
       {ActionKind::Forward, ActionKind::Head, ActionKind::Recompute, ActionKind::Backward,
        ActionKind::BackwardInput, ActionKind::BackwardWeight, ActionKind::Offload,
        ActionKind::Fetch, ActionKind::Reduce, ActionKind::Update})
    expect_change_refused(
        [kind](Schedule& schedule, std::size_t worker, std::size_t index) {
          schedule.workers[worker][index].kind = kind;
        },
        [kind](const Action& action) {  // one more update in between is allowed
          return kind != ActionKind::Update || !is_recompute(action);
        },
        Blame::AnyAction);
}

/// The weights each pass reads.
std::map<naive::Pass, WeightKey> weights_by_pass(const Schedule& schedule) {
  const Versions versions = resolve_versions(schedule, PassIndex(schedule));
  std::map<naive::Pass, WeightKey> all;
  for (std::size_t w = 0; w < schedule.workers.size(); ++w)
    for (std::size_t i = 0; i < schedule.workers[w].size(); ++i)
      if (is_pass(schedule.workers[w][i]))
        all[naive::pass(schedule.workers[w][i])] = versions.workers[w][i].key;
  return all;
}

/// What is independent may change places: no input is missed, and no pass reads other weights.
TEST(Mutation, ASwapIsHarmlessOrRefused) {
  int harmless = 0;
  for (const std::size_t distance : {1u, 2u, 3u}) {
    const Tried tried = try_everywhere(
        [&](Schedule& schedule, std::size_t worker, std::size_t index) {
          auto& actions = schedule.workers[worker];
          if (index + distance >= actions.size()) return;
          const auto first = actions.begin() + static_cast<std::ptrdiff_t>(index);
          const auto last = first + static_cast<std::ptrdiff_t>(distance);
          const bool across_update = std::any_of(first, last + 1, is_update);
          const auto before =
              across_update ? decltype(weights_by_pass(schedule)){} : weights_by_pass(schedule);
          std::iter_swap(first, last);
          if (across_update || !naive::fault(schedule).empty()) return;
          EXPECT_EQ(weights_by_pass(schedule), before);
          ++harmless;
        },
        any);
    EXPECT_GT(tried.refused, 0);
  }
  EXPECT_GT(harmless, 0);
}

/// What may be swapped without slices may not with them: only their order makes it wrong.
TEST(Mutation, SlicesOfAMicroBatchKeepTheirOrder) {
  int refused = 0;
  for (const Schedule& right : right_schedules()) {
    if (right.shape.slices == 1) continue;
    for (std::size_t w = 0; w < right.workers.size(); ++w)
      for (std::size_t i = 0; i + 1 < right.workers[w].size(); ++i) {
        Schedule wrong = right;
        std::swap(wrong.workers[w][i], wrong.workers[w][i + 1]);
        Schedule whole = wrong;  // the same passes, each of a micro-batch
        whole.shape.slices = 1;
        if (!naive::fault(whole).empty() || naive::fault(wrong).empty()) continue;
        const std::string text = refusal_of_schedule(wrong);
        EXPECT_NE(text.find("of the slice "), std::string::npos) << text;
        ++refused;
      }
  }
  EXPECT_GT(refused, 0);
}

/// A negative version counts from before the earliest that the stage keeps.
void expect_version_refused(int version, int ahead) {
  expect_change_refused(
      [&](Schedule& schedule, std::size_t worker, std::size_t index) {
        Action& action = schedule.workers[worker][index];
        const int earlier = version < 0 ? schedule.earlier_of(action.stage) : 0;
        action.weights = Weights::of_version(version - earlier, ahead);
      },
      is_free_pass);
}

TEST(Mutation, AVersionThatNeverIsIsRefused) {
  for (const int version : {-1, 100})
    for (const int ahead : {0, 2}) expect_version_refused(version, ahead);
}

/// Gives other weights to a pass; with a backward to the forward that is run again with its
/// weights.
void give_weights(std::vector<Action>& actions, std::size_t index, const Weights& weights) {
  const Action pass = actions[index];
  actions[index].weights = weights;
  if (pass.kind != ActionKind::Backward) return;
  for (Action& each : actions)
    if (is_recompute(each) && each.weights != Weights::of_forward() && each.stage == pass.stage &&
        each.replica == pass.replica && each.minibatch == pass.minibatch &&
        each.microbatch == pass.microbatch)
      each.weights = weights;
}

TEST(Mutation, AnOldVersionIsKeptAndAPredictionFromItMustHaveBeenMadeInTime) {
  for (const int version : {0, 1})
    for (const int ahead : {0, 2}) {
      const Tried tried = try_everywhere(
          [&](Schedule& schedule, std::size_t worker, std::size_t index) {
            // Micro-batches of an update that compares cannot read different versions.
            if (schedule.updates_compare && schedule.shape.microbatches > 1) return;
            give_weights(schedule.workers[worker], index, Weights::of_version(version, ahead));
          },
          [](const Action& action) { return is_free_pass(action) && !is_half(action); });
      EXPECT_GT(tried.accepted, 0);
      EXPECT_EQ(tried.refused > 0, version > 0 || ahead > 0);
    }
}

/// Links with room for one message: what is accepted there runs to its end, too.
TEST(Mutation, WhatIsAcceptedIsSimulatedToItsEnd) {
  int accepted = 0, deadlocks = 0;
  auto try_mutant = [&](Schedule mutant) {
    if (!naive::fault(mutant).empty()) return;
    for (const int capacity : {0, 1}) {
      mutant.shape.link_capacity = capacity;
      try {
        prove(mutant);
      } catch (const Error&) {
        ++deadlocks;
        continue;
      }
      expect_run_to_its_end(mutant);
      ++accepted;
    }
  };
  for (const Schedule& right : right_schedules())
    for (std::size_t w = 0; w < right.workers.size(); ++w)
      for (std::size_t i = 0; i < right.workers[w].size(); ++i) {
        for (const std::size_t distance : {1u, 2u, 3u}) {
          if (i + distance >= right.workers[w].size()) continue;
          Schedule swapped = right;
          std::swap(swapped.workers[w][i], swapped.workers[w][i + distance]);
          try_mutant(std::move(swapped));
        }
        Schedule changed = right;
        changed.workers[w][i].weights = Weights::of_version(0);
        try_mutant(std::move(changed));
      }
  EXPECT_GE(accepted, 1000);
  EXPECT_GT(deadlocks, 0) << "one message is not always enough";
  std::printf("%d accepted mutants simulated, %d deadlocks refused\n", accepted, deadlocks);
}

}  // namespace
}  // namespace pipewright
