// SPDX-License-Identifier: Apache-2.0
/// The colours of each kind of action, in terminals and on pages.
#pragma once

#include "core/schedule/action_kinds.h"

namespace pipewright {

/// The colours of an action and of the text on it. Every kind has a family of shades; successive
/// mini-batches take successive shades, so that one can be followed along the pipe.
struct Shade {
  const char* fill;
  const char* ink;
};
Shade shade_of(ActionKind kind, int minibatch);

/// The ANSI colour of a kind of action; kQuietTerminalColor is that of explanations.
int terminal_color_of(ActionKind kind);
inline constexpr int kQuietTerminalColor = 90;  // grey

}  // namespace pipewright
