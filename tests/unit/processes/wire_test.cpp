// SPDX-License-Identifier: Apache-2.0
// Processes that train together, played by threads over a wire in memory: the same bits as one
// process, and an end for everybody when one of them fails.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <csignal>
#include <optional>
#include <regex>
#include <thread>
#include <utility>

#include "core/base/mutex.h"
#include "core/processes/announcement.h"
#include "core/processes/bring_tensors.h"
#include "core/system/child_process.h"
#include "core/tensors/torch.h"
#include "tests/unit/processes/memory_wire.h"
#include "tests/unit/runtime/laboratory.h"
#include "tests/unit/schemes/scheme_cases.h"

namespace pipewright::test {
namespace {

using namespace std::chrono_literals;

/// Silence is counted in rounds of all keepers, so nobody is taken for silent, or ended for
/// reacting slowly, on a loaded machine.
constexpr TeamPatience kInRounds{
    .reaction = 1h, .after_signal = 1h, .standstill = 1h, .now = virtual_now};

/// Without times.
std::vector<EdgeTraffic> counts_of(const RunResult& result) {
  std::vector<EdgeTraffic> all = result.traffic;
  for (EdgeTraffic& edge : all) edge.encode_seconds = edge.decode_seconds = 0;
  return all;
}

/// Trains with one process per worker; returns all stages, each from the process that holds it.
Stages train_in_processes(const std::string& changes, std::optional<RunResult>& of_all) {
  const Laboratory counted(changes);
  const int workers = counted.experiment.shape(1).workers();
  Stages all(static_cast<std::size_t>(counted.experiment.pipeline.stages *
                                      counted.experiment.pipeline.replicas));
  std::mutex mutex;
  const auto ended = play(workers, [&](WireTeam& team) {
    Laboratory laboratory(changes);  // a process has its own of everything
    Stages stages = laboratory.plan().stages(team);
    const RunResult result = train(laboratory.plan(), stages, Execution::Mpi, nullptr, 0, &team);
    const std::lock_guard lock(mutex);
    for (std::size_t i = 0; i < stages.size(); ++i)
      if (stages[i]) all[i] = std::move(stages[i]);
    if (!of_all) of_all = result;
    EXPECT_EQ(flat_losses(*of_all), flat_losses(result)) << "every process knows all losses";
    EXPECT_EQ(counts_of(*of_all), counts_of(result)) << "… and what crossed everywhere";
  });
  for (const Ended& process : ended)
    if (process.error) ADD_FAILURE() << process.error->what();
  return all;
}

void expect_as_serial(const std::string& changes) {
  Laboratory laboratory(changes);
  const Stages serial = laboratory.plan().stages();
  const RunResult result = train(laboratory.plan(), serial, Execution::Serial);
  std::optional<RunResult> of_all;
  const Stages processes = train_in_processes(changes, of_all);
  ASSERT_TRUE(std::ranges::all_of(processes, [](const auto& stage) { return !!stage; })) << changes;
  EXPECT_EQ(difference(serial, processes), "") << changes;
  EXPECT_EQ(flat_losses(*of_all), flat_losses(result)) << changes;
  EXPECT_EQ(counts_of(*of_all), counts_of(result)) << changes;
}

void expect_scheme_as_serial(const SchemeCase& scheme) {
  const bool one_stage = scheme.name == "data_parallel";
  expect_as_serial(concat("{scheme: ", scheme_text(scheme), ", pipeline.stages: ",
                          one_stage ? 1 : 4, ", pipeline.replicas: ", one_stage ? 3 : 1,
                          ", pipeline.microbatches: ", one_stage ? 2 : 4, ", dataset.train: 40}"));
}

TEST(Wire, GivesTheSameBitsAsOneProcess) {
  for (const SchemeCase& scheme : scheme_of_each_kind()) expect_scheme_as_serial(scheme);
}

TEST(Wire, GivesTheSameBitsAsOneProcessForEveryScheme) {
  for (const SchemeCase& scheme : every_scheme()) expect_scheme_as_serial(scheme);
}

TEST(Wire, GivesTheSameBitsWhereReplicasShareWorkers) {
  for (const SchemeCase& scheme : schemes_that_share_workers())
    expect_as_serial(
        concat("{scheme: ", scheme_text(scheme),
               ", pipeline.replicas: 2, pipeline.microbatches: 4, dataset.train: 40}"));
}

TEST(Wire, GivesTheSameBitsWithReplicasOfPipelines) {
  for (const char* scheme : {"pipedream", "gpipe", "spectrain"})
    expect_as_serial(
        concat("{scheme: {name: ", scheme,
               "}, pipeline.stages: 2, pipeline.replicas: 3, pipeline.microbatches: 2}"));
}

TEST(Wire, GivesTheSameBitsWhereStagesShareWorkers) {
  for (const char* placement : {"[0, 1, 2, 0]", "[0, 1, 0, 1]", "[1, 0, 0, 1]"})
    expect_as_serial(concat("{scheme: {name: pipeoptim}, pipeline.placement: ", placement, "}"));
}

TEST(Wire, GivesTheSameBitsWhereMessagesChangeTheirShape) {
  // 8 + 8 + 8 + 8 + 8 + 5 samples, cut into 3 micro-batches: 3, 3, 2 … 2, 2, 1
  for (const char* scheme : {"pipedream", "one_f_one_b", "interlocking"})
    expect_as_serial(concat("{scheme: {name: ", scheme,
                            "}, dataset.train: 45, loader.drop_last: false, "
                            "pipeline.microbatches: 3}"));
}

TEST(Wire, GivesTheSameBitsForSlicesOfSequences) {
  for (const char* shape :
       {"scheme: {name: seq1f1b}, pipeline.slices: 4", "scheme: {name: gpipe}, pipeline.slices: 2",
        "scheme: {name: seq1f1b}, pipeline.slices: 4, pipeline.replicas: 2, "
        "pipeline.recompute: always"})
    expect_as_serial(concat(
        "{dataset: {name: synthetic, train: 16, test: 4}, model: {name: gpt, vocabulary: 16, "
        "tokens: 8, width: 16, heads: 2, layers: 4, dropout: 0.25}, pipeline.stages: 3, "
        "pipeline.microbatches: 2, ",
        shape, "}"));
}

TEST(Wire, GivesTheSameBitsWithCompressedGradients) {
  for (const char* layout :
       {"pipeline.stages: 1, pipeline.replicas: 2, scheme: {name: data_parallel}",
        "pipeline.stages: 1, pipeline.replicas: 3, scheme: {name: data_parallel}",
        "pipeline.stages: 2, pipeline.replicas: 2, scheme: {name: gpipe}",
        "pipeline.stages: 2, pipeline.replicas: 2, scheme: {name: gpipe}, "
        "train.precision: float64"})
    expect_as_serial(
        concat("{", layout, ", pipeline.gradient_compression: {name: powersgd, rank: 1}}"));
}

TEST(Wire, GivesTheSameBitsWithCodecsThatRemember) {
  for (const char* codecs :
       {"{name: top_k, fraction: 0.3, feedback: sample, mask_gradient: true, "
        "backward: {name: top_k, fraction: 0.3, feedback: tensor}}",
        "{name: sign, feedback: sample, backward: {name: sign, feedback: tensor}}",
        "{name: power_iteration, rank: 1}", "{name: aq_sgd, bits: 2, backward: {name: bf16}}"})
    for (const char* scheme : {"gpipe", "pipedream"})
      expect_as_serial(
          concat("{model: {name: cnn, width: 0.25, size: 8, channels: 1, classes: 3}, "
                 "pipeline.stages: 3, pipeline.balance: layers, pipeline.microbatches: 2, "
                 "pipeline.compression: ",
                 codecs, ", scheme: {name: ", scheme, "}}"));
}

TEST(Wire, GivesTheSameBitsOfImagesInBothMemoryFormats) {
  for (const char* format : {"contiguous", "channels_last"})
    for (const char* precision : {"float32", "bfloat16"})
      for (const char* how :
           {"scheme: {name: pipedream}, pipeline.stages: 3",
            "scheme: {name: spectrain, version: 2}, pipeline.stages: 3",
            "scheme: {name: zb_h1}, pipeline.stages: 3, pipeline.microbatches: 2",
            "scheme: {name: gpipe}, pipeline.stages: 3, pipeline.recompute: always",
            "scheme: {name: one_f_one_b}, pipeline.stages: 3, pipeline.microbatches: 4, "
            "pipeline.offload: always",
            "scheme: {name: pipedream}, pipeline.stages: 2, pipeline.replicas: 2",
            "scheme: {name: gpipe}, pipeline.stages: 2, pipeline.replicas: 2, "
            "pipeline.gradient_compression: {name: powersgd, rank: 1}",
            "scheme: {name: gpipe}, pipeline.stages: 3, pipeline.compression: {name: uniform, per: "
            "channel}"})
        expect_as_serial(
            concat("{model: {name: cnn, width: 0.25, size: 8, channels: 1, classes: 3}, "
                   "pipeline.balance: layers, dataset.train: 40, pipeline.memory_format: ",
                   format, ", train.precision: ", precision, ", ", how, "}"));
}

TEST(Wire, KeepsTheStridesOfWhatItAnnounces) {
  const std::vector<std::vector<std::int64_t>> sizes{{2, 3, 4, 4}, {2, 3, 1, 1}, {2, 1, 4, 4},
                                                     {1, 1, 1, 1}, {2, 3},       {5}};
  Tensors message;
  for (const auto& each : sizes) {
    message.push_back(at::empty(each));
    if (each.size() == 4) message.push_back(at::empty(each, at::MemoryFormat::ChannelsLast));
  }
  const Tensors room = room_for(announced_shapes(announcement(3, shapes_of(message))), at::kCPU);
  ASSERT_EQ(room.size(), message.size());
  for (std::size_t i = 0; i < room.size(); ++i) {
    EXPECT_EQ(room[i].sizes(), message[i].sizes());
    EXPECT_EQ(room[i].strides(), message[i].strides()) << room[i].sizes();
  }
}

TEST(Wire, AddsInTheOrderOfTheProcesses) {
  // (1e16 + 1) − 1e16 is 0, any other order of these three gives 1 or 2.
  const std::vector<double> parts{1e16, 1, -1e16, 0.5};
  const auto ended = play(4, [&](WireTeam& team) {
    std::vector<double> values(3, parts[static_cast<std::size_t>(team.rank())]);
    team.sum(values);
    EXPECT_EQ(values, std::vector<double>(3, ((1e16 + 1) - 1e16) + 0.5));
    const auto all = team.gather(std::string(static_cast<std::size_t>(team.rank()), 'x'));
    if (team.first())
      EXPECT_EQ(all, (std::vector<std::string>{"", "x", "xx", "xxx"}));
    else
      EXPECT_TRUE(all.empty());
  });
  for (const Ended& process : ended) EXPECT_FALSE(process.error);
}

TEST(Wire, BringsTensorsToTheFirstProcess) {
  const NamedTensors own{{"a name", at::arange(6, at::kFloat).view({2, 3})},
                         {"scalar", at::full({}, 7, at::kLong)},
                         {"none", at::empty({0, 3}, at::kBFloat16)},
                         {"long", at::arange(300000, at::kDouble)}};
  const auto ended = play(3, [&](WireTeam& team) {
    for (const int from : {2, 0, 1}) {
      const auto came = bring_tensors(team, from, team.rank() == from ? own : NamedTensors());
      ASSERT_EQ(came.size(), team.first() ? own.size() : 0);
      for (std::size_t i = 0; i < came.size(); ++i) {
        EXPECT_EQ(came[i].first, own[i].first);
        EXPECT_EQ(came[i].second.scalar_type(), own[i].second.scalar_type());
        EXPECT_TRUE(at::equal(came[i].second, own[i].second)) << came[i].first;
      }
    }
  });
  for (const Ended& process : ended) EXPECT_FALSE(process.error);
}

TEST(Wire, EndsEverybodyWithTheFirstError) {
  for (const int broken : {0, 1, 3}) {
    const auto ended = play(
        4,
        [&](WireTeam& team) {
          Laboratory laboratory("{scheme: {name: pipedream}}");
          laboratory.watch(static_cast<std::size_t>(broken), [](const Pass& pass) {
            if (pass.minibatch == 3) throw std::runtime_error("the layer is broken");
          });
          const Stages stages = laboratory.plan().stages(team);
          train(laboratory.plan(), stages, Execution::Mpi, nullptr, 0, &team);
        },
        kInRounds);
    int speakers = 0;
    for (const Ended& process : ended) {
      ASSERT_TRUE(process.error);
      EXPECT_EQ(process.error->kind(), ErrorKind::Worker);
      EXPECT_EQ(
          std::string(process.error->what()),
          concat("worker ", broken, ", stage ", broken, ", ", broken, "F3: the layer is broken"));
      speakers += process.spoke ? 1 : 0;
    }
    EXPECT_EQ(speakers, 1);
    EXPECT_TRUE(ended[0].spoke) << "the first process that lives";
  }
}

/// What is promised of the others when one process dies or stops: even if every patience is used up
/// one after another. tests/e2e/mpi_failures_test.py measures it with real processes.
TEST(TeamPatience, EndsARunWithinTenSeconds) {
  const TeamPatience patience;
  EXPECT_LE(patience.heartbeat + patience.death + patience.silence + patience.reaction +
                patience.after_signal + patience.last_look,
            10s);
}

TEST(Wire, NoticesAProcessThatFallsSilent) {
  auto wires = memory_wires(3);
  const std::unique_ptr<Wire> silent = std::move(wires[0]);  // never beats, never answers
  for (const int other : {1, 2}) {
    silent->tell(other, note_text(HelloNote{{0, "", "elsewhere"}}));
    silent->tell(other, note_text(HeartbeatNote{0ms, "stage 0, 0F7"}));
  }
  const SilentProcess process(*silent);
  WireTeam one(std::move(wires[1]), nullptr, kInRounds),
      two(std::move(wires[2]), nullptr, kInRounds);
  for (WireTeam* const team : {&one, &two}) {
    try {
      team->barrier();
      ADD_FAILURE() << "the barrier opened";
    } catch (const Error& error) {
      const Error settled = team->agree_on(error);
      EXPECT_EQ(settled.where(), "worker 0, stage 0, 0F7");
      EXPECT_NE(settled.message().find("on elsewhere has not answered"), std::string::npos)
          << settled.message();
      EXPECT_EQ(team->reports_to_user(), team == &one) << "the first that lives";
    }
  }
}

/// The clock, which a test may put forward.
std::atomic<std::int64_t> forward_ms = 0;
std::chrono::steady_clock::time_point moved_now() {
  return std::chrono::steady_clock::now() + forward_ms.load() * 1ms;
}
constexpr auto kHour = std::chrono::milliseconds(1h);

/// Hands everything on to another wire, for those that do one thing otherwise.
class PassingWire : public Wire {
 public:
  explicit PassingWire(std::unique_ptr<Wire> wire) : wire_(std::move(wire)) {}

