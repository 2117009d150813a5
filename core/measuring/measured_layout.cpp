// SPDX-License-Identifier: Apache-2.0
#include "core/measuring/measured_layout.h"

#include "core/measuring/measured_balance.h"
#include "core/measuring/measured_format.h"

namespace pipewright {

void settle_layout(Experiment& experiment, const LayoutRequest& request, Team& team) {
  settle_memory_format(experiment, request, team);  // first, because times depend on it
  settle_balance(experiment, request, team);
}

}  // namespace pipewright
