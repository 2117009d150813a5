// SPDX-License-Identifier: Apache-2.0
// Schedules with weights from CSV files, an action a line: what `schedule --csv` has written is
// read as what it was, goes on beyond the file, and what is wrong is named with its line.
#include "core/schedule/action_list.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "core/base/as_size.h"
#include "core/drawing/render.h"
#include "core/schedule/builders.h"
#include "core/schedule/prove.h"
#include "core/system/file.h"
#include "tests/unit/schemes/scheme_cases.h"

namespace pipewright {
namespace {

/// The same schedule with one way to write it: each rule of a prediction once, in the order in
/// which passes name them; no versions from before that nobody reads.
Schedule canonical(Schedule schedule) {
  std::vector<PredictionRule> rules{{}};
  std::vector<int> earlier(as_size(schedule.shape.stages), 0);
  for (auto& actions : schedule.workers)
    for (Action& each : actions) {
      if (!facts_of(each.kind).of_loss) each.loss = 0;  // it has none
      const bool of_forward = each.weights.source == Weights::Source::OfForward;
      if (!is_pass(each.kind) || of_forward) {  // they name no rule
        each.weights = of_forward ? Weights::of_forward() : Weights::latest();
        continue;
      }
      const PredictionRule rule = schedule.rules.at(as_size(each.weights.rule));
      const auto found = std::ranges::find(rules, rule);
      each.weights.rule = static_cast<int>(found - rules.begin());
      if (found == rules.end()) rules.push_back(rule);
      if (each.weights.source == Weights::Source::Version)
        earlier[as_size(each.stage)] =
            std::max(earlier[as_size(each.stage)], -each.weights.version);
    }
  schedule.rules = rules;
  schedule.earlier = earlier;
  for (std::vector<int>& losses : schedule.learns_from) std::ranges::sort(losses);
  return schedule;
}

/// Where two schedules differ; "" if they do not.
std::string difference(const Schedule& a, const Schedule& b) {
  const Schedule one = canonical(a), other = canonical(b);
  if (one == other) return {};
  std::string text;
  if (one.shape != other.shape) text += "shape ";
  if (one.learns_from != other.learns_from) text += "learns_from ";
  if (one.auxiliary != other.auxiliary) text += "auxiliary ";
  if (one.rules != other.rules) text += "rules ";
  if (one.earlier != other.earlier) text += "earlier ";
  for (std::size_t w = 0; w < std::min(one.workers.size(), other.workers.size()); ++w)
    for (std::size_t i = 0; i < std::min(one.workers[w].size(), other.workers[w].size()); ++i)
      if (const Action& x = one.workers[w][i], &y = other.workers[w][i]; x != y)
        return concat(text, "worker ", w, " action ", i, ": ", action_name(x, 2), " ",
                      weights_text(x.weights, one.rules), " loss ", x.loss, " scale ", x.scale,
                      " and ", action_name(y, 2), " ", weights_text(y.weights, other.rules),
                      " loss ", y.loss, " scale ", y.scale);
  return text + "numbers of actions";
}

std::filesystem::path file_with(const std::string& text) {
  const auto path =
      std::filesystem::path(testing::TempDir()) / concat("pipewright_actions_", ::getpid(), ".csv");
  write_file(path, text);
  return path;
}

/// What the scheme csv_schedule makes of a file with that text.
Schedule from_text(const std::string& text, PipelineShape shape) {
  return schedule_of("csv_schedule", concat("{file: ", file_with(text).string(), "}"), shape);
}

/// The stages' workers, which files always name.
PipelineShape placed(const Scheme& scheme, PipelineShape shape) {
  if (shape.placement.empty()) shape.placement = scheme.placement(shape.stages);
  for (int stage = 0; shape.placement.empty() && stage < shape.stages; ++stage)
    for (int k = 0; k < shape.stages; ++k) shape.placement.push_back(k);
  return shape;
}

const std::vector<PipelineShape> kShapes{
    {.stages = 4, .minibatches = 7},
    {.stages = 3, .microbatches = 4, .minibatches = 5},
    {.stages = 2, .replicas = 2, .microbatches = 2, .minibatches = 4},
    {.stages = 4, .minibatches = 6, .placement = {0, 1, 0, 1}},
    {.stages = 1, .minibatches = 3}};

TEST(ActionList, EverySchemeIsReadAsItWasWritten) {
  int compared = 0;
  for (const SchemeCase& each : every_scheme())
    for (const PipelineShape& shape : kShapes) {
      const SchemeReading reading(each.name, each.options);
      Schedule schedule;
      const PipelineShape at = placed(*reading.scheme, shape);
      try {
        schedule = reading.scheme->schedule(at);
      } catch (const Error&) {  // the scheme does not take this shape
        continue;
      }
      const std::string text = render_csv(prove(schedule));
      EXPECT_EQ(difference(from_text(text, at), schedule), "") << scheme_text(each);
      ++compared;
    }
  EXPECT_GT(compared, 300);
}

TEST(ActionList, ReplicasThatShareWorkersAreReadAsTheyWereWritten) {
  for (const SchemeCase& each : schemes_that_share_workers())
    for (const int replicas : {2, 4}) {
      const Schedule schedule =
          schedule_of(each.name, each.options,
                      {.stages = 4, .replicas = replicas, .microbatches = 4, .minibatches = 3});
      EXPECT_EQ(difference(from_text(render_csv(prove(schedule)), schedule.shape), schedule), "")
          << scheme_text(each);
    }
}

TEST(ActionList, AFileGoesOnAsItsSchemeDoes) {
  int compared = 0;
  for (const char* name : {"pipedream", "spectrain", "pipeoptim", "pipedream_2bw", "xpipe", "gpipe",
                           "one_f_one_b", "zb_h1", "zb_h2", "model_parallel", "interlocking"})
    for (PipelineShape shape : {PipelineShape{.stages = 3, .microbatches = 4},
                                PipelineShape{.stages = 4, .microbatches = 4}}) {
      const SchemeReading reading(name, "{}");
      shape = placed(*reading.scheme, shape);
      shape.minibatches = 96;
      const std::string text = render_csv(prove(reading.scheme->schedule(shape)));
      for (const int minibatches : {1, 2, 5, 95, 97, 100, 107, 1000}) {
        shape.minibatches = minibatches;
        const Schedule whole = from_text(text, shape);
        EXPECT_NO_THROW(prove(whole)) << name << ", " << minibatches;
        EXPECT_EQ(difference(whole, reading.scheme->schedule(shape)), "")
            << name << ", " << minibatches;
        ++compared;
      }
    }
  EXPECT_EQ(compared, 11 * 2 * 8);
}

/// An order that no built-in scheme has: one stage with three forwards before the first backward,
/// which reads a version of its own choice.
constexpr const char* kByHand =
    "worker,kind,stage,minibatch,weights\n"
    "0,forward,0,0,latest\n"
    "0,forward,0,1,latest+1 lookahead 0.9 last_lr\n"
    "0,backward,0,0,\n"
    "0,update,0,0,\n"
    "0,backward,0,1,0\n"
    "0,update,0,1,\n";

TEST(ActionList, LeftOutColumnsHaveDefaults) {
  const Schedule schedule = from_text(kByHand, {.stages = 1, .minibatches = 2, .placement = {0}});
  const auto& actions = schedule.workers.at(0);
  ASSERT_EQ(actions.size(), 6U);
  EXPECT_EQ(actions[0].weights, Weights::latest());
  EXPECT_EQ(actions[1].weights, Weights::latest(1, 1));
  EXPECT_EQ(actions[2].weights, Weights::of_forward());
  EXPECT_EQ(actions[4].weights, Weights::of_version(0));
  const PredictionRule rule{.kind = PredictionRule::Kind::Lookahead, .decay = 0.9, .last_lr = true};
  EXPECT_EQ(schedule.rules.at(1), rule);
  EXPECT_EQ(weights_text(actions[1].weights, schedule.rules), "latest+1 lookahead 0.9 last_lr");
  EXPECT_NO_THROW(prove(schedule));
}

/// "" or the first line of what is wrong, without the folder of the file.
std::string refusal(const std::string& text,
                    PipelineShape shape = {.stages = 1, .minibatches = 2}) {
  try {
    prove(from_text(text, shape));
  } catch (const Error& error) {
    std::string what = error.what();
    what = what.substr(0, what.find('\n'));
    const std::string folder = std::filesystem::path(testing::TempDir()).string();
    for (std::size_t at = what.find(folder); at != std::string::npos; at = what.find(folder))
      what.erase(at, folder.size());
    const std::string file = concat("pipewright_actions_", ::getpid(), ".csv");
    for (std::size_t at = what.find(file); at != std::string::npos; at = what.find(file))
      what.replace(at, file.size(), "f.csv");
    return what;
  }
  return {};
}

std::string changed(const std::string& from, const std::string& to) {
  std::string text = kByHand;
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw std::invalid_argument(from);
  return text.replace(at, from.size(), to);
}

TEST(ActionList, WhatIsWrongIsNamedWithItsPlace) {
  EXPECT_EQ(refusal(kByHand), "");
  for (const auto& [text, part] : std::vector<std::pair<std::string, std::string>>{
           {changed("weights\n", "wheights\n"),
            "f.csv:1:29: 'wheights' is no column; did you mean 'weights'?"},
           {changed("stage,", "worker,"), "f.csv:1:13: the column worker is there twice"},
           {"worker,kind,stage\n0,forward,0\n",
            "f.csv:1:1: there is no column minibatch; expected"},
           {changed("0,forward,0,0,latest", "0,forward,0,0"),
            "f.csv:2:1: there are 4 fields; expected 5"},
           {changed("0,forward,0,0,latest", "0,forward,0,0,latest,"),
            "f.csv:2:22: there are more fields"},
           {changed("0,forward", "x,forward"),
            "f.csv:2:1: the worker 'x' is no whole number from 0 to"},
           {changed("0,forward", "0,froward"),
            "f.csv:2:3: 'froward' is no kind of action; did you mean"},
           {changed("forward,0,1", "forward,0,-1"),
            "f.csv:3:13: the minibatch '-1' is no whole number"},
           {changed("latest+1 lookahead 0.9", "latest+1 lookahead"),
            "f.csv:3:15: the weights 'latest+1 lookahead last_lr' are none"},
           {changed("latest+1", "newest+1"), "f.csv:3:15: the weights 'newest+1"},
           {changed("latest+1", "latest+-1"), "f.csv:3:15: the weights 'latest+-1"},
           {changed("latest+1", "latest+99999999999"), "f.csv:3:15: the weights"},
           {changed("last_lr", "last_lr last_lr"), "f.csv:3:15: the weights"},
           {changed("last_lr", "last_lr each_lr"), "f.csv:3:15: the weights"},
           {changed("0,backward,0,0", "1,backward,0,0"),
            "f.csv:4:1: stage 0 of replica 0 is on worker 1 here, but on worker 0 above"},
           {"worker,kind,stage,minibatch\n",
            "f.csv:1:1: the file has no action below its first line"},
           {"worker,kind,stage,minibatch\n0,forward,1,0\n",
            "f.csv:1:1: stage 0 of replica 0 has no action"},
       })
    EXPECT_EQ(refusal(text).substr(0, part.size()), part) << text;
  EXPECT_EQ(refusal(kByHand, {.stages = 1, .minibatches = 300}).substr(0, 37),
            "the schedule in f.csv has 2 mini-batc");
  EXPECT_EQ(refusal(kByHand, {.stages = 2, .minibatches = 2}),
            "pipeline.stages is 2; the schedule in f.csv has 1");
  EXPECT_EQ(refusal(kByHand, {.stages = 1, .replicas = 2, .minibatches = 2}),
            "pipeline.replicas is 2; the schedule in f.csv has 1");
}

/// What the proof finds is said of the file's line.
TEST(ActionList, TheProofNamesTheLine) {
  EXPECT_EQ(refusal(changed("0,backward,0,1,0", "0,backward,0,1,1")), "")
      << "a backward may read any version that there is";
  const std::string twice = refusal(changed("0,update,0,1,\n", "0,update,0,1,\n0,backward,0,0,\n"));
  EXPECT_NE(twice.find("(f.csv:8)"), std::string::npos) << twice;
  const std::string future = refusal(changed("0,backward,0,1,0", "0,backward,0,1,7"));
  EXPECT_NE(future.find("(f.csv:6)"), std::string::npos) << future;
}

}  // namespace
}  // namespace pipewright
