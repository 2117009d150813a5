// SPDX-License-Identifier: Apache-2.0
/// A pace that no order of a task can beat.
#pragma once

#include <string>

#include "core/synthesis/order_task.h"

namespace pipewright {

struct PaceBound {
  double seconds = 0;  ///< per mini-batch
  int worker = 0;      ///< the worker that needs them
  std::string why;  ///< "its work", "its work, and waiting while the pipeline fills and drains", …
};

/// How much longer than the bound that is, as a part of the bound; 0 where the two are equal but
/// for rounding.
double gap_of(double seconds, double bound);

/// The largest bound of all workers. Room that is too small for a micro-batch makes it infinite.
PaceBound pace_bound(const OrderTask& task);

}  // namespace pipewright
