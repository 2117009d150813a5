// What the drawings of a schedule promise. The grids and the table of weights are those of
// SpecTrain's and PipeDream's papers; tests/golden/schedule holds whole texts.
#include "core/schedule/render.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <regex>
#include <tuple>

#include "core/base/file.h"
#include "core/base/text.h"
#include "core/schedule/builders.h"

namespace pipewright {
namespace {

std::size_t as_size(int i) {
  return static_cast<std::size_t>(i);
}

std::string golden(const std::string& name) {
  return read_file(concat(PIPEWRIGHT_SOURCE_DIR, "/tests/golden/schedule/", name));
}

std::size_t count_of(const std::string& what, const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++count;
  return count;
}

std::size_t columns_of(const std::string& line) {
  return as_size(static_cast<int>(std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  })));
}

Schedule pipedream(int stages, int minibatches) {
  return pipeline_schedule({.stages = stages, .minibatches = minibatches}, {.flush = false},
                           latest_weights, forward_weights);
}

/// SpecTrain's version 1: both passes aim ⌊k/2⌋ steps beyond the version the gradient lands on.
Schedule spectrain(int stages, int minibatches) {
  return pipeline_schedule(
      {.stages = stages, .minibatches = minibatches}, {.flush = false},
      [](const PassPlace& pass) { return Weights::latest(pass.depth() + pass.stage / 2); },
      [](const PassPlace& pass) { return Weights::latest(pass.stage / 2); });
}

/// Version 2: the forward predicts D steps, the backward reuses the prediction.
Schedule spectrain_2(int stages, int minibatches) {
  return pipeline_schedule(
      {.stages = stages, .minibatches = minibatches}, {.flush = false},
      [](const PassPlace& pass) { return Weights::latest(pass.depth()); }, forward_weights);
}

/// Interlocking of width 2 on three stages: stage 0 learns from the auxiliary loss of stage 1,
/// which stage 1 relays without learning from it; stages 1 and 2 learn from the last loss.
Schedule pairwise() {
  const PipelineShape shape{.stages = 3, .minibatches = 2};
  std::vector<std::vector<Action>> orders(3);
  for (int minibatch = 0; minibatch < shape.minibatches; ++minibatch) {
    auto add = [&](ActionKind kind, int stage, int loss = 2) {
      orders[as_size(stage)].push_back(
          {.kind = kind, .stage = stage, .minibatch = minibatch, .loss = loss});
    };
    for (int stage = 0; stage < 3; ++stage) add(ActionKind::Forward, stage);
    add(ActionKind::Head, 1, 1);
    add(ActionKind::BackwardInput, 1, 1);
    add(ActionKind::Backward, 0, 1);
    add(ActionKind::Backward, 2);
    add(ActionKind::Backward, 1);
    for (int stage = 0; stage < 3; ++stage) add(ActionKind::Update, stage);
  }
  Schedule schedule = schedule_of_stages(shape, std::move(orders));
  schedule.learns_from = {{1}, {2}, {2}};
  schedule.auxiliary = {1};
  return schedule;
}

/// The papers' grid: a forward is a digit, a backward a letter in each of its slots.
std::string papers_grid(const Schedule& schedule) {
  const SlotTimes times = slot_times(schedule);
  std::string grid;
  for (std::size_t worker = 0; worker < schedule.workers.size(); ++worker) {
    std::string line(as_size(times.makespan), '.');
    for (std::size_t i = 0; i < schedule.workers[worker].size(); ++i) {
      const Action& action = schedule.workers[worker][i];
      const int number = action.minibatch + action.microbatch;
      const char first = action.kind == ActionKind::Forward ? '1' : 'A';
      for (int slot = 0; slot < slots_of(action.kind); ++slot)
        line[as_size(times.start[worker][i] + slot)] = static_cast<char>(first + number);
    }
    grid += concat("S", worker, " ", line, "\n");
  }
  return grid;
}

TEST(SlotTimes, ModelParallelHasOneMiniBatchInFlight) {
  EXPECT_EQ(
      papers_grid(pipeline_schedule({.stages = 3, .minibatches = 6}, {.one_at_a_time = true})),
      golden("slots_model_parallel.txt"));
}

TEST(SlotTimes, GPipeFillsAndDrains) {
  EXPECT_EQ(papers_grid(pipeline_schedule({.stages = 3, .microbatches = 6}, {.fill_drain = true})),
            golden("slots_gpipe.txt"));
}