  int rank() const override { return wire_->rank(); }
  int size() const override { return wire_->size(); }
  Ticket send(int peer, int channel, const void* data, std::size_t bytes) override {
    return wire_->send(peer, channel, data, bytes);
  }
  Ticket receive(int peer, int channel, void* data, std::size_t bytes) override {
    return wire_->receive(peer, channel, data, bytes);
  }
  std::optional<std::size_t> done(Ticket ticket) override { return wire_->done(ticket); }
  void tell(int peer, std::string_view note) override { wire_->tell(peer, note); }
  std::optional<Note> hear() override { return wire_->hear(); }
  bool closed() override { return wire_->closed(); }
  void abort(int exit_code) override { wire_->abort(exit_code); }

 protected:
  std::unique_ptr<Wire> wire_;
};

/// A process that is stopped for three hours as it tells others something for the fifth time.
class StoppedWire final : public PassingWire {
 public:
  StoppedWire(std::unique_ptr<Wire> wire, std::atomic<bool>& stopped)
      : PassingWire(std::move(wire)), stopped_(stopped) {}

  void tell(int peer, std::string_view note) override {
    wire_->tell(peer, note);
    if (++told_ != 5) return;
    forward_ms += 3 * kHour.count();
    stopped_ = true;
    stopped_.notify_all();
  }

