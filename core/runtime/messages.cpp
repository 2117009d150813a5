// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/messages.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/runtime/observer.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

/// Host seconds that a call takes.
template <class Call>
double seconds_of(const Call& call) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  call();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

bool is_gradient(const Action& action) {
  return action.kind != ActionKind::Forward;
}

Tensors floating(const Tensors& tensors) {
  Tensors some;
  for (const at::Tensor& tensor : tensors)
    if (tensor.is_floating_point()) some.push_back(tensor);
  return some;
}

at::Tensor scale_of(const LossScale& loss, at::Device device) {
  return at::full({}, loss.scale, at::TensorOptions(at::kLong).device(device));
}

void bring_to(at::Device device, at::Tensor& tensor) {
  if (tensor.defined() && tensor.device() != device) tensor = tensor.to(device);
}

/// All tensors of a message, moved to the device where they are not there yet.
void bring_to(at::Device device, Envelope& message) {
  for (at::Tensor& tensor : message.tensors) bring_to(device, tensor);
  if (message.originals)
    for (at::Tensor& tensor : *message.originals) bring_to(device, tensor);
  bring_to(device, message.scale);
}

/// Adds gradients to sums of those before, which are then in the wide format.
void add_to(Tensors& sums, Tensors gradients) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const bool narrow = at::isReducedFloatingType(sums[i].scalar_type());
    gradients[i] = (narrow ? sums[i].to(at::kFloat) : sums[i]).add(gradients[i]);
  }
  sums = std::move(gradients);
}

/// Moves the tensors that bypass the neighbour out of a pass's tensor list.
Tensors take_bypassing(const Bypass& bypass, Tensors& tensors) {
  if (bypass.groups.empty()) return {};
  const auto last = tensors.end() - bypass.behind, first = last - bypass.count();
  Tensors skipping(std::make_move_iterator(first), std::make_move_iterator(last));
  for (at::Tensor& tensor : skipping)
    if (!tensor.defined()) tensor = at::empty({0});  // place holder: integers have no gradient
  tensors.erase(first, last);
  return skipping;
}

}  // namespace

Messages::Messages(const Program& program, const std::vector<std::unique_ptr<Stage>>& stages,
                   const RunRequest& request, const PassSamples& passes, Transport& transport,
                   TraceRecorder& trace)
    : shape_(program.schedule.shape),
      stages_(stages),
      edges_(request.edges),
      observer_(request.observer),
      passes_(passes),
      transport_(transport),
      trace_(trace),
      traffic_(shape_),
      borrowed_(stages.size()) {}

Tensors Messages::inputs(const Instruction& instruction, int worker) {
  const Bypass& bypass = instruction.bypass_received;
  for (const Bypass::Group& each : bypass.groups)  // they have left before the owner's forward
    if (each.lent() && each.port.used())
      borrowed(instruction.action, each).weights =
          receive(instruction, each.port, each.stage, worker, /*may_be_coded=*/false);
  Tensors inputs = receive(instruction, instruction.receive, instruction.action.stage - 1, worker);
  if (bypass.groups.empty()) return inputs;
  const Tensors skipped = receive_bypassing(instruction, worker);
  inputs.insert(inputs.end() - bypass.behind, skipped.begin(), skipped.end());
  return inputs;
}

Messages::Gradients Messages::gradients(const Instruction& instruction, int worker) {
  Tensors of_neighbour =
      receive(instruction, instruction.receive, instruction.action.stage + 1, worker);
  return {std::move(of_neighbour), receive_bypassing(instruction, worker)};
}

void Messages::send(const Instruction& instruction, Tensors tensors) {
  const Action& action = instruction.action;
  const int neighbour = action.stage + (action.kind == ActionKind::Forward ? 1 : -1);
  Tensors skipping = take_bypassing(instruction.bypass_sent, tensors);
  tensors.erase(std::remove_if(tensors.begin(), tensors.end(),
                               [](const at::Tensor& tensor) { return !tensor.defined(); }),
                tensors.end());
  if (instruction.send.used()) send(instruction, instruction.send, neighbour, std::move(tensors));
  auto next = std::make_move_iterator(skipping.begin());
  for (const Bypass::Group& each : instruction.bypass_sent.groups) {
    Tensors group(next, next + each.count);
    next += each.count;
    if (each.lent() && action.kind != ActionKind::Forward)
      give_back(instruction, each, std::move(group));
    else if (!each.lent() && each.port.used())
      send(instruction, each.port, each.stage, std::move(group));
  }
}

/// Adds gradients of borrowed weights, and sends the sums once they are complete.
void Messages::give_back(const Instruction& instruction, const Bypass::Group& group,
                         Tensors gradients) {
  Tensors& sums = borrowed(instruction.action, group).gradients;
  const at::ScalarType format = gradients[0].scalar_type();
  add_to(sums, std::move(gradients));
  if (!group.port.used()) return;
  if (sums[0].scalar_type() != format) {
    for (at::Tensor& each : sums) each = each.to(format);
    // A sum may be too large for the narrow format where no term was.
    stage_of(instruction.action).gradient_sums().note_sent(sums);
  }
  send(instruction, group.port, group.stage, std::exchange(sums, {}), /*coded=*/false);
}