TEST(SlotTimes, OneForwardOneBackward) {
  EXPECT_EQ(papers_grid(pipedream(3, 6)), golden("slots_one_f_one_b.txt"));
}

TEST(SlotTimes, FlushDoesNotChangeTheGridOfOneMiniBatch) {
  EXPECT_EQ(papers_grid(pipeline_schedule({.stages = 3, .microbatches = 6}, {.flush = true})),
            golden("slots_one_f_one_b.txt"));
}

TEST(SlotTimes, ReduceWaitsForTheLastReplica) {
  Schedule schedule = pipeline_schedule({.stages = 1, .replicas = 2, .minibatches = 2}, {});
  // Replica 1 computes the forward of mini-batch 1 before it reduces mini-batch 0.
  std::vector<Action>& late = schedule.workers[1];
  ASSERT_EQ(late[2].kind, ActionKind::Reduce);
  std::rotate(late.begin() + 2, late.begin() + 4, late.begin() + 5);
  const SlotTimes times = slot_times(schedule);
  EXPECT_EQ(times.start[0], (std::vector{0, 1, 4, 4, 4, 5, 7, 7}));
  EXPECT_EQ(times.start[1], (std::vector{0, 1, 3, 4, 4, 4, 7, 7}));
}

TEST(SlotTimes, ReduceThatOneReplicaNeverReachesNeverStarts) {
  Schedule schedule = pipeline_schedule({.stages = 1, .replicas = 2}, {});
  std::erase_if(schedule.workers[1],
                [](const Action& action) { return action.kind == ActionKind::Reduce; });
  EXPECT_EQ(slot_times(schedule).start[0], (std::vector{0, 1, kNeverStarts, kNeverStarts}));
}

TEST(SlotTimes, HeadAndRelayTakeOneSlotAndFollowTheirInputs) {
  const Schedule schedule = pairwise();
  const SlotTimes times = slot_times(schedule);
  std::map<std::tuple<ActionKind, int>, int> starts;  // of mini-batch 0
  for (std::size_t worker = 0; worker < 3; ++worker)
    for (std::size_t i = 0; i < schedule.workers[worker].size() / 2; ++i)
      starts[{schedule.workers[worker][i].kind, static_cast<int>(worker)}] = times.start[worker][i];
  EXPECT_EQ((starts[{ActionKind::Forward, 1}]), 1);
  EXPECT_EQ((starts[{ActionKind::Head, 1}]), 2);
  EXPECT_EQ((starts[{ActionKind::BackwardInput, 1}]), 3);
  EXPECT_EQ((starts[{ActionKind::Backward, 0}]), 4);  // of loss 1, relayed by stage 1
  EXPECT_EQ((starts[{ActionKind::Backward, 2}]), 3);
  EXPECT_EQ((starts[{ActionKind::Backward, 1}]), 5);
}

TEST(SlotTimes, WhatWaitsForAMissingPassNeverStarts) {
  Schedule schedule = pipedream(2, 1);
  schedule.workers[1].erase(schedule.workers[1].begin() + 1);  // the backward of stage 1
  const SlotTimes times = slot_times(schedule);
  EXPECT_EQ(times.start[0], (std::vector{0, kNeverStarts, kNeverStarts}));
  EXPECT_EQ(times.makespan, 2);
}

TEST(SlotTimes, ActionsOutsideTheShapeNeverStart) {
  Schedule schedule = pipedream(2, 1);
  schedule.workers[0][1].minibatch = 7;
  EXPECT_EQ(slot_times(schedule).start[0], (std::vector{0, kNeverStarts, kNeverStarts}));
  schedule.shape.minibatches = 0;
  EXPECT_EQ(slot_times(schedule).makespan, 0);
}

TEST(SlotTimes, ABackwardOfALossBeforeItsStageNeverStarts) {
  Schedule schedule = pipedream(2, 1);
  schedule.workers[1][1].loss = 0;
  EXPECT_EQ(slot_times(schedule).start[1], (std::vector{1, kNeverStarts, kNeverStarts}));
}

TEST(RenderText, PipeDream) {
  EXPECT_EQ(render_text(pipedream(4, 8)), golden("text_pipedream.txt"));
}

TEST(RenderText, MicroBatchesAndReplicas) {
  EXPECT_EQ(render_text(pipeline_schedule({.stages = 2, .replicas = 2, .microbatches = 2}, {})),
            golden("text_replicas.txt"));
}

