// SPDX-License-Identifier: Apache-2.0
// Saved and loaded again, a training goes on with the same bits, under another layout too; what is
// damaged or does not fit is refused.
#include "core/training/checkpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/records/checkpoint_files.h"
#include "core/runtime/executor.h"
#include "core/system/file.h"
#include "core/tensor_files/safetensors.h"
#include "core/tensors/torch.h"
#include "core/training/checkpoint_manifest.h"
#include "tests/unit/records/run_folders.h"
#include "tests/unit/runtime/laboratory.h"

namespace pipewright::test {
namespace {

constexpr const char* kCnn =
    "model: {name: cnn, width: 0.125, size: 8, channels: 1, classes: 3}, train.epochs: 2";

/// Epochs have six mini-batches.
TrainingState state_after(std::int64_t minibatches) {
  TrainingState state{.minibatches = minibatches, .open_seconds = 0.1};
  for (int m = 0; m < minibatches % 6; ++m) state.open_losses.push_back(1.0 / (m + 3));
  for (int epoch = 0; epoch < minibatches / 6; ++epoch)
    state.epochs.push_back({epoch, 0.1, std::nan(""), std::nan(""), 0.3, 2, 1000});
  return state;
}

class Checkpoint : public RunFolders {
 protected:
  void save(Laboratory& laboratory, const Stages& stages, std::int64_t minibatches = 6) {
    save_checkpoint(root_, laboratory.plan(), held_replicas(laboratory.plan(), stages),
                    state_after(minibatches), {}, alone_);
  }
  std::optional<LoadedCheckpoint> load(Laboratory& laboratory, const Stages& stages) {
    return load_checkpoint(root_, laboratory.plan(), held_replicas(laboratory.plan(), stages),
                           alone_);
  }
  /// The error of loading; fails the test without one.
  Error refusal(Laboratory& laboratory) {
    try {
      load(laboratory, laboratory.plan().stages());
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "nothing is refused";
    return Error(ErrorKind::Bug, "");
  }
  /// Trains one epoch, saves, loads under `later`, trains another; and the same without a stop.
  void expect_the_same_bits(const std::string& before, const std::string& later) {
    Laboratory first(before), second(later);
    const Stages whole = first.plan().stages(), resumed = second.plan().stages();
    train(first.plan(), whole, Execution::Serial, nullptr, 0);
    save(first, whole);
    train(first.plan(), whole, Execution::Serial, nullptr, 1);
    ASSERT_TRUE(load(second, resumed)) << later;
    train(second.plan(), resumed, Execution::Serial, nullptr, 1);
    EXPECT_EQ(difference(whole, resumed), "") << before << " " << later;
    EXPECT_EQ(resumed[0]->optimizer_state().steps, whole[0]->optimizer_state().steps) << later;
  }
  std::filesystem::path file(const std::string& name) const { return root_ / "000006" / name; }

  Team alone_;
};

TEST_F(Checkpoint, GoesOnWithTheSameBits) {
  for (const char* of :
       {"scheme: {name: pipedream}", "scheme: {name: spectrain, velocity: lookahead}",
        "scheme: {name: pipeoptim}, optimizer: {name: adam}", "optimizer: {name: rmsprop}",
        "scheme: {name: spectrain}, optimizer: {name: sgd}",
        "scheme: {name: pipemare, annealing: 9}", "scheme: {name: interlocking}",
        "scheme: {name: xpipe}, optimizer: {name: muon}", "optimizer: {name: muon}",
        "scheme: {name: spectrain}, optimizer: {name: soap, precondition_frequency: 2}",
        "scheme: {name: pipeoptim}, optimizer: {name: lion}", "optimizer: {name: nadamw}",
        "scheme: {name: pipeoptim}, optimizer: {name: nadamw, momentum_by_delay: 0.99}",
        "optimizer: {name: adan}"}) {
    const std::string changes = concat("{train.epochs: 2, ", of, "}");
    expect_the_same_bits(changes, changes);
  }
  expect_the_same_bits(concat("{pipeline.replicas: 2, ", kCnn, "}"),
                       concat("{pipeline.replicas: 2, ", kCnn, "}"));
}

TEST_F(Checkpoint, GoesOnWithTheSameBitsOfGradientRules) {
  for (const char* rules :
       {"[{name: gap_aware}]", "[{name: dc_asgd, adaptive: true}]",
        "[{name: staleness_lr}, {name: clip, norm: 0.1}]", "[{name: error_feedback}]"})
    for (const char* of : {"scheme: {name: pipedream}", "scheme: {name: pipeoptim}"}) {
      const std::string changes =
          concat("{train.epochs: 2, gradient_rules: ", rules, ", ", of, "}");
      expect_the_same_bits(changes, changes);
    }
}

/// A schedule of six mini-batches, one after another, in which only the last of two stages
/// predicts by the drift of its weights.
std::string drifting_schedule() {
  std::string text = "worker,kind,stage,replica,minibatch,microbatch,loss,version,weights\n";
  for (int m = 0; m < 6; ++m)
    for (int stage = 0; stage < 2; ++stage) {
      const char* weights = stage == 1 && m > 0 ? "latest+1 drift 0.5" : "latest";
      text += concat(stage, ",forward,", stage, ",0,", m, ",0,,", m, ",", weights, "\n");
      text += concat(stage, ",backward,", stage, ",0,", m, ",0,1,", m, ",forward\n");
      text += concat(stage, ",update,", stage, ",0,", m, ",,,,\n");
    }
  return text;
}

TEST_F(Checkpoint, GoesOnWithTheSameBitsWhereOnlyALaterStageHasASlot) {
  const std::filesystem::path schedule = root_ / "drift.csv";
  write_file(schedule, drifting_schedule());
  const std::string changes =
      concat("{train.epochs: 2, pipeline.stages: 2, scheme: {name: csv_schedule, file: '",
             schedule.string(), "'}}");
  expect_the_same_bits(changes, changes);
  const auto manifest = read_manifest(root_);
  ASSERT_TRUE(manifest);
  EXPECT_NE(std::ranges::count(manifest->slots, "drift"), 0);
}

TEST_F(Checkpoint, GoesOnUnderAnotherCutWithTheSameBits) {
  for (const char* optimizer : {"sgd, momentum: 0.9", "adam", "rmsprop", "lion", "adan", "muon",
                                "soap, precondition_frequency: 2"})
    for (const char* layout :
         {"pipeline.stages: 2", "pipeline.stages: 1", "pipeline.balance: [1, 1, 1, 1]",
          "pipeline.execution: threads", "pipeline.placement: [0, 0, 1, 1]"})
      expect_the_same_bits(
          concat("{train.epochs: 2, optimizer: {name: ", optimizer, "}}"),
          concat("{train.epochs: 2, optimizer: {name: ", optimizer, "}, ", layout, "}"));
  expect_the_same_bits(concat("{", kCnn, "}"), concat("{pipeline.stages: 2, ", kCnn, "}"));
}

TEST_F(Checkpoint, GoesOnWithTheSameBitsOfADisturbedTraining) {
  constexpr const char* kPerturb =
      "perturb: {gradient_delay: 4, weight_noise: 0.05, stale_batch_norm: 2}";
  for (const char* of : {"scheme: {name: gpipe}", "scheme: {name: spectrain}, pipeline.stages: 3",
                         "scheme: {name: pipedream}, pipeline.replicas: 2, pipeline.stages: 2",
                         "optimizer: {name: adam}, pipeline.memory_format: channels_last",
                         "train.precision: float16"}) {
    const std::string changes = concat("{", kCnn, ", ", kPerturb, ", ", of, "}");
    expect_the_same_bits(changes, changes);
  }
  const char* heads = "{train.epochs: 2, scheme: {name: interlocking}, perturb.gradient_delay: 4}";
  expect_the_same_bits(heads, heads);
  expect_the_same_bits(concat("{", kCnn, ", ", kPerturb, "}"),
                       concat("{pipeline.stages: 2, ", kCnn, ", ", kPerturb, "}"));
}

/// Evaluations after a resumption, with the statistics that waited at the checkpoint.
TEST_F(Checkpoint, KeepsTheStatisticsThatEvaluationsLagBehindIn) {
  const std::string changes = concat("{", kCnn, ", perturb.stale_batch_norm: 2}");
  Laboratory laboratory(changes);
  const Plan& plan = laboratory.plan();
  const Stages whole = plan.stages(), resumed = plan.stages(), forgetful = plan.stages();
  train(plan, whole, Execution::Serial);
  save(laboratory, whole);
  ASSERT_TRUE(load(laboratory, resumed));
  for (std::size_t k = 0; k < whole.size(); ++k) {
    const auto from = whole[k]->named_state(), to = forgetful[k]->named_state();
    for (std::size_t i = 0; i < from.size(); ++i) to[i].second.copy_(from[i].second);
  }
  const auto losses = [&](const Stages& stages) {
    Loader loader = plan.evaluation_loader();
    return flat_losses(
        execute(plan.evaluation, stages, {.batches = loader, .lr = [](int) { return 0.0; }}));
  };
  EXPECT_EQ(losses(whole), losses(resumed));
  EXPECT_NE(losses(whole), losses(forgetful));
}

TEST_F(Checkpoint, OfADisturbedTrainingWithoutItsStatisticsIsRefused) {
  Laboratory laboratory(concat("{", kCnn, ", perturb.stale_batch_norm: 2, pipeline.stages: 1}"));
  const Stages stages = laboratory.plan().stages();
  train(laboratory.plan(), stages, Execution::Serial);
  save(laboratory, stages);
  TensorFile content = read_safetensors(file("perturb-0.replica-0.safetensors"));
  std::erase_if(content.tensors,
                [](const auto& named) { return named.first.ends_with("running_var"); });
  write_safetensors(file("perturb-0.replica-0.safetensors"), content);
  CheckpointManifest manifest = *read_manifest(root_);
  for (CheckpointFile& each : manifest.files)
    if (each.name.starts_with("perturb")) each = described_file(root_ / "000006" / each.name);
  commit_manifest(root_, manifest);
  EXPECT_NE(refusal(laboratory).message().find("has no tensor 'statistics/"), std::string::npos);
}

/// Every file of the checkpoint, by name.
std::map<std::string, std::string> files_in(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& file : std::filesystem::directory_iterator(folder))
    if (file.path().extension() == ".safetensors")
      files[file.path().filename()] = read_file(file.path());
  return files;
}

TEST_F(Checkpoint, IsTheSameInBothMemoryFormats) {
  for (const char* more :
       {"optimizer: {name: adam}", "optimizer: {name: rmsprop}", "optimizer: {name: muon}",
        "optimizer: {name: soap}", "scheme: {name: spectrain}", "train.precision: bfloat16"})
    for (const auto& [from, to] :
         {std::pair("contiguous", "channels_last"), std::pair("channels_last", "contiguous")}) {
      const auto changes = [&](const char* format) {
        return concat("{pipeline.memory_format: ", format, ", ", more, ", ", kCnn, "}");
      };
      Laboratory first(changes(from)), second(changes(to));
      const Stages trained = first.plan().stages(), loaded = second.plan().stages();
      train(first.plan(), trained, Execution::Serial);
      save(first, trained);
      const auto files = files_in(root_ / "000006");
      ASSERT_FALSE(files.empty());
      ASSERT_TRUE(load(second, loaded));
      EXPECT_EQ(difference(trained, loaded), "") << more;
      save(second, loaded);
      EXPECT_EQ(files, files_in(root_ / "000006")) << more << " from " << from;
    }
}

TEST_F(Checkpoint, GoesOnInChannelsLastMemoryWithTheSameBits) {
  for (const char* of : {"scheme: {name: pipedream}", "scheme: {name: spectrain}",
                         "scheme: {name: pipeoptim}, optimizer: {name: adam}",
                         "train.precision: bfloat16, pipeline.replicas: 2"}) {
    const std::string changes =
        concat("{pipeline.memory_format: channels_last, ", of, ", ", kCnn, "}");
    expect_the_same_bits(changes, changes);
  }
}

TEST_F(Checkpoint, KeepsTheLossScaleOfEachStage) {
  const auto laboratory = [](const char* layout) {
    return concat("{train: {epochs: 2, precision: float16}, scheme: {name: pipedream}, ", layout,
                  "}");
  };
  Laboratory first(laboratory("pipeline.stages: 4")), same(laboratory("pipeline.stages: 4")),
      cut(laboratory("pipeline.stages: 2"));
  const Stages saved = first.plan().stages(), loaded = same.plan().stages(),
               other = cut.plan().stages();
  for (const auto& stage : saved)
    *stage->loss_scale() = {.scale = 1 << (stage->index() + 3), .since = 7, .skipped = 5};
  save(first, saved);
  EXPECT_TRUE(load(same, loaded)->remarks.empty());
  for (const auto& stage : loaded) {
    EXPECT_EQ(stage->loss_scale()->scale, 1 << (stage->index() + 3));
    EXPECT_EQ(stage->loss_scale()->since, 7);
    EXPECT_EQ(stage->loss_scale()->skipped, 5);
  }
  const auto remarks = load(cut, other)->remarks;
  ASSERT_EQ(remarks.size(), 2u);
  EXPECT_NE(remarks[1].find("loss scales begin anew"), std::string::npos) << remarks[1];
  EXPECT_EQ(other[0]->loss_scale()->scale, 65536);
  expect_the_same_bits(laboratory("pipeline.stages: 4"), laboratory("pipeline.stages: 4"));
}

using Exchanges = std::vector<std::unique_ptr<GradientExchange>>;

void train_exchanging(const Plan& plan, const Stages& stages, const Exchanges& exchanges,
                      int epoch) {
  Loader loader = plan.training_loader(epoch, 1);
  execute(plan.training, stages,
          {.batches = loader,
           .lr = [](int) { return 0.05; },
           .first_epoch = epoch,
           .minibatches_per_epoch = plan.minibatches,
           .exchanges = &exchanges});
}

TEST_F(Checkpoint, KeepsWhatCompressedGradientsHaveLost) {
  const auto options = [](int replicas) {
    return concat(
        "{train.epochs: 2, pipeline.stages: 2, scheme: {name: gpipe}, "
        "pipeline.gradient_compression: "
        "{name: powersgd, rank: 1}, pipeline.replicas: ",
        replicas, "}");
  };
  Laboratory two(options(2)), three(options(3));
  const Plan& plan = two.plan();
  const Stages whole = plan.stages(), resumed = plan.stages(), forgetful = plan.stages();
  const Exchanges exchanges = plan.exchanges(), same = plan.exchanges(), anew = plan.exchanges();
  train_exchanging(plan, whole, exchanges, 0);
  save_checkpoint(root_, plan, held_replicas(plan, whole, {}, exchanges), state_after(6), {},
                  alone_);
  EXPECT_TRUE(load_checkpoint(root_, plan, held_replicas(plan, resumed, {}, same), alone_)
                  ->remarks.empty());
  load(two, forgetful);
  train_exchanging(plan, whole, exchanges, 1);
  train_exchanging(plan, resumed, same, 1);
  train_exchanging(plan, forgetful, anew, 1);
  EXPECT_EQ(difference(whole, resumed), "");
  EXPECT_NE(difference(whole, forgetful), "");
  const Stages more = three.plan().stages();
  const Exchanges theirs = three.plan().exchanges();
  const auto replicas = held_replicas(three.plan(), more, {}, theirs);
  const auto remarks = load_checkpoint(root_, three.plan(), replicas, alone_)->remarks;
  ASSERT_EQ(remarks.size(), 2u);
  EXPECT_NE(remarks[1].find("begins anew"), std::string::npos) << remarks[1];
}

TEST_F(Checkpoint, SaysWhatMayChangeTheBitsAndNothingElse) {
  Laboratory before("{train.epochs: 2}"), threads("{train.epochs: 2, pipeline.execution: threads}"),
      cut("{train.epochs: 2, pipeline.stages: 2}");
  save(before, before.plan().stages());
  EXPECT_TRUE(load(before, before.plan().stages())->remarks.empty());
  EXPECT_TRUE(load(threads, threads.plan().stages())->remarks.empty());
  const auto remarks = load(cut, cut.plan().stages())->remarks;
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_NE(remarks[0].find("(pipeline.stages 4 → 2)"), std::string::npos) << remarks[0];
}

TEST_F(Checkpoint, GivesNewReplicasTheBuffersOfTheFirst) {
  Laboratory two(concat("{pipeline.replicas: 2, ", kCnn, "}")),
      three(concat("{pipeline.replicas: 3, ", kCnn, "}")), one(concat("{", kCnn, "}"));
  const Stages saved = two.plan().stages();
  train(two.plan(), saved, Execution::Serial, nullptr, 0);
  save(two, saved);
  auto buffers = [](const Stage& stage) { return stage.named_buffers().at(0).second; };
  ASSERT_FALSE(at::equal(buffers(*saved[0]), buffers(*saved[4])));
  const Stages more = three.plan().stages(), fewer = one.plan().stages();
  ASSERT_TRUE(load(three, more) && load(one, fewer));
  EXPECT_TRUE(at::equal(buffers(*more[4]), buffers(*saved[4])));
  EXPECT_TRUE(at::equal(buffers(*more[8]), buffers(*saved[0])));
  EXPECT_TRUE(at::equal(buffers(*fewer[0]), buffers(*saved[0])));
  EXPECT_TRUE(at::equal(more[8]->weights().latest(), saved[0]->weights().latest()));
}

TEST_F(Checkpoint, KnowsHeadsByTheLayerBeforeThem) {
  const std::string all = "{train.epochs: 2, scheme: {name: interlocking, width: 1}";
  Laboratory four(all + "}"), two(all + ", pipeline.balance: [2, 2], pipeline.stages: 2}"),
      other(all + ", pipeline.balance: [3, 1], pipeline.stages: 2}"),
      one(all + ", pipeline.stages: 1}");
  auto head = [](const Stage& stage) { return stage.named_parameters().back().second; };
  const Stages saved = four.plan().stages();
  train(four.plan(), saved, Execution::Serial, nullptr, 0);
  save(four, saved);
  const Stages kept = two.plan().stages();
  EXPECT_EQ(load(two, kept)->remarks.size(), 1u);
  EXPECT_TRUE(at::equal(head(*kept[0]), head(*saved[1])));
  const Stages moved = other.plan().stages(), none = one.plan().stages();
  ASSERT_TRUE(load(other, moved) && load(one, none));
  EXPECT_TRUE(at::equal(head(*moved[0]), head(*saved[2])));
  save(one, none);
  EXPECT_EQ(load(two, kept)->remarks.size(), 2u) << "this head starts anew";
}

TEST_F(Checkpoint, StartsSlotsThatTheOtherLayoutDidNotNeed) {
  const std::string plain = "{train.epochs: 2, scheme: {name: spectrain}, optimizer: {name: sgd}";
  Laboratory one(plain + ", pipeline.stages: 1}"), four(plain + "}");
  save(one, one.plan().stages());
  EXPECT_TRUE(load(four, four.plan().stages()));
  save(four, four.plan().stages());
  EXPECT_TRUE(load(one, one.plan().stages()));
}

TEST_F(Checkpoint, BringsBackEveryMetricWithItsBits) {
  Laboratory laboratory("{train.epochs: 3}");
  const TrainingState saved = state_after(8);
  save(laboratory, laboratory.plan().stages(), 8);
  const TrainingState loaded = load(laboratory, laboratory.plan().stages())->state;
  EXPECT_EQ(loaded.minibatches, 8);
  EXPECT_EQ(loaded.open_seconds, saved.open_seconds);
  ASSERT_EQ(loaded.epochs.size(), 1u);
  EXPECT_EQ(loaded.epochs[0].train_loss, saved.epochs[0].train_loss);
  EXPECT_TRUE(std::isnan(loaded.epochs[0].test_loss));
  EXPECT_EQ(loaded.open_losses, saved.open_losses);
}

TEST_F(Checkpoint, HasOneFilePerStageAndKeepsTheOneBefore) {
  Laboratory laboratory("{train.epochs: 4}");
  const Stages stages = laboratory.plan().stages();
  put("000099/stage-0.safetensors", "of a training before");
  begin_checkpoints(root_, laboratory.plan(), alone_);
  EXPECT_FALSE(load(laboratory, stages)) << "begun is not saved";
  save(laboratory, stages, 2);
  put("000006/stage-9.safetensors", "of a process that was killed");
  save(laboratory, stages, 6);
  save(laboratory, stages, 8);
  std::vector<std::string> names;
  for (const auto& each : std::filesystem::recursive_directory_iterator(root_))
    if (each.is_regular_file()) names.push_back(each.path().lexically_relative(root_).string());
  std::ranges::sort(names);
  EXPECT_EQ(
      names,
      (std::vector<std::string>{
          "000006/metrics.safetensors", "000006/stage-0.safetensors", "000006/stage-1.safetensors",
          "000006/stage-2.safetensors", "000006/stage-3.safetensors", "000008/metrics.safetensors",
          "000008/stage-0.safetensors", "000008/stage-1.safetensors", "000008/stage-2.safetensors",
          "000008/stage-3.safetensors", "manifest.json", "manifest.previous.json"}));
  EXPECT_EQ(load(laboratory, stages)->state.minibatches, 8);
  begin_checkpoints(root_, laboratory.plan(), alone_);
  EXPECT_EQ(find_manifests(root_).size(), 1u) << "a new training has none before it";
}

TEST_F(Checkpoint, FallsBackToTheOneBeforeAndSaysSo) {
  Laboratory laboratory("{train.epochs: 4}");
  const Stages stages = laboratory.plan().stages();
  begin_checkpoints(root_, laboratory.plan(), alone_);
  save(laboratory, stages, 6);
  save(laboratory, stages, 8);
  for (const char* name :
       {"000008/stage-2.safetensors", "000008/metrics.safetensors", "manifest.json"}) {
    const std::string bytes = read_file(root_ / name);
    write_file(root_ / name, bytes.substr(0, bytes.size() - 3));
    const auto loaded = load(laboratory, stages);
    EXPECT_EQ(loaded->state.minibatches, 6) << name;
    ASSERT_EQ(loaded->remarks.size(), 1u);
    EXPECT_NE(loaded->remarks[0].find((root_ / name).string()), std::string::npos)
        << loaded->remarks[0];
    EXPECT_NE(loaded->remarks[0].find("going on from the one before"), std::string::npos);
    write_file(root_ / name, bytes);
  }
  std::filesystem::remove(root_ / "manifest.json");
  EXPECT_EQ(load(laboratory, stages)->state.minibatches, 6) << "a missing one is damaged, too";
  write_file(root_ / "manifest.previous.json", "{}");
  EXPECT_EQ(refusal(laboratory).where(), (root_ / "manifest.json").string());
}

TEST_F(Checkpoint, AfterADamagedOneKeepsTheOneThatIsWhole) {
  Laboratory laboratory("{train.epochs: 4}");
  const Stages stages = laboratory.plan().stages();
  save(laboratory, stages, 6);
  save(laboratory, stages, 8);
  write_file(root_ / "manifest.json", "{}");
  save(laboratory, stages, 8);
  write_file(root_ / "000008/stage-0.safetensors", "");
  EXPECT_EQ(load(laboratory, stages)->state.minibatches, 6);
}

TEST_F(Checkpoint, IsOfAnyTrainingWithTheSamePast) {
  const auto of = [](int epochs, const std::string& schedule) {
    return concat("{train.epochs: ", epochs, ", lr_schedule: {", schedule, "}}");
  };
  for (const char* schedule : {"name: constant", "name: step, size: 2",
                               "name: multistep, milestones: [1, 5], per: step"}) {
    Laboratory five(of(5, schedule)), seven(of(7, schedule)), two(of(2, schedule));
    save(five, five.plan().stages(), 12);
    EXPECT_EQ(load(seven, seven.plan().stages())->state.minibatches, 12) << schedule;
    save(seven, seven.plan().stages(), 18);
    EXPECT_EQ(load(five, five.plan().stages())->state.minibatches, 18) << schedule;
    EXPECT_EQ(refusal(two).kind(), ErrorKind::Experiment);
    EXPECT_NE(refusal(two).message().find("train.epochs 7 → 2"), std::string::npos);
  }
  // Both fall from the twelfth mini-batch on, or later. A prediction may have read what comes then.
  const std::string falling = "name: constant_then_linear, constant: 0.4, per: step";
  for (const char* rates : {"next", "each"}) {
    const auto predicted = [&](int epochs) {
      return concat("{scheme: {name: pipeoptim, prediction_lr: ", std::string_view(rates),
                    "}, train.epochs: ", epochs, ", lr_schedule: {", falling, "}}");
    };
    Laboratory short_one(predicted(5)), long_one(predicted(7));
    save(short_one, short_one.plan().stages(), 12);
    if (rates == std::string_view("next"))
      EXPECT_TRUE(load(long_one, long_one.plan().stages()));
    else
      EXPECT_NE(refusal(long_one).message().find("because the learning rate at"),
                std::string::npos);
  }
  Laboratory five(of(5, "name: cosine")), seven(of(7, "name: cosine"));
  save(five, five.plan().stages(), 12);
  const std::string why = refusal(seven).message();
  EXPECT_NE(why.find("the learning rate at epoch 2 was 0.04522542485937369"), std::string::npos)
      << why;
}

TEST_F(Checkpoint, RemovesNothingThatBearsAnothersName) {
  Laboratory laboratory("{train.epochs: 3}");
  const Stages stages = laboratory.plan().stages();
  const std::vector<std::string> others{"best.pt",
                                        "12/stage-0.safetensors",
                                        "models/0.pt",
                                        "000002/best.safetensors",
                                        "0000x2/stage-0.safetensors",
                                        "stage-0.safetensors.part"};
  for (const std::string& other : others) put(other, "of somebody else");
  const std::filesystem::path elsewhere = root_.parent_path() / (root_.filename().string() + "-x");
  write_file(elsewhere / "stage-0.safetensors", "behind a link");
  std::filesystem::create_directory_symlink(elsewhere, root_ / "000001");
  begin_checkpoints(root_, laboratory.plan(), alone_);
  save(laboratory, stages, 2);
  save(laboratory, stages, 4);
  save(laboratory, stages, 6);
  for (const std::string& other : others)
    EXPECT_EQ(read_file(root_ / other), "of somebody else") << other;
  EXPECT_FALSE(std::filesystem::exists(root_ / "000002/stage-0.safetensors"));
  EXPECT_EQ(read_file(elsewhere / "stage-0.safetensors"), "behind a link");
  remove_checkpoints(root_);
  for (const std::string& other : others)
    EXPECT_EQ(read_file(root_ / other), "of somebody else") << other;
  EXPECT_FALSE(std::filesystem::exists(root_ / "manifest.json"));
  EXPECT_FALSE(std::filesystem::exists(root_ / "000006"));
  std::filesystem::remove_all(elsewhere);
}

TEST_F(Checkpoint, IsNotWrittenThroughALink) {
  Laboratory laboratory("{train.epochs: 3}");
  const std::filesystem::path link = root_.parent_path() / (root_.filename().string() + "-link");
  std::filesystem::create_directory_symlink(root_, link);
  put("000001/stage-0.safetensors", "of another run");
  try {
    begin_checkpoints(link, laboratory.plan(), alone_);
    ADD_FAILURE() << "it was written";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Data) << error.what();
  }
  remove_checkpoints(link);
  EXPECT_EQ(read_file(root_ / "000001/stage-0.safetensors"), "of another run");
  std::filesystem::remove(link);
}

TEST_F(Checkpoint, HasTheSameBytesForTheSameState) {
  Laboratory laboratory("{scheme: {name: pipedream}, train.epochs: 2}");
  const Stages stages = laboratory.plan().stages();
  save(laboratory, stages);
  const std::string once =
      read_file(file("stage-0.safetensors")) + read_file(root_ / "manifest.json");
  save(laboratory, stages);
  EXPECT_EQ(read_file(file("stage-0.safetensors")) + read_file(root_ / "manifest.json"), once);
}

/// Two processes that hold two of the four stages each, one after the other in one thread: what
/// process 1 gathers is kept for process 0.
class Pair final : public Team {
 public:
  Pair(int rank, std::string& of_the_other) : rank_(rank), other_(of_the_other) {}
  int rank() const override { return rank_; }
  int size() const override { return 2; }
  std::vector<std::string> gather(std::string bytes) override {
    if (rank_ == 0) return {std::move(bytes), other_};
    other_ = std::move(bytes);
    return {};
  }

