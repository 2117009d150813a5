// SPDX-License-Identifier: Apache-2.0
// What exports make of run folders: long rows, event files, and the event log of a run that goes
// on.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/exports/event_log.h"
#include "core/exports/long_rows.h"
#include "core/exports/run_events.h"
#include "tests/unit/records/run_folders.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfig =
    "{scheme: {name: gpipe}, optimizer: {lr: 0.1}, output: {steps: true}}";

class Exports : public RunFolders {
 protected:
  ExportedRun exported(const std::string& folder, const std::string& varied = "{}",
                       const std::string& config = kConfig) const {
    RunRecord record = run(folder, "a \"label\"", "done", config, accuracies({"0.5"}), varied);
    return {folder, std::move(record)};
  }

  std::string csv(const std::vector<ExportedRun>& runs) const {
    write_long_rows(root_ / "out.csv", runs, LongFormat::Csv);
    return read_file(root_ / "out.csv");
  }

  /// "tag@step" of all events in a file.
  static std::vector<std::string> events(const std::string& file) {
    std::vector<std::string> all;
    kept_bytes(file, [&](const EventPlace& place) {
      if (!place.tag.empty()) all.push_back(concat(place.tag, "@", place.step));
      return true;
    });
    return all;
  }

  /// Throws Error{Data} with the words.
  template <class Function>
  static void expect_refusal(const Function& function, const std::string& words) {
    try {
      function();
      ADD_FAILURE() << "nothing was thrown, expected " << words;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Data);
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  }
};

/// Of epochs of two mini-batches.
constexpr const char* kEvaluations =
    "epoch,minibatch,minibatches,samples,tokens,seconds,test_loss,test_accuracy\n"
    "0,1,2,16,,0.5,0.75,\n1,0,3,24,,1.5,0.5,0.25\n";

TEST_F(Exports, LongRowsHaveEveryNumberOfEpochsStepsEvaluationsAndProbes) {
  ExportedRun run = exported("a", "{label: x, train.seed: 3}");
  put("a/steps.csv", "epoch,minibatch,loss,loss_1\n0,0,0.5,\n0,1,0.25,2\n0,2,0.1");
  put("a/probes.csv", concat(std::string_view(kProbeHeader), "\n0,1,0,norms,gradient,7\n"));
  put("a/evaluations.csv", kEvaluations);
  run.record.evaluations = read_numbers(root_ / "a").evaluations;
  const std::string start = "a,\"a \"\"label\"\"\",done,3,";
  std::string expected = "run,label,state,train.seed,epoch,step,metric,value\n";
  for (const char* const end :
       {"0,,train_loss,0.5", "0,,test_loss,0.25", "0,,test_accuracy,0.5", "0,,lr,0.1",
        "0,,seconds,2", "0,,samples_per_second,1000", "0,0,loss,0.5", "0,1,loss,0.25",
        "0,1,loss_1,2", "0,1,evaluation.test_loss,0.75", "1,0,evaluation.test_accuracy,0.25",
        "1,0,evaluation.test_loss,0.5", "0,1,probe.norms.gradient[0],7"})
    expected += start + end + "\n";
  EXPECT_EQ(csv({run}), expected);
}

TEST_F(Exports, JsonLinesAreTheSameRows) {
  const ExportedRun run = exported("a", "{train.seed: 3, scheme: {name: gpipe}}");
  put("a/steps.csv", "epoch,minibatch,loss\n0,1,0.25\n");
  EXPECT_EQ(write_long_rows(root_ / "out.jsonl", {run}, LongFormat::JsonLines), 7U);
  const std::vector<std::string> lines = split(read_file(root_ / "out.jsonl"), '\n');
  ASSERT_EQ(lines.size(), 8U);
  EXPECT_EQ(
      lines[6],
      R"({"run":"a","label":"a \"label\"","state":"done","train.seed":3,"scheme":{"name":"gpipe"},)"
      R"("epoch":0,"step":1,"metric":"loss","value":0.25})");
  EXPECT_EQ(lines[0].find("\"step\""), std::string::npos) << lines[0];
}

TEST_F(Exports, OptionsThatNoSweepVariesAreCompared) {
  const ExportedRun run = exported("a", "{train.seed: 3}");
  const ExportedRun other =
      exported("b", "{}", "{scheme: {name: pipedream}, optimizer: {lr: 0.1}}");
  EXPECT_EQ(differing_keys({run, other}), (std::vector<std::string>{"train.seed", "scheme.name"}));
}

TEST_F(Exports, ASettingTakesNoColumnOfOurs) {
  EXPECT_EQ(differing_keys({exported("a", "{value: 3, run: x, label: y, x: 1}")}),
            (std::vector<std::string>{"x"}));
}

TEST_F(Exports, StepsThatAreDamagedAreNamedWithTheirLine) {
  const ExportedRun run = exported("a");
  for (const auto& [text, where] : std::vector<std::pair<std::string, std::string>>{
           {"epoch,minibatch,loss\n0,0,x\n", "steps.csv:2:5: 'x' is not a number"},
           {"epoch,minibatch,loss\n0,0,1\n0,1\n", "steps.csv:3:1: has 2 fields"},
           {"minibatch,loss\n", "steps.csv:1:1: is no header"}}) {
    put("a/steps.csv", text);
    expect_refusal([&] { csv({run}); }, where);
    EXPECT_FALSE(fs::exists(root_ / "out.csv"));
  }
}

