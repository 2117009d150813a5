/// The kinds of action, one row of facts each. Everything that asks what a kind is or does reads it
/// here; what is left to write for a new kind is where its input is made (dependencies.cpp), how
/// long it takes (core/cost/cost.cpp), its colours (core/drawing/kind_colors.cpp) and what a stage
/// does (core/runtime/executor.cpp).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pipewright {

/// Head: an auxiliary loss site's forward, loss and backward; the head's own gradient is made here
/// and nowhere else. Recompute runs a forward again, for its activations (recompute.h).
/// BackwardInput alone relays a loss to the stage before without learning from it; followed by the
/// BackwardWeight of the same pass it is the first half of a split backward. Reduce sums a stage's
/// gradient over its replicas. Update is the optimizer's step.
enum class ActionKind : std::uint8_t {
  Forward,
  Head,
  Recompute,
  Backward,
  BackwardInput,
  BackwardWeight,
  Reduce,
  Update
};

/// Which pass makes what an action needs before it may start (PassIndex::input_of).
enum class ActionInput : std::uint8_t {
  None,
  ForwardBefore,   ///< the forward of the stage before; the first stage reads samples
  OwnForward,      ///< the forward of the same stage
  GradientBehind,  ///< the backward of the stage behind; at the loss itself, head or forward
  FirstHalf        ///< the input-only backward of the same pass
};

/// What an action hands to the stage next to it.
enum class ActionOutput : std::uint8_t { None, Activation, Gradient };

/// Whose weight gradient an action adds to.
enum class WeightGradient : std::uint8_t { None, OfHead, OfStage };

struct ActionKindFacts {
  ActionKind kind;
  const char* name;         ///< "input-only backward"
  std::string_view letter;  ///< between stage and mini-batch in "2b3"
  std::string_view legend;  ///< below a grid in text: its sign there and what it means
  bool pass;                ///< computes on one micro-batch with its stage's weights
  bool of_loss;             ///< belongs to one loss site (Action::loss)
  ActionInput input;
  ActionOutput output;
  WeightGradient weight_gradient;
  int slots;    ///< its width in drawings: a backward takes twice a forward; 0: a mark
  int urgency;  ///< of the ready actions of a worker's stages the smallest runs first: what frees
                ///< memory and lets others go on
};

/// In the order of the enumeration.
inline constexpr std::array<ActionKindFacts, 8> kActionKinds = {{
    {.kind = ActionKind::Forward,
     .name = "forward",
     .letter = "F",
     .legend = "F forward",
     .pass = true,
     .of_loss = false,
     .input = ActionInput::ForwardBefore,
     .output = ActionOutput::Activation,
     .weight_gradient = WeightGradient::None,
     .slots = 1,
     .urgency = 3},
    {.kind = ActionKind::Head,
     .name = "head",
     .letter = "H",
     .legend = "H head",
     .pass = true,
     .of_loss = true,
     .input = ActionInput::OwnForward,
     .output = ActionOutput::None,
     .weight_gradient = WeightGradient::OfHead,
     .slots = 1,
     .urgency = 2},
    {.kind = ActionKind::Recompute,
     .name = "recompute",
     .letter = "r",
     .legend = "r recompute",
     .pass = true,
     .of_loss = false,
     .input = ActionInput::OwnForward,
     .output = ActionOutput::None,
     .weight_gradient = WeightGradient::None,
     .slots = 1,
     .urgency = 2},
    {.kind = ActionKind::Backward,
     .name = "backward",
     .letter = "B",
     .legend = "B backward",
     .pass = true,
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
     .of_loss = true,
     .input = ActionInput::GradientBehind,
     .output = ActionOutput::Gradient,
     .weight_gradient = WeightGradient::None,
     .slots = 1,
     .urgency = 1},
    {.kind = ActionKind::BackwardWeight,
     .name = "weight-only backward",
     .letter = "W",
     .legend = "W weight gradient",
     .pass = true,
     .of_loss = true,
     .input = ActionInput::FirstHalf,
     .output = ActionOutput::None,
     .weight_gradient = WeightGradient::OfStage,
     .slots = 1,
     .urgency = 4},  // nobody else waits for it
    {.kind = ActionKind::Reduce,
     .name = "reduce",
     .letter = "R",
     .legend = "+ reduce",
     .pass = false,
     .of_loss = false,
     .input = ActionInput::None,
     .output = ActionOutput::None,
     .weight_gradient = WeightGradient::None,
     .slots = 0,
     .urgency = 0},
    {.kind = ActionKind::Update,
     .name = "update",
     .letter = "U",
     .legend = "| update",
     .pass = false,
     .of_loss = false,
     .input = ActionInput::None,
     .output = ActionOutput::None,
     .weight_gradient = WeightGradient::None,
     .slots = 0,
     .urgency = 0},
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

/// Whether it computes on a micro-batch, and so reads weights. The others change them.
constexpr bool is_pass(ActionKind kind) {
  return facts_of(kind).pass;
}

/// Whether it takes a loss's gradient from a stage's output to its input.
constexpr bool is_backward(ActionKind kind) {
  return facts_of(kind).output == ActionOutput::Gradient;
}

/// A backward or a half of one.
constexpr bool is_part_of_backward(ActionKind kind) {
  const ActionInput input = facts_of(kind).input;
  return input == ActionInput::GradientBehind || input == ActionInput::FirstHalf;
}

/// Whether it makes the gradient of its stage's own weights.
constexpr bool makes_weight_gradient(ActionKind kind) {
  return facts_of(kind).weight_gradient == WeightGradient::OfStage;
}

/// Whether the next update applies something that it makes, be it of the stage or of its head.
constexpr bool adds_gradient(ActionKind kind) {
  return facts_of(kind).weight_gradient != WeightGradient::None;
}

/// How many slots of a drawing it takes.
constexpr int slots_of(ActionKind kind) {
  return facts_of(kind).slots;
}

/// "input-only backward"
constexpr const char* kind_name(ActionKind kind) {
  return facts_of(kind).name;
}

}  // namespace pipewright