void Messages::lend(const Instruction& instruction) {
  for (const Bypass::Group& each : instruction.bypass_sent.groups)
    if (each.lent() && each.port.used())
      send(instruction, each.port, each.stage, {stage_of(instruction.action).lent(each.parameter)},
           /*coded=*/false);
}

void Messages::give(const Instruction& instruction) {
  for (const Bypass::Group& each : instruction.given.groups)
    send(instruction, each.port, each.stage,
         {stage_of(instruction.action).lent_gradient(each.parameter)},
         /*coded=*/false);
}

void Messages::take_back(const Instruction& instruction, int worker) {
  const Action& action = instruction.action;
  for (const Bypass::Group& each : instruction.given_back.groups)
    stage_of(action).add_lent(
        each.parameter,
        receive(instruction, each.port, each.stage, worker, /*may_be_coded=*/false)[0],
        is_pass(action.kind) ? action.scale : 1);
}

/// Receives all bypass groups of an instruction, concatenated in order; gradients of weights come
/// back by themselves.
Tensors Messages::receive_bypassing(const Instruction& instruction, int worker) {
  Tensors all;
  for (const Bypass::Group& each : instruction.bypass_received.groups) {
    Tensors group(as_size(each.count));
    if (each.lent() && instruction.action.kind == ActionKind::Forward) {
      group = borrowed(instruction.action, each).weights;
      for (at::Tensor& weight : group) weight = weight.detach();
    } else if (each.port.used()) {
      group = receive(instruction, each.port, each.stage, worker);
    }
    all.append(group.begin(), group.end());
  }
  return all;
}

void Messages::send(const Instruction& instruction, const Port& port, int peer, Tensors tensors,
                    bool coded) {
  const Action& action = instruction.action;
  const std::size_t values = bytes_of(tensors);
  std::size_t crossing = values;
  double coding = 0;
  Stage& stage = stage_of(action);
  Envelope message;
  if (EdgeEnds* const ends = coded ? ends_of(action) : nullptr) {
    CodecCall call = passes_.codec_call(action);
    if (ends->compresses(peer, call)) {
      call.gradients = port.gradients;
      if (scales(action)) call.loss_scale = static_cast<double>(stage.loss_scale()->scale);
      if (shows(action)) message.originals = floating(tensors);
      coding = seconds_of([&] { ends->encode(tensors, peer, call); });
      crossing = bytes_of(tensors);
    }
  }
  message.tensors = std::move(tensors);
  if (port.crosses) traffic_.sent(action.stage, peer, action.replica, values, crossing, coding);
  const int worker = shape_.worker_of(action.stage, action.replica);
  trace_.encoded(worker, coding);
  if (scales(action)) message.scale = scale_of(*stage.loss_scale(), stage.device());
  trace_.sending(worker, [&] { transport_.send(port, std::move(message)); });
}

Tensors Messages::receive(const Instruction& instruction, const Port& port, int peer, int worker,
                          bool may_be_coded) {
  const Action& action = instruction.action;
  EdgeEnds* const ends = may_be_coded ? ends_of(action) : nullptr;
  const CodecCall call = ends != nullptr ? passes_.codec_call(action) : CodecCall();
  const bool coded = ends != nullptr && ends->compresses(peer, call);
  Envelope message = transport_.receive(
      port, worker, {.originals = coded && shows(action), .scale = scales(action)});
  if (port.crosses) trace_.arrived(worker);
  Stage& stage = stage_of(action);
  bring_to(stage.device(), message);
  Tensors tensors = std::move(message.tensors);
  if (coded) {
    const double coding = seconds_of([&] { ends->decode(tensors, peer, call); });
    if (port.crosses) traffic_.received(peer, action.stage, action.replica, coding);
    trace_.decoded(worker, coding);
    if (message.originals) observer_->compared(action, peer, *message.originals, floating(tensors));
  } else if (ends != nullptr && is_gradient(action)) {
    ends->through(tensors, peer, call);
  }
  if (message.scale.defined()) stage.loss_scale()->adopt(tensors, message.scale);
  return tensors;
}

/// Whether messages of that pass carry the loss scale of its stage.
bool Messages::scales(const Action& action) const {
  return is_gradient(action) && stage_of(action).loss_scale();
}

/// Whether an observer wants the original tensors of that pass's messages.
bool Messages::shows(const Action& action) const {
  return observer_ != nullptr && observer_->compares(action);
}

std::size_t Messages::place_of(const Action& action) const {
  return as_size(action.replica * shape_.stages + action.stage);
}

EdgeEnds* Messages::ends_of(const Action& action) const {
  return edges_ == nullptr ? nullptr : (*edges_)[place_of(action)].get();
}

}  // namespace pipewright