TEST_F(Exports, EventsOfEpochsAndOfMiniBatchesHaveTheirOwnSteps) {
  const ExportedRun run = exported("a");
  put("a/steps.csv", "epoch,minibatch,loss,loss_1,lr\n0,0,0.5,,\n0,1,0.25,2,\n1,0,0.125,1,0.1\n");
  put("a/probes.csv",
      concat(std::string_view(kProbeHeader), "\n1,0,0,norms,gradient,7\n1,0,,norms,gradient,8\n"));
  std::vector<std::string> remarks;
  EXPECT_EQ(events(event_file_of(run.record, remarks)),
            (std::vector<std::string>{"loss/train@0", "loss_per_step/train@0",
                                      "loss_per_step/train@1", "loss_per_step/train@2",
                                      "probe.norms/gradient/stage_0@2", "probe.norms/gradient@2"}));
  EXPECT_EQ(remarks, std::vector<std::string>());
  fs::remove(root_ / "a/steps.csv");
  EXPECT_EQ(events(event_file_of(run.record, remarks)), std::vector<std::string>{"loss/train@0"});
  EXPECT_EQ(remarks.size(), 1U);
}

TEST_F(Exports, EventsOfEvaluationsStandAtTheMiniBatchBeforeThem) {
  const ExportedRun empty = exported("a");
  put("a/evaluations.csv", kEvaluations);
  put("a/probes.csv", concat(std::string_view(kProbeHeader), "\n1,1,0,norms,gradient,7\n"));
  std::vector<std::string> remarks;
  EXPECT_EQ(
      events(event_file_of(read_numbers(root_ / "a"), remarks)),
      (std::vector<std::string>{"loss/train@0", "loss_per_step/test@1", "accuracy_per_step/test@2",
                                "loss_per_step/test@2", "probe.norms/gradient/stage_0@3"}));
  EXPECT_EQ(remarks, std::vector<std::string>());
}

TEST_F(Exports, TagsSayWhatWasMeasuredOfWhichData) {
  EXPECT_EQ(epoch_tag("train_loss"), "loss/train");
  EXPECT_EQ(epoch_tag("test_top5"), "top5/test");
  EXPECT_EQ(epoch_tag("samples_per_second"), "samples_per_second");
  EXPECT_EQ(epoch_tag("test_\xff"), "\\xff/test");
  EXPECT_EQ(step_tag("loss"), "loss_per_step/train");
  EXPECT_EQ(step_tag("loss_2"), "loss_per_step/stage_2");
  EXPECT_TRUE(is_per_minibatch(step_tag("loss_2")));
  EXPECT_EQ(evaluation_tag("test_loss"), "loss_per_step/test");
  EXPECT_TRUE(is_per_minibatch(evaluation_tag("test_top5")));
  EXPECT_TRUE(is_per_minibatch(probe_tag("norms", "gradient", 1)));
  EXPECT_FALSE(is_per_minibatch(epoch_tag("test_loss")));
}

TEST_F(Exports, EventFilesReplaceNothingButThemselves) {
  const ExportedRun run = exported("a");
  const fs::path out = root_ / "logs";
  write_event_files(out, {run});
  const std::string before = read_file(out / "a" / kEventFile);
  write_event_files(out, {run});
  EXPECT_EQ(read_file(out / "a" / kEventFile), before);
  put("logs/a/events.out.tfevents.1.host", "");
  expect_refusal([&] { write_event_files(out, {run}); }, "an event file of another program");
  fs::remove(out / "a/events.out.tfevents.1.host");
  put(concat("logs/a/", std::string_view(kEventFile), ".1234.part"), "left by a kill");
  write_event_files(out, {run});
  EXPECT_EQ(std::distance(fs::directory_iterator(out / "a"), {}), 1);
  expect_refusal([&] { write_event_files(root_, {run}); }, "is a folder of runs");
  fs::remove_all(out / "a");
  fs::create_directory_symlink(root_, out / "a");
  expect_refusal([&] { write_event_files(out, {run}); }, "is a link");
  fs::remove(out / "a");
  fs::create_directories(out / "a" / kEventFile);
  expect_refusal([&] { write_event_files(out, {run}); }, "is a folder");
}

TEST_F(Exports, AnEventLogGoesOnBehindWhatIsKept) {
  const fs::path file = root_ / kEventFile;
  const std::vector<TaggedValue> loss{{"loss_per_step/train", 1}};
  const auto upto = [](std::int64_t last) {
    return [last](const EventPlace& place) { return place.step <= last; };
  };
  {
    EventLog log = EventLog::begin(file);
    for (int step = 0; step < 5; ++step) log.add(step, loss);
    EXPECT_EQ(events(read_file(file)).size(), 0U) << "it is flushed when asked";
    log.flush();
    EXPECT_EQ(events(read_file(file)).size(), 5U);
    for (int step = 5; step < 105; ++step) log.add(step, loss);
    EXPECT_EQ(events(read_file(file)).size(), 105U) << "and after every 100 records";
  }
  const std::string before = read_file(file);
  {
    EventLog log = EventLog::go_on(file, upto(2));
    EXPECT_EQ(read_file(file), before.substr(0, read_file(file).size()));
    log.add(3, loss);
    log.sync();
  }
  EXPECT_EQ(events(read_file(file)),
            (std::vector<std::string>{"loss_per_step/train@0", "loss_per_step/train@1",
                                      "loss_per_step/train@2", "loss_per_step/train@3"}));
  for (const char* const damaged : {"", "no event file"}) {
    put(kEventFile, damaged);
    EventLog::go_on(file, upto(2));
    EXPECT_EQ(read_file(file).substr(0, 12), before.substr(0, 12));
  }
  fs::remove(file);
  fs::create_symlink(root_ / "elsewhere", file);
  expect_refusal([&] { EventLog::go_on(file, upto(2)); }, "is a symbolic link");
  expect_refusal([&] { EventLog::begin(file); }, "is a symbolic link");
}

}  // namespace
}  // namespace pipewright