TEST(RenderText, HeadsAndRelays) {
  EXPECT_EQ(render_text(pairwise()), golden("text_pairwise.txt"));
}

TEST(RenderText, NamesStagesWhereAWorkerHoldsSeveral) {
  EXPECT_EQ(render_text(
                pipeline_schedule({.stages = 4, .minibatches = 2, .placement = {0, 1, 0, 1}}, {})),
            golden("text_two_stages_each.txt"));
}

TEST(RenderText, WrapsAtTheWidthAndRepeatsTheHeader) {
  const std::string text = render_text(pipedream(4, 12), {.width = 60});
  for (const std::string& line : split(text, '\n')) EXPECT_LE(columns_of(line), 60U) << line;
  EXPECT_EQ(count_of("slot ", text), 4U);
  EXPECT_EQ(count_of("worker 3", text), 4U);
  EXPECT_NE(text.find("\nslot "), std::string::npos);
}

TEST(RenderText, DrawsEveryActionWhateverTheWidth) {
  const Schedule schedule = pipedream(3, 6);
  for (const int width : {1, 14, 23, 40, 80}) {
    const std::string text = render_text(schedule, {.width = width});
    EXPECT_EQ(count_of("F5", text), 3U) << text;
    EXPECT_EQ(count_of("B5", text), 3U) << text;
    EXPECT_EQ(count_of("|", text), 18U + 1) << text;  // and one in the legend
  }
}

TEST(RenderText, ACutIsNotDrawnAsADrain) {
  const std::string text = render_text(pipedream(4, 100), {.minibatches = 6});
  const std::vector<std::string> lines = split(text, '\n');
  EXPECT_TRUE(lines[1].ends_with("B5---|")) << text;
  EXPECT_TRUE(lines[4].ends_with("B7---|")) << text;
  EXPECT_NE(text.find("6 of 100 mini-batches"), std::string::npos);
}

TEST(RenderText, MarksTheCulprit) {
  const ActionPlace forward{1, 4};
  const std::string text = render_text(pipedream(3, 6), {.culprit = &forward});
  EXPECT_NE(text.find("▶F2◀B1---|"), std::string::npos) << text;
  const ActionPlace elsewhere{9, 0};
  EXPECT_EQ(render_text(pipedream(3, 6), {.culprit = &elsewhere}), render_text(pipedream(3, 6)));
}

TEST(RenderText, MakesRoomForACulpritThatTakesNoTime) {
  const ActionPlace update{2, 2};
  EXPECT_EQ(render_text(pipedream(3, 2), {.culprit = &update}), golden("text_culprit_update.txt"));
}

TEST(RenderText, DrawsThePartAroundALateCulprit) {
  const ActionPlace late{0, 150};
  const std::string text = render_text(pipedream(4, 100), {.minibatches = 6, .culprit = &late});
  EXPECT_NE(text.find("▶"), std::string::npos);
  EXPECT_EQ(text.find("F9 "), std::string::npos) << text;
  EXPECT_LT(columns_of(split(text, '\n')[1]), 200U);
}

TEST(RenderText, ActionsThatNeverStartStandUnderQuestionMarks) {
  Schedule schedule = pipedream(3, 3);
  std::swap(schedule.workers[2][1], schedule.workers[2][3]);  // B0 after F1, so F1 waits for ever
  std::swap(schedule.workers[1][0], schedule.workers[1][2]);  // B0 before its F0
  const ActionPlace culprit{1, 0};
  EXPECT_EQ(render_text(schedule, {.culprit = &culprit}), golden("text_deadlock.txt"));
}

TEST(RenderText, NeverThrows) {
  EXPECT_EQ(render_text(Schedule{}), "slot\n. idle\n");
  Schedule schedule = pipedream(2, 2);
  for (Action& action : schedule.workers[1]) action.loss = action.stage = -5;
  schedule.workers.emplace_back();
  EXPECT_NE(render_text(schedule, {.width = 10}).find("worker 2"), std::string::npos);
}

