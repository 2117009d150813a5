// SPDX-License-Identifier: Apache-2.0
/// The kinds of action, one row of facts each. All code that asks what a kind is or does reads the
/// row. A new kind needs, besides its row, the place where its input is made (dependencies.cpp),
/// its duration (core/cost/cost.cpp), its colours (core/drawing/kind_colors.cpp) and what a stage
/// does (core/runtime/performer.cpp).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pipewright {

/// Head is the forward, loss and backward of an auxiliary loss site; it alone makes the head's own
/// gradient. Recompute runs a forward again, for its activations (recompute.h). BackwardInput alone
/// relays the gradient of a loss to the stage before, which learns from it though this stage does
/// not; followed by the BackwardWeight of the same pass it is the first half of a split backward.
/// Offload copies what a forward keeps for its backwards from the device to the memory of its host,
/// and Fetch copies it back (offload.h); the worker goes on meanwhile. Reduce sums a stage's
/// gradient over its replicas. Update is the optimizer's step.
enum class ActionKind : std::uint8_t {
  Forward,
  Head,
  Recompute,
  Backward,
  BackwardInput,
  BackwardWeight,
  Offload,
  Fetch,
  Reduce,
  Update
};

/// Which pass makes what an action needs before it may start (PassIndex::input_of).
enum class ActionInput : std::uint8_t {
  None,
  ForwardBefore,   ///< the forward of the stage before; the first stage reads samples
  OwnForward,      ///< the forward of the same stage
  GradientBehind,  ///< the backward of the next stage; at the loss itself, its head or forward
  FirstHalf        ///< the input-only backward of the same pass
};

/// What an action sends to a neighbouring stage.
enum class ActionOutput : std::uint8_t { None, Activation, Gradient };

/// Whose weight gradient an action adds to.
enum class WeightGradient : std::uint8_t { None, OfHead, OfStage };

struct ActionKindFacts {
  ActionKind kind;
  const char* name;         ///< "input-only backward"
  std::string_view letter;  ///< between stage and mini-batch in names: "2b3"
  std::string_view legend;  ///< its sign in a text grid, and what the sign means
  bool pass = false;        ///< computes on one micro-batch with its stage's weights
  /// Belongs to one micro-batch (Action::microbatch), as every pass does.
  bool of_microbatch = false;
  bool of_loss = false;  ///< belongs to one loss site (Action::loss)
  ActionInput input = ActionInput::None;
  ActionOutput output = ActionOutput::None;
  WeightGradient weight_gradient = WeightGradient::None;
  /// 1: it brings the activations of its forward back to the device; −1: it takes them away; 0:
  /// neither.
  int restores = 0;
  int slots = 0;  ///< width in drawings: a backward is twice a forward; 0: a mark
  int track = 0;  ///< 0: the worker does it; 1, 2: it goes on beside the worker, on its own track
  /// The smallest of a worker's ready actions runs first, so that memory is freed and other workers
  /// can go on.
  int urgency = 0;
};

