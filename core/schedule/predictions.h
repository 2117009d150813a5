/// What a schedule will ask to be predicted.
#pragma once

#include "core/schedule/schedule.h"

namespace pipewright {

struct Predictions {
  bool any = false;           ///< by an optimizer's state
  bool by_lookahead = false;  ///< so the last gradient must be kept
  bool by_drift = false;      ///< so the weights' drift must be kept
};
Predictions predictions_of(const Schedule& schedule);

}  // namespace pipewright
