# SPDX-License-Identifier: Apache-2.0
"""Small mistakes, one at a time, and the tests that must fail for each; see README.md."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    breaks: str  # what is wrong then
    file: str
    old: str  # stands once in the file
    new: str
    suite: str  # core_tests, lab_tests, or a test of ctest
    tests: str = "*"  # GoogleTest's filter


MUTANTS = [
    # schemes
    Mutant("vertical sync reads one version too new", "schemes/pipedream.cpp",
           "forwarded - (pass.stages - 1)", "forwarded - (pass.stages - 2)", "core_tests", "PipeDream*"),
    Mutant("PipeDream's backwards read the newest weights", "schemes/pipedream.cpp",
           "weight_stashing_ ? forward_weights : latest_weights", "weight_stashing_ ? latest_weights : forward_weights",
           "core_tests", "PipeDream*"),
    Mutant("PipeDream-2BW reads the newest version", "schemes/pipedream_2bw.cpp",
           "std::max(0, pass.minibatch - 1)", "std::max(0, pass.minibatch)", "core_tests", "*2BW*:Copies*:*Staleness*"),
    Mutant("SpecTrain aims backwards half a stage too far", "schemes/spectrain.cpp",
           "version_ == 1 ? stage / 2 : 0", "version_ == 1 ? (stage + 1) / 2 : 0", "core_tests", "SpecTrain*"),
    Mutant("PipeMare's drift decays by the delay, not by its root", "schemes/pipemare.cpp",
           "std::pow(decay_, 1 / delay(shape, stage))", "std::pow(decay_, delay(shape, stage))", "core_tests", "PipeMare*"),
    Mutant("PipeMare's delay counts the stages before, not behind", "schemes/pipemare.cpp",
           "shape.stages - 1 - stage) / shape.microbatches", "stage) / shape.microbatches", "core_tests", "PipeMare*"),
    Mutant("geometric delays have another mean", "schemes/delayed_sgd.cpp",
           "log_q = -std::log1p(1 / mean_)", "log_q = -std::log1p(1 / (1 + mean_))", "core_tests", "*Delay*"),
    # schedule
    Mutant("1F1B warms up with one forward too few", "core/schedule/builders.cpp",
           "how.fill_drain ? count : std::min(depth, count)", "how.fill_drain ? count : std::min(depth - 1, count)",
           "core_tests", "OneFOneB*:Builders*:Slot*:PipeDream*"),
    Mutant("stages are counted from the other end", "core/schedule/builders.cpp",
           "shape.microbatches, shape.stages - 1 - stage, how)", "shape.microbatches, stage, how)",
           "core_tests", "OneFOneB*:Builders*:Slot*:PipeDream*"),
    Mutant("a prediction counts its distance from the wrong update", "core/schedule/builders.cpp",
           "if (!steady) return minibatch - updates_before;", "if (!steady) return minibatch - updates_before + 1;",
           "core_tests", "PassPlace*:ColdStart*"),
    Mutant("a version is freed too early or never", "core/schedule/versions.cpp",
           "const bool latest = weights.key.ahead == 0 && weights.key.version == weights.latest;",
           "const bool latest = weights.key.ahead == 0;", "core_tests", "*Copies*:*Versions*"),
    Mutant("staleness forgets how far a pass predicts", "core/schedule/versions.cpp",
           "to->second - (weights[i].key.version + weights[i].key.ahead)", "to->second - weights[i].key.version",
           "core_tests", "*Stale*:*Versions*:SpecTrain*"),
    # stage
    Mutant("Nesterov's step forgets the fresh gradient", "core/stage/optimizers/sgd.cpp",
           "return w - factor<V>(lr) * (g + factor<V>(mu) * v[0]);", "return w - factor<V>(lr) * (factor<V>(mu) * v[0]);",
           "lab_tests", "*Optimizer*:Sgd*"),
    Mutant("geometric predictions sum one power too many", "core/stage/optimizers/sgd.cpp",
           "for (int j = 1; j <= steps; ++j)", "for (int j = 0; j <= steps; ++j)", "lab_tests", "*Predict*:*Optimizer*:Sgd*"),
    Mutant("Adam's second moment is corrected like the first", "core/stage/optimizers/adam.cpp",
           "1 - std::pow(adam.betas_[1], static_cast<double>(steps))", "1 - std::pow(adam.betas_[0], static_cast<double>(steps))",
           "lab_tests", "*Optimizer*:Adam*"),
    Mutant("AdamW grows weights instead of shrinking them", "core/stage/optimizers/adam.cpp",
           "decoupled_ ? 1 - s.lr * weight_decay_ : 1", "decoupled_ ? 1 + s.lr * weight_decay_ : 1",
           "lab_tests", "*Optimizer*:Adam*"),
    Mutant("weight gradients stay multiplied by the loss scale", "core/stage/stage.cpp",
           "const Adding adding(gradient_scale_, request.scale / scale());", "const Adding adding(gradient_scale_, request.scale);",
           "lab_tests", "*LossScaling*:*MixedPrecision*"),
    # runtime
    Mutant("a sum over replicas leaves the last one out", "core/runtime/reduction.cpp",
           "for (std::size_t r = 1; r < parts_.size(); ++r) {", "for (std::size_t r = 1; r + 1 < parts_.size(); ++r) {",
           "lab_tests", "Reduction*:Executions*"),
    Mutant("a mini-batch's loss is the mean of its micro-batches, whatever their sizes", "core/runtime/losses_and_metrics.cpp",
           "static_cast<double>(share.samples) / static_cast<double>(share.all_samples)", "share.samples > 0 ? 1.0 / shape_.microbatches : 0",
           "lab_tests", "Trainer*:*Losses*:Program*"),
    Mutant("serial execution leaves a loop out once", "core/runtime/executor.cpp",
           "round < (program_.loop ? program_.loop->rounds : 1)", "round < (program_.loop ? program_.loop->rounds - 1 : 1)",
           "lab_tests", "LoopProgram*"),
    # training
    Mutant("a smaller last mini-batch is taken for a whole one", "core/training/loader.cpp",
           "position % per_epoch_ + 1 < per_epoch_ ? sizes_.front() : sizes_.back()", "position < 0 ? sizes_.back() : sizes_.front()",
           "lab_tests", "Loader*:Trainer*"),
    Mutant("shuffling never moves the first sample", "core/training/loader.cpp",
           "for (std::size_t i = indices.size(); i > 1; --i)\n    std::swap(indices[i - 1], indices[stream.below(i, i)]);",
           "for (std::size_t i = indices.size(); i > 2; --i)\n    std::swap(indices[i - 1], indices[stream.below(i, i)]);",
           "lab_tests", "Loader*:EpochPermutation*:Trainer*"),
    Mutant("checkpoints forget the updates that loss scaling has skipped", "core/training/checkpoint.cpp",
           ".skipped = file->loss_scale->skipped};", ".skipped = 0};", "lab_tests", "Checkpoint*:*LossScaling*"),
    # records and system
    Mutant("a file is renamed before its content is synced", "core/system/file.cpp",
           "if (syncs.content && ::fsync(file.descriptor()) != 0)", "if (false && ::fsync(file.descriptor()) != 0)",
           "e2e_crash"),
    Mutant("two processes take the same folder", "core/system/folder_lock.cpp",
           "if (!take(marker_, LOCK_EX)) refuse_taken(folder, marker_);",
           "if (!take(marker_, LOCK_SH)) refuse_taken(folder, marker_);",
           "core_tests", "*Folder*:*Lock*"),
    Mutant("a log that is resumed has the checksum of its new rows only", "core/records/row_log.cpp",
           "log.crc_ = static_cast<std::uint32_t>(std::stoul(part.checksum, nullptr, 16));", "log.crc_ = 0;",
           "lab_tests", "StepLogs*:Checkpoint*"),
    # config
    Mutant("the largest value of a range is refused", "core/config/options.cpp",
           "value <= info.most.value_or(value)", "value < info.most.value_or(value + 1)", "core_tests", "Options*"),
    Mutant("a zipped sweep pairs values with their neighbours", "core/config/sweep.cpp",
           "all[i].emplace_back(key, list.items[i]);", "all[i].emplace_back(key, list.items[(i + 1) % length]);",
           "core_tests", "*Sweep*"),
    # codecs
    Mutant("fp8 scales by the largest value without its sign", "core/codecs/kinds/fp8.cpp",
           "std::max(-range.least(), range.most()) / settings_.largest()", "range.most() / settings_.largest()",
           "lab_tests", "*Fp8*:*Codec*"),
    # simulation
    Mutant("a message does not wait for the one before it on its link", "core/simulation/network.cpp",
           "link.free = sent;", "link.free = begin;", "core_tests", "*Simulat*:Links*:Buses*:CopyEngines*"),
    Mutant("a ring of replicas sends once around only", "core/simulation/network.cpp",
           "const std::int64_t steps = 2 * (replicas - 1);", "const std::int64_t steps = replicas - 1;",
           "core_tests", "*Simulat*:*Network*:*Clock*"),
    # reports
    Mutant("epochs of a plot are counted from 0", "core/reports/samples.cpp",
           "samples.push_back({at + 1, value, {}});", "samples.push_back({at, value, {}});", "core_tests", "*Curve*:*Plot*:*Samples*"),
    Mutant("a run without the metric counts as failed", "core/reports/table.cpp",
           "++cell.without;", "++cell.failed;", "core_tests", "*Table*"),
    # cost
    Mutant("of equal cuts the one with the larger first block wins", "core/cost/partition.cpp",
           "if (value < best[p][i].value || best[p][i].first == 0)", "if (value <= best[p][i].value || best[p][i].first == 0)",
           "core_tests", "*Partition*"),
]  # fmt: skip