/// The facts of each kind, in the order of ActionKind.
inline constexpr std::array<ActionKindFacts, 10> kActionKinds = {{
    {.kind = ActionKind::Forward,
     .name = "forward",
     .letter = "F",
     .legend = "F forward",
     .pass = true,
     .of_microbatch = true,
     .input = ActionInput::ForwardBefore,
     .output = ActionOutput::Activation,
     .slots = 1,
     .urgency = 3},
    {.kind = ActionKind::Head,
     .name = "head",
     .letter = "H",
     .legend = "H head",
     .pass = true,
     .of_microbatch = true,
     .of_loss = true,
     .input = ActionInput::OwnForward,
     .weight_gradient = WeightGradient::OfHead,
     .slots = 1,
     .urgency = 2},
    {.kind = ActionKind::Recompute,
     .name = "recompute",
     .letter = "r",
     .legend = "r recompute",
     .pass = true,
     .of_microbatch = true,
     .input = ActionInput::OwnForward,
     .restores = 1,
     .slots = 1,
     .urgency = 2},
    {.kind = ActionKind::Backward,
     .name = "backward",
     .letter = "B",
     .legend = "B backward",
     .pass = true,
     .of_microbatch = true,
     .of_loss = true,
     .input = ActionInput::GradientBehind,
     .output = ActionOutput::Gradient,
     .weight_gradient = WeightGradient::OfStage,
     .slots = 2,
     .urgency = 2},
    {.kind = ActionKind::BackwardInput,
     .name = "input-only backward",
     .letter = "b",
     .legend = "b relay",
     .pass = true,
     .of_microbatch = true,
     .of_loss = true,
     .input = ActionInput::GradientBehind,
     .output = ActionOutput::Gradient,
     .slots = 1,
     .urgency = 1},
    {.kind = ActionKind::BackwardWeight,
     .name = "weight-only backward",
     .letter = "W",
     .legend = "W weight gradient",
     .pass = true,
     .of_microbatch = true,
     .of_loss = true,
     .input = ActionInput::FirstHalf,
     .weight_gradient = WeightGradient::OfStage,
     .slots = 1,
     .urgency = 4},  // no other worker waits for it
    {.kind = ActionKind::Offload,
     .name = "offload",
     .letter = "o",
     .legend = "^ offload",
     .of_microbatch = true,
     .input = ActionInput::OwnForward,
     .restores = -1,
     .track = 1},
    {.kind = ActionKind::Fetch,
     .name = "fetch",
     .letter = "f",
     .legend = "v fetch",
     .of_microbatch = true,
     .input = ActionInput::OwnForward,
     .restores = 1,
     .track = 2},
    {.kind = ActionKind::Reduce, .name = "reduce", .letter = "R", .legend = "+ reduce"},
    {.kind = ActionKind::Update, .name = "update", .letter = "U", .legend = "| update"},
}};

constexpr const ActionKindFacts& facts_of(ActionKind kind) {
  return kActionKinds[static_cast<std::size_t>(kind)];
}

static_assert(
    [] {
      for (std::size_t i = 0; i < kActionKinds.size(); ++i)
        if (static_cast<std::size_t>(kActionKinds[i].kind) != i) return false;
      return kActionKinds.back().kind == ActionKind::Update;
    }(),
    "a row per kind, in the order of the enumeration, whose last is Update");

/// Whether an action of this kind computes on a micro-batch, and so reads weights. The others
/// change weights or gradients, or copy activations.
constexpr bool is_pass(ActionKind kind) {
  return facts_of(kind).pass;
}

/// Whether it belongs to one micro-batch.
constexpr bool of_microbatch(ActionKind kind) {
  return facts_of(kind).of_microbatch;
}

/// Whether it goes on beside its worker's other actions.
constexpr bool goes_on_beside(ActionKind kind) {
  return facts_of(kind).track > 0;
}

/// Whether it takes the gradient of a loss from a stage's output to its input.
constexpr bool is_backward(ActionKind kind) {
  return facts_of(kind).output == ActionOutput::Gradient;
}

/// Whether it is a backward or a half of one.
constexpr bool is_part_of_backward(ActionKind kind) {
  const ActionInput input = facts_of(kind).input;
  return input == ActionInput::GradientBehind || input == ActionInput::FirstHalf;
}

/// Whether it makes the gradient of its stage's own weights.
constexpr bool makes_weight_gradient(ActionKind kind) {
  return facts_of(kind).weight_gradient == WeightGradient::OfStage;
}

/// Whether it makes a gradient that the next update applies, of the stage or of its auxiliary head.
constexpr bool adds_gradient(ActionKind kind) {
  return facts_of(kind).weight_gradient != WeightGradient::None;
}

/// The number of slots that it takes in a drawing.
constexpr int slots_of(ActionKind kind) {
  return facts_of(kind).slots;
}

/// "input-only backward"
constexpr const char* kind_name(ActionKind kind) {
  return facts_of(kind).name;
}

}  // namespace pipewright