 private:
  std::atomic<bool>& stopped_;
  int told_ = 0;
};

TEST(Wire, BlamesNobodyForItsOwnSilence) {
  auto wires = memory_wires(2);
  std::atomic<bool> stopped = false;
  // The other notices nothing, whose own clock it is as well.
  TeamPatience patience{.heartbeat = 5ms, .silence = 12 * kHour, .reaction = 1h, .now = moved_now};
  TeamPatience stopping = patience;
  stopping.silence = kHour;
  forward_ms = 0;
  WireTeam one(std::move(wires[0]), nullptr, patience),
      two(std::make_unique<StoppedWire>(std::move(wires[1]), stopped), nullptr, stopping);
  stopped.wait(false);
  std::jthread other([&] { one.barrier(); });
  EXPECT_NO_THROW(two.barrier());
}

/// A link of 1 MB/s, in virtual time: 8 MiB take 8.4 s, several times what anybody may stand still.
constexpr double kSlowLink = 1e6;
constexpr TeamPatience kVirtual{
    .reaction = 1h, .after_signal = 1h, .standstill = 3s, .now = virtual_now};
constexpr std::int64_t kLong = std::int64_t{8} << 20;

TEST(Wire, LetsAMessageTakeLongerThanAnybodyMayStandStill) {
  const auto ended = play(
      3,
      [](WireTeam& team) {  // the third only waits
        const at::Tensor sent = at::arange(kLong / 4, at::kInt), came = at::empty_like(sent);
        if (team.rank() == 0) team.send(1, 3, sent);
        if (team.rank() == 1) {
          team.wait(team.receive(0, 3, came));
          EXPECT_TRUE(at::equal(came, sent));
        }
        team.barrier();
      },
      kVirtual, nullptr, find_nccl, kSlowLink);
  for (const Ended& process : ended) EXPECT_FALSE(process.error) << process.error->what();
  EXPECT_GT(virtual_now().time_since_epoch(), 2 * kVirtual.standstill) << "it took its time";
}

TEST(Wire, LetsMessagesOfBothWaysBeSlow) {
  const auto ended = play(
      2,
      [](WireTeam& team) {
        const int other = 1 - team.rank();
        for (int i = 0; i < 2; ++i) {
          team.send(other, 3, at::full({kLong / 4}, team.rank(), at::kInt));
          const at::Tensor came = at::empty({kLong / 4}, at::kInt);
          team.wait(team.receive(other, 3, came));
          EXPECT_TRUE(came.eq(other).all().item<bool>());
        }
      },
      kVirtual, nullptr, find_nccl, kSlowLink);
  for (const Ended& process : ended) EXPECT_FALSE(process.error) << process.error->what();
}

TEST(Wire, NoticesSilenceAmidALongMessage) {
  auto wires = memory_wires(2, kSlowLink);
  Mail mail(*wires[0], virtual_now);  // it beats never, and stops after some pieces
  mail.send(1, 3, at::zeros({kLong / 4}, at::kInt));
  WireTeam team(std::move(wires[1]), nullptr, kVirtual);
  const auto ticket = team.receive(0, 3, at::empty({kLong / 4}, at::kInt));
  std::atomic<bool> over = false;
  std::jthread sender([&] {
    while (!over) {
      if (mail.moved() < 6) mail.advance_sends();
      wires[0]->hear();  // time goes on
      std::this_thread::yield();
    }
  });
  try {
    team.wait(ticket);
    ADD_FAILURE() << "it came";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("has not answered"), std::string::npos) << error.message();
  }
  over = true;
}

/// Virtual time that begins when a test says so.
std::atomic<bool> has_begun = false;
std::chrono::steady_clock::time_point now_since_begun() {
  return has_begun ? virtual_now() : std::chrono::steady_clock::time_point{};
}

TEST(Wire, SaysWhereARunStandsStill) {
  TeamPatience patience = kVirtual;
  patience.now = now_since_begun;
  has_begun = false;
  const auto ended = play(
      2,
      [](WireTeam& team) {
        Laboratory laboratory("{scheme: {name: gpipe}, pipeline.stages: 2}");
        laboratory.watch(3, [&](const Pass& pass) {  // the second stage's
          if (pass.minibatch != 3) return;
          has_begun = true;
          team.wait(team.receive(0, 99, at::empty({1})));  // nobody sends
        });
        const Stages stages = laboratory.plan().stages(team);
        train(laboratory.plan(), stages, Execution::Mpi, nullptr, 0, &team);
      },
      patience);
  for (const Ended& process : ended) {
    ASSERT_TRUE(process.error);
    EXPECT_EQ(process.error->kind(), ErrorKind::Worker);
    EXPECT_TRUE(std::regex_match(
        process.error->what(),
        std::regex("worker ([01]), stage \\1, \\1[FBU][0-9]+(\\.[0-9]+)?: deadlock: every worker "
                   "waits for a message of another, and none has moved for 3 s "
                   "\\(pipeline\\.timeout\\); .*")))
        << process.error->what();
  }
}

/// What ends a wait of process 1 of two, of which the other says only these notes.
Error end_after(const std::vector<std::string>& notes) {
  auto wires = memory_wires(2);
  for (const std::string& note : notes) wires[0]->tell(1, note);
  const SilentProcess other(*wires[0]);
  WireTeam team(std::move(wires[1]), nullptr, kInRounds);
  try {
    team.barrier();
  } catch (const Error& error) {
    return team.agree_on(error);
  }
  return Error(ErrorKind::Bug, "nothing ended it");
}

TEST(Wire, EndsTheRunOverADamagedNote) {
  for (const std::string& note : std::vector<std::string>{"",
                                                          "X",
                                                          "H",
                                                          "Habc\n\n",
                                                          "H99999999999\n\n",
                                                          "H1\nspace",
                                                          "B",
                                                          "B1",
                                                          "B-1\nx",
                                                          "B1x\nx",
                                                          "B99999999999999999999\nx",
                                                          "F",
                                                          "F5\n2\nw\nm",
                                                          "F5\n-1\nw\nm",
                                                          "F99\n0\nw\nm",
                                                          "F0\n0\nw\nm",
                                                          "F5\n0\nw",
                                                          "Lx",
                                                          std::string(Wire::kLongestNote, '\xff'),
                                                          std::string(3, '\0')}) {
    const Error error = end_after({note});
    EXPECT_EQ(error.kind(), ErrorKind::Worker);
    EXPECT_STREQ(error.what(), "worker 1: a damaged note came over the link from worker 0");
  }
}

TEST(Wire, KnowsThatAProcessDiedOnlyWhereItsNumberMeansIt) {
  ProcessIdentity ended = own_identity();
  {
    ChildProcess child({"true"});
    child.wait();
    ended.process = child.pid();
  }
  const std::string beat = note_text(HeartbeatNote{0ms, "stage 0, 0F7"});
  const Error died = end_after({note_text(HelloNote{ended}), beat});
  EXPECT_EQ(died.where(), "worker 0, stage 0, 0F7");
  EXPECT_NE(died.message().find("was killed"), std::string::npos) << died.message();
  ended.space = "another container of the same name";
  const Error silent = end_after({note_text(HelloNote{ended}), beat});
  EXPECT_NE(silent.message().find("has not answered"), std::string::npos) << silent.message();
}

/// What ends the meeting of process 1 of two with another that says only these notes.
std::string end_of_meeting_after(const std::vector<std::string>& notes) {
  auto wires = memory_wires(2);
  for (const std::string& note : notes) wires[0]->tell(1, note);
  const SilentProcess other(*wires[0]);
  WireTeam team(std::move(wires[1]), nullptr, kInRounds);
  try {
    team.meet();
  } catch (const Error& error) {
    return team.agree_on(error).what();
  }
  return "they have met";
}

TEST(Wire, MeetsOnlyWhoHasSaidWhoItIs) {
  EXPECT_EQ(end_of_meeting_after({note_text(HelloNote{own_identity()})}), "they have met");
  for (const std::vector<std::string>& notes :
       std::vector<std::vector<std::string>>{{}, {note_text(HeartbeatNote{0ms, ""})}})
    EXPECT_EQ(end_of_meeting_after(notes),
              "worker 0: its process has not answered for 5 s: it was stopped, or its machine or "
              "link is down");
}

TEST(Wire, EndsTheRunWhereAnActivityCannotBeTold) {
  const auto ended = play(
      2,
      [](WireTeam& team) {
        if (team.first())
          team.set_activity([]() -> std::string { throw std::runtime_error("no words"); });
        team.wait(team.receive(1 - team.rank(), 0, at::empty({1})));  // nobody sends it
      },
      kInRounds);
  for (const Ended& process : ended) {
    ASSERT_TRUE(process.error);
    EXPECT_EQ(process.error->kind(), ErrorKind::Worker);
    EXPECT_STREQ(process.error->what(), "worker 0: no words");
  }
}

/// Fails as MPI does, from the fifth look for notes on.
class BrokenWire final : public PassingWire {
 public:
  using PassingWire::PassingWire;

