// SPDX-License-Identifier: Apache-2.0
// What other programs read: a Chrome trace. The cases of tests/cases/schedules hold CSV files.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/text.h"
#include "core/drawing/render.h"
#include "tests/unit/drawing/drawn_schedules.h"

namespace pipewright {
namespace {

using Json = nlohmann::json;

TEST(RenderTrace, EveryActionIsAnEventOfItsWorker) {
  const Schedule schedule = pipeline_schedule({.stages = 2, .replicas = 2, .minibatches = 2}, {});
  const SlotTimes times = slot_times(schedule);
  const Json trace = Json::parse(render_trace(prove(schedule)));
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
  const Json trace = Json::parse(render_trace(prove(pipedream(3, 2))));
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

/// The arrows of shared weights, as "name: worker → worker".
std::map<std::string, int> arrows_of_weights(const PipelineShape& shape) {
  const Json trace = Json::parse(render_trace(prove(pipeline_schedule(shape, {}))));
  std::map<int, int> from;
  std::map<std::string, int> arrows;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "s") from[event.at("id")] = event.at("tid");
    const std::string name = event.at("name");
    if (event.at("ph") == "f" && name.find("weights") != std::string::npos)
      ++arrows[concat(name, ": ", from.at(event.at("id")), " → ", event.at("tid").get<int>())];
  }
  return arrows;
}

TEST(RenderTrace, ShowsWhatCrossesForSharedWeights) {
  PipelineShape shape{.stages = 3, .microbatches = 3, .minibatches = 4};
  shape.skips = {{.from = 0, .to = 2, .lent_bytes = 8}};
  EXPECT_EQ(arrows_of_weights(shape),
            (std::map<std::string, int>{{"weights: 0 → 2", 4}, {"gradient of weights: 2 → 0", 4}}));
  shape.skips = {};
  shape.tied = {{.first = 0, .second = 2, .numbers = 2, .bytes = 8}};
  EXPECT_EQ(arrows_of_weights(shape),
            (std::map<std::string, int>{{"gradient of weights: 0 → 2", 3},
                                        {"gradient of weights: 2 → 0", 4}}));
}

TEST(RenderTrace, StagesOfOneWorkerSendNoMessages) {
  const Schedule schedule =
      pipeline_schedule({.stages = 2, .minibatches = 2, .placement = {0, 0}}, {});
  EXPECT_EQ(render_trace(prove(schedule)).find("\"message\""), std::string::npos);
}

}  // namespace
}  // namespace pipewright
