// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/measuring/memory_trial.h"

#include "core/base/as_size.h"
#include "core/measuring/made_up_batch.h"
#include "core/runtime/batches.h"
#include "core/runtime/devices/intra_op_threads.h"
#include "core/runtime/devices/memory_count.h"
#include "core/runtime/program.h"
#include "core/schedule/versions.h"
#include "core/stage/stage.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

Tensors fresh(const Tensors& tensors) {
  Tensors all;
  for (const at::Tensor& tensor : tensors) all.push_back(tensor.clone());
  return all;
}

Tensors gradients_of(const Tensors& outputs) {
  Tensors gradients;
  for (const at::Tensor& output : outputs)
    if (output.is_floating_point()) gradients.push_back(at::ones_like(output));
  return gradients;
}

/// One stage of replica 0 that does what its worker's instructions say.
class Trial {
 public:
  Trial(const Experiment& e, const Program& program, int stage, at::Device device)
      : program_(program),
        stage_({.index = stage,
                .last = stage + 1 == e.pipeline.stages,
                .layers = e.stage_layers()[as_size(stage)],
                .head = head_of(e, program, stage),
                .options = at::TensorOptions(e.train.precision.weights).device(device),
                .narrow = e.train.precision.narrow(),
                .channels_last = *e.layout.channels_last,
                .optimizer = e.optimizer.get(),
                .loss = e.loss.get(),
                .predicts = predictions_of(program.schedule).any,
                .keep_gradient = predictions_of(program.schedule).by_lookahead},
               e.train.seed) {}

  /// What it hands on, without keeping anything.
  Tensors outputs(const Tensors& inputs) {
    return stage_.forward(0, fresh(inputs), {.training = false}, false);
  }

  void run(const Tensors& inputs, const Tensors& outputs, const at::Tensor& targets) {
    for (const Instruction& instruction : program_.workers[as_size(worker())]) {
      const Action& action = instruction.action;
      if (action.stage != stage_.index() || action.replica != 0) continue;
      switch (action.kind) {
        case ActionKind::Forward: forward(instruction, inputs, targets); break;
        case ActionKind::Head: head(instruction, targets); break;
        case ActionKind::Backward:
        case ActionKind::BackwardInput: backward(instruction, outputs); break;
        case ActionKind::Recompute: recompute(instruction, targets); break;
        case ActionKind::BackwardWeight:
          use(instruction);
          stage_.backward_weight(id(action), action.loss, action.scale);
          break;
        case ActionKind::Reduce:
        case ActionKind::Offload:
        case ActionKind::Fetch: continue;
        case ActionKind::Update: update(instruction); continue;
      }
      for (const WeightKey& key : instruction.weights.frees) stage_.weights().free(key);
    }
  }

 private:
  static LayerPtr head_of(const Experiment& e, const Program& program, int stage) {
    if (std::ranges::count(program.schedule.auxiliary, stage) == 0) return nullptr;
    LayerPtr head = e.head_behind(stage);
    head->set_name(concat("heads.", stage));
    return head;
  }

  int worker() const { return program_.schedule.shape.worker_of(stage_.index(), 0); }
  int id(const Action& action) const {
    return action.minibatch * program_.schedule.shape.microbatches + action.microbatch;
  }
  std::optional<Stage::Ahead> prediction(const Instruction& instruction) const {
    const WeightKey& key = instruction.weights.key;
    if (!instruction.weights.makes) return {};
    return Stage::Ahead{key, program_.schedule.rules[as_size(key.rule)], 0};
  }
  void use(const Instruction& instruction) {
    stage_.use(instruction.weights.key, prediction(instruction));
  }

  void forward(const Instruction& instruction, const Tensors& inputs, const at::Tensor& targets) {
    const int number = id(instruction.action);
    Tensors received = fresh(inputs);
    use(instruction);
    stage_.forward(number, std::move(received), {}, instruction.input_gradient,
                   instruction.restored_by == ActionKind::Recompute ? Stage::Keep::Inputs
                                                                    : Stage::Keep::Graph);
    loss(number, targets);
  }

  void recompute(const Instruction& instruction, const at::Tensor& targets) {
    use(instruction);
    stage_.recompute(id(instruction.action), {});
    loss(id(instruction.action), targets);
  }

  void loss(int number, const at::Tensor& targets) {
    if (stage_.index() + 1 == program_.schedule.shape.stages) stage_.final_loss(number, targets);
  }

  void head(const Instruction& instruction, const at::Tensor& targets) {
    use(instruction);
    stage_.head(id(instruction.action), targets, {}, 1, instruction.input_gradient);
  }

  void backward(const Instruction& instruction, const Tensors& outputs) {
    const Action& action = instruction.action;
    Stage::BackwardRequest request{.own_loss = action.loss == action.stage,
                                   .learn = action.kind == ActionKind::Backward,
                                   .scale = action.scale,
                                   .input_gradient = instruction.input_gradient,
                                   .last = instruction.last_pass};
    if (instruction.first_half) request.half_of = action.loss;
    if (!request.own_loss) request.gradients = gradients_of(outputs);
    use(instruction);
    stage_.backward(id(action), std::move(request));
  }

  void update(const Instruction& instruction) {
    stage_.update(instruction.weights.in_place, 0, prediction(instruction));
  }

  const Program& program_;
  Stage stage_;
};

std::int64_t peak_of(const Experiment& e, const Program& program, int stage, at::Device device,
                     const Tensors& inputs, const Tensors& outputs, const at::Tensor& targets) {
  MemoryCount count(device);
  Trial trial(e, program, stage, device);
  count.forget_peak();  // initialisation is over
  trial.run(inputs, outputs, targets);
  return count.peak();
}

}  // namespace

std::vector<std::int64_t> measure_stage_peaks(const Experiment& e, int minibatches,
                                              at::Device device) {
  const IntraOpThreads threads(e.pipeline.threads);
  const Program program = compile(prove(e.schedule(minibatches)));
  const std::int64_t samples = slice_of(slice_of(e.loader.batch_size, e.pipeline.replicas, 0).size,
                                        e.pipeline.microbatches, 0)
                                   .size;
  const auto options = at::TensorOptions(e.train.precision.values).device(device);
  Batch batch = made_up_batch(*e.model, samples, options, e.loss->fits(Task::Regress));
  Tensors inputs = batch.x;
  std::vector<std::int64_t> peaks;
  for (int stage = 0; stage < e.pipeline.stages; ++stage) {
    const Tensors outputs = Trial(e, program, stage, device).outputs(inputs);
    peaks.push_back(peak_of(e, program, stage, device, inputs, outputs, batch.y));
    inputs = outputs;
  }
  return peaks;
}

}  // namespace pipewright