  std::optional<Note> hear() override {
    if (++heard_ < 5) return wire_->hear();
    throw Error(ErrorKind::Worker, "MPI cannot look for notes: out of order");
  }

 private:
  int heard_ = 0;
};

TEST(Wire, EndsTheRunWhereTheWireItselfFails) {
  auto wires = memory_wires(2);
  WireTeam broken(std::make_unique<BrokenWire>(std::move(wires[0])), nullptr, kInRounds),
      other(std::move(wires[1]), nullptr, kInRounds);
  broken.set_activity([] { return std::string("stage 0, 0F1"); });
  for (WireTeam* const team : {&broken, &other}) try {
      team->wait(team->receive(1 - team->rank(), 0, at::empty({1})));
      ADD_FAILURE() << "it came";
    } catch (const Error& error) {
      EXPECT_STREQ(team->agree_on(error).what(),
                   "worker 0, stage 0, 0F1: MPI cannot look for notes: out of order");
    }
}

TEST(Wire, EndsWhenEverybodyWaitsForSomebody) {
  const auto ended = play(
      3,
      [](WireTeam& team) {
        const int before = (team.rank() + 2) % 3;  // a ring in which nobody begins
        team.wait(team.receive(before, 0, at::empty({1})));
      },
      kVirtual);
  for (const Ended& process : ended) {
    ASSERT_TRUE(process.error);
    EXPECT_EQ(process.error->kind(), ErrorKind::Worker);
    EXPECT_NE(
        process.error->message().find("deadlock: every worker waits for a message of another"),
        std::string::npos)
        << process.error->what();
  }
}

TEST(Wire, ClosesWhereAllHaveFinished) {
  for (const Ended& process : play(
           3, [](WireTeam& team) { team.finish(); }, kInRounds))
    EXPECT_FALSE(process.error) << process.error->what();
}

/// A process that dies once it has told the first of two others that all have come to the barrier,
/// and before it tells the second.
class DyingWire final : public PassingWire {
 public:
  DyingWire(std::unique_ptr<Wire> wire, ChildProcess& body)
      : PassingWire(std::move(wire)), body_(body) {}