TEST(RenderText, NeverThrowsWhateverIsWrong) {
  std::mt19937 random(1);
  auto below = [&](std::size_t n) { return static_cast<int>(random() % n); };
  for (int round = 0; round < 300; ++round) {
    Schedule schedule = pairwise();
    for (int change = below(5); change >= 0; --change) {
      auto& worker = schedule.workers[as_size(below(3))];
      if (worker.empty()) continue;
      Action& action = worker[as_size(below(worker.size()))];
      switch (below(6)) {
        case 0: action.stage = below(5) - 1; break;
        case 1: action.minibatch = below(5) - 1; break;
        case 2: action.kind = static_cast<ActionKind>(below(6)); break;
        case 3: worker.erase(worker.begin() + below(worker.size())); break;
        case 4: std::swap(action, worker[as_size(below(worker.size()))]); break;
        case 5: schedule.shape.replicas = below(4); break;
      }
    }
    const ActionPlace culprit{below(4) - 1, below(12) - 1};
    const RenderOptions options{
        .width = below(60), .minibatches = below(3), .color = below(2) == 1, .culprit = &culprit};
    EXPECT_FALSE(render_text(schedule, options).empty());
  }
}

TEST(RenderText, ColorsOnlyWhenAsked) {
  const Schedule schedule = pipedream(2, 2);
  EXPECT_EQ(render_text(schedule).find('\033'), std::string::npos);
  const std::string colored = render_text(schedule, {.color = true});
  EXPECT_NE(colored.find("\033[34mF0\033[0m "), std::string::npos) << colored;
  EXPECT_EQ(std::regex_replace(colored, std::regex("\033\\[[0-9]*m"), ""), render_text(schedule));
}

TEST(RenderVersions, PipeDreamStashes) {
  EXPECT_EQ(render_versions(pipedream(3, 8)), golden("versions_pipedream.txt"));
}

TEST(RenderVersions, SpecTrainPredicts) {
  EXPECT_EQ(render_versions(spectrain(4, 12), 6), golden("versions_spectrain.txt"));
}

TEST(RenderVersions, MicroBatchesOfOneMiniBatchMayDiffer) {
  EXPECT_EQ(render_versions(pipeline_schedule({.stages = 2, .microbatches = 2, .minibatches = 4},
                                              {.flush = false})),
            golden("versions_microbatches.txt"));
}

TEST(RenderVersions, ReplicasAreListedOnce) {
  const std::string text =
      render_versions(pipeline_schedule({.stages = 1, .replicas = 4, .minibatches = 2}, {}));
  EXPECT_EQ(count_of("\n0  ", text), 1U) << text;
}

TEST(RenderCsv, OneLinePerAction) {
  EXPECT_EQ(render_csv(spectrain(2, 2)), golden("csv_spectrain.csv"));
  EXPECT_EQ(render_csv(pairwise()), golden("csv_pairwise.csv"));
}

using Json = nlohmann::json;

TEST(RenderTrace, EveryActionIsAnEventOfItsWorker) {
  const Schedule schedule = pipeline_schedule({.stages = 2, .replicas = 2, .minibatches = 2}, {});
  const SlotTimes times = slot_times(schedule);
  const Json trace = Json::parse(render_trace(schedule));
  std::vector<std::size_t> next(4, 0);
  for (const Json& event : trace.at("traceEvents")) {
    const std::string phase = event.at("ph");
    if (phase != "X" && phase != "i") continue;
    const std::size_t worker = event.at("tid");
    const std::size_t position = next[worker]++;
    const Action& action = schedule.workers[worker][position];
    EXPECT_EQ(event.at("ts"), 1000 * times.start[worker][position]);
    EXPECT_EQ(event.value("dur", 0), 1000 * slots_of(action.kind));
    EXPECT_EQ(event.at("args").at("minibatch"), action.minibatch);
  }
  for (std::size_t worker = 0; worker < 4; ++worker)
    EXPECT_EQ(next[worker], schedule.workers[worker].size());
}

TEST(RenderTrace, ArrowsGoFromTheSenderToTheReceiver) {
  const Json trace = Json::parse(render_trace(pipedream(3, 2)));
  std::map<int, Json> begins;
  int arrows = 0;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "s") begins[event.at("id")] = event;
    if (event.at("ph") != "f") continue;
    ++arrows;
    const Json& begin = begins.at(event.at("id"));
    const int from = begin.at("tid"), to = event.at("tid");
    EXPECT_EQ(to - from, event.at("name") == "activation" ? 1 : -1);
    EXPECT_LT(begin.at("ts").get<int>(), event.at("ts").get<int>());
  }
  EXPECT_EQ(arrows, 2 * 2 * 2);  // edges × directions × mini-batches
}

