// SPDX-License-Identifier: Apache-2.0
// What compile() writes into the instructions.
#include "core/runtime/program.h"

#include <gtest/gtest.h>

#include <map>

#include "core/schedule/builders.h"
#include "tests/unit/schemes/scheme_cases.h"

namespace pipewright {
namespace {

/// The instruction of that name, as in "1F0".
const Instruction& named(const Program& program, const std::string& name) {
  for (const auto& worker : program.workers)
    for (const Instruction& instruction : worker)
      if (action_name(instruction.action, program.schedule.shape.microbatches) == name)
        return instruction;
  throw std::invalid_argument("there is no " + name);
}

Program compiled(const std::string& scheme, const std::string& options,
                 const PipelineShape& shape) {
  return compile(prove(schedule_of(scheme, options, shape)));
}

TEST(Program, JoinsEveryMessagesMakerToItsOneTaker) {
  for (const SchemeCase& scheme : every_scheme()) {
    if (scheme.name == "data_parallel") continue;
    const Program program =
        compiled(scheme.name, scheme.options, {.stages = 4, .microbatches = 4, .minibatches = 3});
    std::map<std::pair<int, std::int64_t>, int> sent, received;
    for (const auto& worker : program.workers)
      for (const Instruction& i : worker) {
        if (i.send.used()) ++sent[{i.send.link, i.send.turn}];
        if (i.receive.used()) ++received[{i.receive.link, i.receive.turn}];
      }
    EXPECT_EQ(sent, received) << scheme.name << scheme.options;
    EXPECT_EQ(std::ssize(sent), program.messages);
    for (const auto& [message, times] : sent)
      EXPECT_EQ(times, 1) << "link " << message.first << ", turn " << message.second;
  }
}

TEST(Program, AsksTheFirstStageForNoInputGradient) {
  const Program program = compiled("pipedream", "{}", {.stages = 3, .minibatches = 2});
  EXPECT_FALSE(named(program, "0F0").input_gradient);
  EXPECT_FALSE(named(program, "0B0").input_gradient);
  EXPECT_TRUE(named(program, "1F0").input_gradient);
  EXPECT_TRUE(named(program, "2B1").input_gradient);
  EXPECT_FALSE(named(program, "0F1").receive.used());
  EXPECT_FALSE(named(program, "0B1").send.used());
}

TEST(Program, FreesTheGraphAtTheOnlyBackward) {
  const Program program = compiled("gpipe", "{}", {.stages = 2, .microbatches = 2});
  for (const auto& worker : program.workers)
    for (const Instruction& i : worker)
      EXPECT_EQ(i.last_pass, i.action.kind == ActionKind::Backward);
}

TEST(Program, FreesTheGraphAtTheLastOfSeveralBackwards) {
  const Program program = compiled("interlocking", "{width: 2}", {.stages = 4});
  // Stage 1 relays loss 1 to stage 0 and learns from loss 2.
  EXPECT_FALSE(named(program, "1b0←1").last_pass);
  EXPECT_TRUE(named(program, "1B0").last_pass);
}

TEST(Program, WiresRelaysAndOwnLossesOfInterlocking) {
  const Program program = compiled("interlocking", "{width: 2}", {.stages = 4});
  EXPECT_EQ(named(program, "1b0←1").send.link, named(program, "0B0").receive.link);
  EXPECT_EQ(named(program, "1b0←1").send.turn, named(program, "0B0").receive.turn);
  EXPECT_TRUE(named(program, "1b0←1").input_gradient);
  EXPECT_FALSE(named(program, "1B0").input_gradient) << "stage 0 does not learn from loss 2";
  EXPECT_FALSE(named(program, "1B0").send.used());
  EXPECT_FALSE(named(program, "1b0←1").receive.used()) << "it starts from its own head";
  EXPECT_TRUE(named(program, "1F0").input_gradient);
  EXPECT_TRUE(named(program, "1H0").input_gradient) << "a backward of its loss follows";
  EXPECT_FALSE(named(program, "0H0").input_gradient) << "nobody learns from loss 0";
}

TEST(Program, SendsNothingOverLinksWithinAWorker) {
  const Program program =
      compiled("pipedream", "{}", {.stages = 4, .minibatches = 2, .placement = {0, 0, 1, 1}});
  EXPECT_TRUE(named(program, "0F0").send.used());
  EXPECT_FALSE(named(program, "0F0").send.crosses);
  EXPECT_TRUE(named(program, "1F0").send.crosses);
  EXPECT_EQ(named(program, "1F0").send.link, named(program, "2F0").receive.link);
  EXPECT_EQ(named(program, "1F0").send.link, named(program, "1F1").send.link);
  EXPECT_NE(named(program, "1F0").send.link, named(program, "2B0").send.link);
  EXPECT_EQ(std::ranges::count_if(program.links, [](const Link& l) { return l.from != l.to; }), 2);
  EXPECT_EQ(program.links.size(), 6u);
  EXPECT_EQ(named(program, "1F0").send.to, 1);
}

TEST(Program, NamesTheUpdateWhoseRatePredicts) {
  const Program program = compiled("spectrain", "{}", {.stages = 3, .minibatches = 6});
  EXPECT_EQ(named(program, "0F0").update_minibatch, 0);
  EXPECT_EQ(named(program, "0F3").update_minibatch, 1)
      << "two forwards are ahead of their backwards";
  EXPECT_EQ(named(program, "2F3").update_minibatch, 3);
}

TEST(Program, NamesTheLastUpdateWhereItsRatePredicts) {
  const Program program =
      compiled("spectrain", "{prediction_lr: last}", {.stages = 3, .minibatches = 6});
  EXPECT_EQ(named(program, "0F0").update_minibatch, -1) << "the last one is before all updates";
  EXPECT_EQ(named(program, "0U0").update_minibatch, 0) << "it predicts for forward 3";
  EXPECT_EQ(named(program, "2U2").update_minibatch, 2) << "it predicts for forward 3";
  EXPECT_EQ(named(program, "2B3").update_minibatch, 3) << "a backward predicts as ever";
}

TEST(Program, NamesTheUpdatesScale) {
  const Program program =
      compiled("spectrain", "{version: 2, as_coded: true}", {.stages = 3, .minibatches = 4});
  EXPECT_EQ(named(program, "0F1").update_scale, 3);
  EXPECT_EQ(named(program, "2F1").update_scale, 1);
}

TEST(Program, PredictsInTheUpdateDirectlyBeforeThePass) {
  const Program program = compiled("spectrain", "{}", {.stages = 3, .minibatches = 6});
  const Instruction& update = named(program, "1U1");
  EXPECT_TRUE(update.weights.makes);
  EXPECT_EQ(update.weights.key, (WeightKey{2, 1, 0}));
  EXPECT_EQ(update.update_minibatch, 2) << "at the rate of the update after it";
  EXPECT_FALSE(named(program, "1F3").weights.makes);
  EXPECT_EQ(named(program, "1F3").weights.key, update.weights.key);
}

TEST(Program, PredictsBeforeThePassWhereNoUpdateIsDirectlyBefore) {
  const Program program = compiled("spectrain", "{}", {.stages = 4, .minibatches = 6});
  EXPECT_TRUE(named(program, "0F0").weights.makes) << "nothing is before it";
  EXPECT_TRUE(named(program, "2B2").weights.makes) << "a forward is before it";
  EXPECT_FALSE(named(program, "0U5").weights.makes) << "nothing is after it";
  const Program stashed = compiled("pipedream", "{}", {.stages = 3, .minibatches = 6});
  EXPECT_FALSE(named(stashed, "0U1").weights.makes) << "nobody predicts";
}

/// Whether the update of that instruction is followed by a pass of its stage that predicts.
bool pass_predicts_next(const Schedule& schedule, const Versions& versions, std::size_t worker,
                        std::size_t position) {
  const auto& actions = schedule.workers[worker];
  if (position + 1 == actions.size()) return false;
  const Action &update = actions[position], &next = actions[position + 1];
  return update.kind == ActionKind::Update && update.stage == next.stage &&
         update.replica == next.replica && versions.workers[worker][position + 1].makes;
}

TEST(Program, MakesEveryPredictionOnceWhoeverMakesIt) {
  for (const SchemeCase& scheme : every_scheme())
    for (const std::vector<int>& placement : {std::vector<int>{}, {0, 1, 0, 1}}) {
      if (scheme.name == "data_parallel") continue;
      const auto own = SchemeReading(scheme.name, scheme.options).scheme->placement(4);
      if (!placement.empty() && !own.empty() && own != placement) continue;
      const Program program =
          compiled(scheme.name, scheme.options,
                   {.stages = 4, .microbatches = 4, .minibatches = 5, .placement = placement});
      const Versions versions = prove(program.schedule).versions;
      for (std::size_t w = 0; w < program.workers.size(); ++w)
        for (std::size_t i = 0; i < program.workers[w].size(); ++i) {
          const bool moved_here = pass_predicts_next(program.schedule, versions, w, i);
          const bool moved_away = i > 0 && pass_predicts_next(program.schedule, versions, w, i - 1);
          EXPECT_EQ(program.workers[w][i].weights.makes,
                    moved_here || (versions.workers[w][i].makes && !moved_away))
              << scheme.name << scheme.options << ": "
              << action_name(program.workers[w][i].action, 4);
        }
    }
}

TEST(Program, RefusesAScheduleThatCannotBeRight) {
  Schedule schedule = schedule_of("pipedream", "{}", {.stages = 2});
  schedule.workers[1].pop_back();
  EXPECT_THROW(prove(schedule), InvalidSchedule);
}

}  // namespace
}  // namespace pipewright