  Ticket send(int peer, int channel, const void* data, std::size_t bytes) override {
    if (peer != 2) return wire_->send(peer, channel, data, bytes);
    dead_ = true;
    body_.signal(SIGKILL);
    body_.wait();
    throw Error(ErrorKind::Worker, "it is dead");
  }
  void tell(int peer, std::string_view note) override {
    if (dead_) return;
    ProcessIdentity self = own_identity();
    self.process = body_.pid();
    const bool hello = std::exchange(first_[static_cast<std::size_t>(peer)], false);
    wire_->tell(peer, hello ? note_text(HelloNote{self}) : std::string(note));
  }
  std::optional<Note> hear() override {
    const auto note = wire_->hear();  // so that virtual time goes on
    return dead_ ? std::nullopt : note;
  }

 private:
  ChildProcess& body_;
  std::atomic<bool> dead_ = false;
  std::array<bool, 3> first_{true, true, true};
};

TEST(Wire, NamesAProcessThatDiesInTheLastBarrierThoughAnotherHasPassedIt) {
  auto wires = memory_wires(3);
  ChildProcess body({"sleep", "1000"});
  WireTeam dying(std::make_unique<DyingWire>(std::move(wires[0]), body), nullptr, kInRounds);
  std::vector<std::unique_ptr<WireTeam>> others;
  for (const std::size_t rank : {1, 2})
    others.push_back(std::make_unique<WireTeam>(std::move(wires[rank]), nullptr, kInRounds));
  int spoke = 0;
  {
    std::vector<std::jthread> threads;
    Mutex counting;
    threads.emplace_back([&] { EXPECT_THROW(dying.finish(), Error); });
    for (const auto& team : others)
      threads.emplace_back([&] {
        try {
          team->finish();
          ADD_FAILURE() << "worker " << team->rank() << " has finished without the dead one";
        } catch (const Error& error) {
          const Error settled = team->agree_on(error);
          EXPECT_EQ(settled.where(), "worker 0");
          EXPECT_NE(settled.message().find("was killed"), std::string::npos) << settled.what();
          const Lock lock(counting);
          spoke += team->reports_to_user() ? 1 : 0;
        }
      });
  }
  EXPECT_EQ(spoke, 1);
}

TEST(Wire, StopsWaitingAfterASignal) {
  std::atomic<bool> stop = false;
  const auto ended = play(
      2,
      [&](WireTeam& team) {
        if (team.first()) stop = true;
        team.wait(team.receive(1 - team.rank(), 0, at::empty({1})));  // nobody sends it
      },
      kInRounds, &stop);
  for (const Ended& process : ended) {
    ASSERT_TRUE(process.error);
    EXPECT_EQ(process.error->kind(), ErrorKind::Interrupted);
  }
}

}  // namespace
}  // namespace pipewright::test