TEST(RenderTrace, StagesOfOneWorkerSendNoMessages) {
  const Schedule schedule =
      pipeline_schedule({.stages = 2, .minibatches = 2, .placement = {0, 0}}, {});
  EXPECT_EQ(render_trace(schedule).find("\"message\""), std::string::npos);
}

/// Elements closed in the order they were opened, and no bare & or < in text.
testing::AssertionResult well_formed(const std::string& xml) {
  static const std::regex tag("<(/?)([a-z]+)((?: [a-zA-Z0-9:-]+=\"[^\"<&]*\")*)(/?)>");
  std::vector<std::string> open;
  std::string text;
  auto last = xml.cbegin();
  for (std::sregex_iterator it(xml.begin(), xml.end(), tag), end; it != end; ++it) {
    const std::smatch& match = *it;
    text.append(last, match[0].first);
    last = match[0].second;
    if (match[1].length() > 0) {
      if (open.empty() || open.back() != match[2])
        return testing::AssertionFailure() << "unexpected " << match[0];
      open.pop_back();
    } else if (match[4].length() == 0) {
      open.push_back(match[2]);
    }
  }
  text = std::regex_replace(text, std::regex("&(amp|lt|gt|quot);"), "");
  if (!open.empty()) return testing::AssertionFailure() << open.back() << " stays open";
  if (text.find_first_of("<&") != std::string::npos)
    return testing::AssertionFailure()
           << "not escaped: " << text.substr(text.find_first_of("<&"), 40);
  return testing::AssertionSuccess();
}

TEST(RenderSvg, IsWellFormedWhateverTheTitle) {
  const std::string svg = render_svg(pipedream(4, 4), "a <b> & \"c\"\x01 'd'");
  EXPECT_TRUE(well_formed(svg));
  EXPECT_NE(svg.find("a &lt;b&gt; &amp; &quot;c&quot;  'd'"), std::string::npos);
  EXPECT_TRUE(well_formed(render_svg(pairwise(), "")));
  EXPECT_TRUE(well_formed(render_svg(evaluation_schedule({.stages = 2, .minibatches = 3}), "e")));
  EXPECT_TRUE(well_formed(render_weights_svg(spectrain_2(4, 9), 5, "<&>")));
}

TEST(RenderSvg, NeedsNothingFromOutside) {
  const std::string svg =
      render_svg(pipedream(4, 4), "t") + render_weights_svg(pipedream(4, 4), 2, "t");
  EXPECT_EQ(count_of("http", svg), 2U);  // the two name spaces
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_EQ(svg.find("@import"), std::string::npos);
}

TEST(RenderSvg, HasABoxPerPassAndATickPerUpdate) {
  const Schedule schedule = pipedream(3, 5);
  const std::string svg = render_svg(schedule, "t");
  EXPECT_EQ(count_of("<title>forward of mini-batch", svg), 15U);
  EXPECT_EQ(count_of("<title>backward of mini-batch", svg), 15U);
  EXPECT_EQ(count_of("stroke=\"#ee7b1c\"", svg), 15U + 1);  // and the legend's
  EXPECT_NE(svg.find("forward of mini-batch 3, stage 0; weights 1; slots"), std::string::npos);
}

TEST(RenderSvg, GoesOnBelowWhenThePageIsNotWideEnough) {
  const std::string svg = render_svg(
      pipeline_schedule({.stages = 2, .microbatches = 8, .minibatches = 12}, {}), "t", 0);
  EXPECT_GT(count_of(">worker 1<", svg), 2U);
  std::smatch width;
  ASSERT_TRUE(std::regex_search(svg, width, std::regex("width=\"([0-9]+)")));
  EXPECT_LT(std::stoi(width[1]), 1800);
}

TEST(RenderSvg, StopsAfterSoManyMiniBatches) {
  const std::string svg = render_svg(pipedream(2, 500), "t", 5);
  EXPECT_NE(svg.find("mini-batch 4, stage 0"), std::string::npos);
  EXPECT_EQ(svg.find("mini-batch 8,"), std::string::npos);
  EXPECT_NE(svg.find("…"), std::string::npos);
}

