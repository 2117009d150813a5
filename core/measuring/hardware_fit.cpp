// SPDX-License-Identifier: Apache-2.0
#include "core/measuring/hardware_fit.h"

#include "core/base/error_at.h"
#include "core/base/text.h"
#include "core/measuring/hardware_source.h"
#include "core/measuring/steady_simulation.h"

namespace pipewright {

std::string HardwareFit::text() const {
  return concat(bytes_text(need), " at its peak, activations included; its device has ",
                bytes_text(has), " (hardware '", hardware, "')");
}

void HardwareFit::require() const {
  if (need > has) throw data_error(concat("worker ", worker), "needs ", text());
}

HardwareFit fit_on(const Experiment& experiment, const Hardware& hardware, CostSource& costs) {
  const Hardware laid = laid_out(hardware, experiment.shape(1));
  HardwareFit fit{.layout = costs.of(experiment, laid).layout, .hardware = hardware.name};
  if (!fit.layout.channels_last) fit.layout.channels_last = false;  // of equal bytes
  const SteadySimulation steady = SteadySimulator(experiment, costs).on(laid);
  for (std::size_t w = 0; w < steady.simulation.workers.size(); ++w) {
    const std::int64_t need = steady.simulation.workers[w].peak.total();
    const std::int64_t has = laid.devices[w].memory;
    if (has == 0)
      throw Error(ErrorKind::Experiment,
                  concat("the hardware '", hardware.name,
                         "' has no devices.memory_gib, so nobody can say whether the plan fits"));
    if (w > 0 && has - need >= fit.has - fit.need) continue;
    fit.worker = static_cast<int>(w);
    fit.need = need;
    fit.has = has;
  }
  fit.remark = unlimited_links_remark(laid, steady.simulation);
  return fit;
}

}  // namespace pipewright
