// SPDX-License-Identifier: Apache-2.0
/// The kinds of predicted weights that a schedule asks for.
#pragma once

#include "core/schedule/schedule.h"

namespace pipewright {

struct Predictions {
  bool any = false;           ///< some weights are predicted from the optimizer's state
  bool by_lookahead = false;  ///< some by Kind::Lookahead: the last gradient must be kept
  bool by_drift = false;      ///< some by Kind::Drift: the weights' drift must be kept
};
Predictions predictions_of(const Schedule& schedule);

}  // namespace pipewright