 private:
  int rank_;
  std::string& other_;
};

TEST_F(Checkpoint, IsWrittenByAllWhoHoldAStageAndReadByEachForItself) {
  Laboratory laboratory("{train.epochs: 2, scheme: {name: pipedream}}");
  const Stages whole = laboratory.plan().stages();
  train(laboratory.plan(), whole, Execution::Serial, nullptr, 0);
  save(laboratory, whole);
  auto half = [&](int rank) {
    Stages stages = laboratory.plan().stages();
    for (std::size_t i = 0; i < 2; ++i) stages[rank == 0 ? i + 2 : i].reset();
    return stages;
  };
  const Stages first = half(0), second = half(1);
  ASSERT_TRUE(load(laboratory, first) && load(laboratory, second));
  for (std::size_t i = 0; i < 4; ++i) {
    const Stage& loaded = *(i < 2 ? first : second)[i];
    EXPECT_TRUE(
        at::equal(loaded.named_parameters()[0].second, whole[i]->named_parameters()[0].second));
  }
  std::filesystem::remove_all(root_);
  std::string of_the_other;
  Pair one(1, of_the_other), zero(0, of_the_other);
  save_checkpoint(root_, laboratory.plan(), held_replicas(laboratory.plan(), second),
                  state_after(6), {}, one);
  EXPECT_FALSE(std::filesystem::exists(root_ / "manifest.json"))
      << "nothing is there before all is";
  save_checkpoint(root_, laboratory.plan(), held_replicas(laboratory.plan(), first), state_after(6),
                  {}, zero);
  const Stages alone = laboratory.plan().stages();
  ASSERT_TRUE(load(laboratory, alone));
  EXPECT_EQ(difference(alone, whole), "");
}

TEST_F(Checkpoint, OfAnotherExperimentIsRefused) {
  Laboratory laboratory, other("{optimizer.lr: 0.5}");
  save(laboratory, laboratory.plan().stages());
  const Error error = refusal(other);
  EXPECT_EQ(error.kind(), ErrorKind::Experiment);
  EXPECT_EQ(error.where(), root_.string());
}

TEST_F(Checkpoint, DamagedAnywhereIsRefusedWithTheFilesName) {
  Laboratory laboratory("{train.epochs: 2}");
  save(laboratory, laboratory.plan().stages());
  for (const char* name :
       {"000006/stage-2.safetensors", "000006/metrics.safetensors", "manifest.json"}) {
    const std::filesystem::path path = root_ / name;
    const std::string bytes = read_file(path);
    std::string flipped = bytes;
    flipped[bytes.size() / 2] = static_cast<char>(flipped[bytes.size() / 2] ^ '\x80');
    for (const std::string& damaged :
         {std::string(), bytes.substr(0, 7), bytes.substr(0, bytes.size() - 3), flipped}) {
      write_file(path, damaged);
      const Error error = refusal(laboratory);
      EXPECT_EQ(error.kind(), ErrorKind::Data) << error.what();
      EXPECT_EQ(error.where(), path.string()) << error.what();
    }
    std::filesystem::remove(path);
    EXPECT_EQ(refusal(laboratory).where(), path.string()) << "missing";
    write_file(path, bytes);
  }
  EXPECT_TRUE(load(laboratory, laboratory.plan().stages()));
}

TEST_F(Checkpoint, OfOtherTensorsIsRefused) {
  Laboratory laboratory("{train.epochs: 2}");
  const Stages stages = laboratory.plan().stages();
  save(laboratory, stages);
  // An honest manifest of a wrong file: only the names tell.
  const TensorFile whole = read_safetensors(file("stage-1.safetensors"));
  for (const char* name : {"1.weight", "optimizer.momentum_buffer.1.bias"})
    for (const bool without : {true, false}) {
      save(laboratory, stages);
      TensorFile other = whole;
      for (auto& [each, tensor] : other.tensors)
        if (each == name) tensor = at::zeros({3});
      if (without)
        std::erase_if(other.tensors, [&](const auto& each) { return each.first == name; });
      write_safetensors(file("stage-1.safetensors"), other);
      auto manifest = *read_manifest(root_);
      CheckpointFile described = described_file(file("stage-1.safetensors"));
      for (CheckpointFile& each : manifest.files)
        if (each.name == described.name) each = described;
      commit_manifest(root_, manifest);
      const Error error = refusal(laboratory);
      EXPECT_EQ(error.kind(), ErrorKind::Data);
      EXPECT_NE(error.message().find(concat("'", name, "'")), std::string::npos) << error.what();
    }
}

TEST_F(Checkpoint, AStateOfACodecThatCannotBeIsRefusedWithTheFilesName) {
  Laboratory laboratory("{train.epochs: 2, pipeline.compression: {name: aq_sgd, bits: 4}}");
  const Stages stages = laboratory.plan().stages();
  const auto path = file("edges-0.replica-0.safetensors");
  for (const auto& [name, why] :
       {std::pair("x.forward.0.rows.3", "'x' is no number"), std::pair("1.rows", "is no edge's"),
        std::pair("1.forward.0.samples.3", "rows.3")}) {
    save(laboratory, stages);
    write_safetensors(path, {.tensors = {{name, at::zeros({3}, at::kLong)}}});
    auto manifest = *read_manifest(root_);
    manifest.files.push_back(described_file(path));
    commit_manifest(root_, manifest);
    const auto edges = laboratory.plan().edges(alone_);
    try {
      load_checkpoint(root_, laboratory.plan(), held_replicas(laboratory.plan(), stages, edges),
                      alone_);
      ADD_FAILURE() << name << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Data);
      EXPECT_EQ(error.where(), path.string()) << error.what();
      EXPECT_NE(error.message().find(why), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace pipewright::test
