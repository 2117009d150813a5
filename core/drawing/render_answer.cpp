// SPDX-License-Identifier: Apache-2.0
#include "core/drawing/render_answer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/base/printed.h"
#include "core/base/text.h"
#include "core/base/wording.h"

namespace pipewright {
namespace {

std::string rounded_percent(double part) {
  return concat(std::lround(100 * part), " %");
}

/// The main reason why workers do not compute; "" if they always do.
std::string main_loss(const Simulation& simulation, const IdleParts& idle) {
  double sending = 0;
  for (const WorkerReport& worker : simulation.workers) sending += worker.communicating;
  const double all = simulation.makespan * static_cast<double>(simulation.workers.size());
  const std::array<std::pair<double, const char*>, 3> losses{
      {{idle.schedule, "to the schedule itself"},
       {idle.stages, "to uneven stages"},
       {idle.transfers + (all > 0 ? sending / all : 0), "to transfers"}}};
  const auto most =
      std::ranges::max_element(losses, {}, [](const auto& loss) { return loss.first; });
  constexpr double kShown = 0.0005;  // a tenth of a percent
  return most->first < kShown ? "" : concat(", and lose most of the rest ", most->second);
}

}  // namespace

std::string pace_text(double per_second) {
  return printed(per_second < 0.1 ? "%.3g" : per_second < 100 ? "%.2f" : "%.0f", per_second);
}

std::string percent_of(double part, double whole) {
  return printed("%.1f %%", whole > 0 ? 100 * part / whole : 0.);
}

std::size_t neediest_worker(const Hardware& hardware, const Simulation& simulation) {
  const auto need = [&](std::size_t w) {
    const std::int64_t peak = simulation.workers[w].peak.total(), has = hardware.devices[w].memory;
    return std::pair(has > 0 ? std::max<std::int64_t>(0, peak - has) : 0, peak);
  };
  std::size_t worst = 0;
  for (std::size_t w = 1; w < simulation.workers.size(); ++w)
    if (need(w) > need(worst)) worst = w;
  return worst;
}

std::string memory_answer(const Hardware& hardware, const Simulation& simulation) {
  const std::size_t worker = neediest_worker(hardware, simulation);
  const std::int64_t need = simulation.workers[worker].peak.total();
  const std::int64_t has = hardware.devices[worker].memory;
  const auto bytes = [](std::int64_t count) { return bytes_text(count); };
  const std::string text = concat("worker ", worker, " needs most memory, ", bytes(need));
  if (has == 0) return text;
  return concat(text, need > has ? ", and its device has " : " of the ", bytes(has),
                need > has ? ": it does not fit" : " that its device has: it fits");
}

std::string render_answer(const Hardware& hardware, const Simulation& simulation,
                          const IdleParts& idle, std::int64_t samples) {
  double computing = 0;
  for (std::size_t w = 0; w < simulation.workers.size(); ++w)
    computing += simulation.utilisation(w) / static_cast<double>(simulation.workers.size());
  const double period = simulation.seconds_per_minibatch();
  return concat("\nIn short: ", pace_text(period > 0 ? static_cast<double>(samples) / period : 0),
                " samples/s; workers compute ", rounded_percent(computing), " of their time",
                main_loss(simulation, idle), "; ", memory_answer(hardware, simulation), ".\n");
}

}  // namespace pipewright