/// The rows under the heads pass, reads, stands for, applied to and staleness: texts at their x.
std::vector<std::vector<std::string>> table_of(const std::string& svg) {
  static const std::regex text("<text x=\"([0-9.]+)\"[^>]*>([^<]*)</text>");
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
  for (std::sregex_iterator it(svg.begin(), svg.end(), text), end; it != end; ++it) {
    const std::string x = (*it)[1], word = (*it)[2];
    const bool head = word == "pass" || word == "reads" || word == "stands for" ||
                      word == "applied to" || word == "staleness";
    if (head) {
      columns.push_back(x);
      continue;
    }
    const auto column = std::find(columns.begin(), columns.end(), x);
    if (column == columns.begin() && !columns.empty()) rows.emplace_back();
    if (column != columns.end()) rows.back().push_back(word);
  }
  return rows;
}

using Rows = std::vector<std::vector<std::string>>;

/// SpecTrain's worked table: mini-batch i = 3 (the papers' fourth).
TEST(RenderWeights, SpecTrainsTableForTwoStages) {
  EXPECT_EQ(table_of(render_weights_svg(spectrain(2, 6), 3, "v1")),
            (Rows{{"F", "2 + 1", "3", "3", "0"},
                  {"B", "3", "3", "3", "0"},
                  {"F", "3", "3", "3", "0"},
                  {"B", "3", "3", "3", "0"}}));
}

TEST(RenderWeights, SpecTrainsTableForThreeStages) {
  EXPECT_EQ(table_of(render_weights_svg(spectrain(3, 6), 3, "v1")),
            (Rows{{"F", "1 + 2", "3", "3", "0"},
                  {"B", "3", "3", "3", "0"},
                  {"F", "2 + 1", "3", "3", "0"},
                  {"B", "3", "3", "3", "0"},
                  {"F", "3 + 1", "4", "3", "−1"},
                  {"B", "3 + 1", "4", "3", "−1"}}));
}

TEST(RenderWeights, SpecTrainsTableForFourStages) {
  EXPECT_EQ(table_of(render_weights_svg(spectrain(4, 8), 3, "v1")),
            (Rows{{"F", "0 + 3", "3", "3", "0"},
                  {"B", "3", "3", "3", "0"},
                  {"F", "1 + 2", "3", "3", "0"},
                  {"B", "3", "3", "3", "0"},
                  {"F", "2 + 2", "4", "3", "−1"},
                  {"B", "3 + 1", "4", "3", "−1"},
                  {"F", "3 + 1", "4", "3", "−1"},
                  {"B", "3 + 1", "4", "3", "−1"}}));
}

TEST(RenderWeights, SpecTrainsSecondVersionReusesThePrediction) {
  const std::string svg = render_weights_svg(spectrain_2(3, 6), 3, "v2");
  EXPECT_EQ(table_of(svg), (Rows{{"F", "1 + 2", "3", "3", "0"},
                                 {"B", "1 + 2", "3", "3", "0"},
                                 {"F", "2 + 1", "3", "3", "0"},
                                 {"B", "2 + 1", "3", "3", "0"},
                                 {"F", "3", "3", "3", "0"},
                                 {"B", "3", "3", "3", "0"}}));
  EXPECT_NE(svg.find("the very weights of the forward"), std::string::npos);
}

TEST(RenderWeights, PipeDreamIsStale) {
  EXPECT_EQ(table_of(render_weights_svg(pipedream(3, 6), 3, "pipedream")),
            (Rows{{"F", "1", "1", "3", "2"},
                  {"B", "1", "1", "3", "2"},
                  {"F", "2", "2", "3", "1"},
                  {"B", "2", "2", "3", "1"},
                  {"F", "3", "3", "3", "0"},
                  {"B", "3", "3", "3", "0"}}));
}

TEST(RenderWeights, MicroBatchesThatReadOtherVersionsHaveTheirOwnRow) {
  const Schedule schedule =
      pipeline_schedule({.stages = 2, .microbatches = 2, .minibatches = 4}, {.flush = false});
  EXPECT_EQ(table_of(render_weights_svg(schedule, 2, "t")), (Rows{{"F", "1", "1", "2", "1"},
                                                                  {"F", "2", "2", "2", "0"},
                                                                  {"B", "2", "2", "2", "0"},
                                                                  {"F", "2", "2", "2", "0"},
                                                                  {"B", "2", "2", "2", "0"}}));
}

TEST(RenderWeights, DrawsAMiniBatchThatIsNotThere) {
  EXPECT_TRUE(well_formed(render_weights_svg(pipedream(3, 2), 99, "t")));
}

}  // namespace
}  // namespace pipewright
