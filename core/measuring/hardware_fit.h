// SPDX-License-Identifier: Apache-2.0
/// Whether a training fits into the devices of a machine that is described and need not be this
/// one.
#pragma once

#include <cstdint>
#include <string>

#include "core/experiment/experiment.h"
#include "core/measuring/cost_source.h"
#include "core/simulation/hardware.h"

namespace pipewright {

/// The worker whose device has least memory left at its peak, activations included.
struct HardwareFit {
  Layout layout;  ///< the experiment's, cut as for that hardware
  std::string hardware;
  int worker = 0;
  std::int64_t need = 0, has = 0;  ///< bytes
  std::string remark;              ///< unlimited_links_remark()

  /// "28.1 GiB at its peak, activations included; its device has 32.0 GiB (hardware 'DGX-1')".
  std::string text() const;
  /// Throws Error{Data} if it does not fit.
  void require() const;
};

/// Simulates the experiment on the hardware. Throws Error{Experiment} if that does not say how much
/// memory its devices have, and what SteadySimulator throws.
HardwareFit fit_on(const Experiment& experiment, const Hardware& hardware, CostSource& costs);

}  // namespace pipewright
