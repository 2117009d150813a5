// SPDX-License-Identifier: Apache-2.0
#include "core/drawing/render_simulation.h"

#include <algorithm>
#include <set>

#include "core/base/as_size.h"
#include "core/base/printable.h"
#include "core/base/text.h"
#include "core/base/text_table.h"
#include "core/base/wording.h"
#include "core/config/json.h"
#include "core/drawing/render_answer.h"
#include "core/drawing/render_labels.h"
#include "core/schedule/dependencies.h"

namespace pipewright {
namespace {

constexpr std::size_t kMostRows = 32;

using Row = std::vector<std::string>;

std::string bytes(std::int64_t count) {
  return bytes_text(count);
}

/// The place of a worker or of a link within its replica. Rows of one place that have the same
/// cells are those of equal replicas.
class Places {
 public:
  explicit Places(const PipelineShape& shape)
      : workers_(shape.replica_placement.empty() ? shape.workers_per_replica() : shape.workers()) {}

  std::string of(int worker) const { return concat(worker % workers_); }
  std::string of(const LinkReport& link) const {
    const bool within = link.from / workers_ == link.to / workers_;
    return concat(of(link.from), within ? " → " : " ⇒ ", of(link.to));
  }

 private:
  int workers_;
};

/// A table of the items, at most kMostRows of them. `place`: Places::of() them; of rows that differ
/// in their first cell alone the first of each place is shown.
template <class Item, class Place, class Print>
std::string table(Row heads, const std::vector<Item>& items, const Place& place,
                  const Print& print) {
  TextTable lines(std::move(heads), {0});
  std::set<std::pair<std::string, Row>> known;
  std::size_t shown = 0, alike = 0, more = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    Row row = print(i, items[i]);
    if (!known.emplace(place(i), Row(row.begin() + 1, row.end())).second)
      ++alike;
    else if (shown == kMostRows)
      ++more;
    else {
      lines.add(std::move(row));
      ++shown;
    }
  }
  std::string text = lines.text();
  if (alike > 0) text += concat(" … and ", alike, " like these, of further replicas\n");
  if (more > 0) text += concat(" … and ", more, " more\n");
  return text;
}

bool counts_memory(const Simulation& simulation) {
  return std::ranges::any_of(simulation.workers,
                             [](const WorkerReport& worker) { return worker.peak.total() > 0; });
}

std::string worker_table(const Schedule& schedule, const Simulation& simulation) {
  const RenderLabels labels(schedule);
  const bool memory = counts_memory(simulation);
  Row heads{"worker", "computes", "sends", "idle"};
  if (memory)
    heads.insert(heads.end(), {"peak memory", "weights", "gradients", "optimizer", "activations",
                               "boundaries", "passing"});
  const Places places(schedule.shape);
  const auto place = [&](std::size_t w) { return places.of(static_cast<int>(w)); };
  return table(heads, simulation.workers, place, [&](std::size_t w, const WorkerReport& worker) {
    const std::string stages = labels.plain() ? "" : concat(": ", labels.stages(w));
    Row row{concat(w, stages), percent_of(worker.computing, simulation.makespan),
            percent_of(worker.communicating, simulation.makespan),
            percent_of(worker.idle, simulation.makespan)};
    if (memory)
      for (const std::int64_t part :
           {worker.peak.total(), worker.peak.weights, worker.peak.gradients, worker.peak.optimizer,
            worker.peak.activations, worker.peak.boundaries, worker.peak.passing})
        row.push_back(bytes(part));
    return row;
  });
}

Row traffic_row(const std::string& name, const Traffic& traffic, double makespan) {
  return {name, std::to_string(traffic.messages), bytes(traffic.bytes),
          percent_of(traffic.busy, makespan)};
}

/// The copies to the memory of the host and back; "" if there are none.
std::string offload_table(const Schedule& schedule, const Simulation& simulation) {
  const auto offloads = [](const WorkerReport& worker) {
    return worker.host.offloaded.messages > 0;
  };
  if (std::ranges::none_of(simulation.workers, offloads)) return {};
  const Places places(schedule.shape);
  return "\n" +
         table(
             {"offload", "copies each way", "traffic", "busy", "most on the host", "waits"},
             simulation.workers, [&](std::size_t w) { return places.of(static_cast<int>(w)); },
             [&](std::size_t w, const WorkerReport& worker) {
               const HostCopies& host = worker.host;
               Row row = traffic_row(concat(w, " ⇄ host"), host.offloaded, simulation.makespan);
               row.push_back(bytes(host.most_bytes));
               row.push_back(percent_of(host.waiting, simulation.makespan));
               return row;
             });
}

/// Says which bus has more to carry than the simulated time allows: all-reduces do not wait for
/// other messages.
std::string overload(const Hardware& hardware, const Simulation& simulation) {
  constexpr double kRounding = 1e-9;
  const auto busiest = std::ranges::max_element(simulation.buses, {}, &Traffic::busy);
  if (busiest == simulation.buses.end() || busiest->busy <= simulation.makespan * (1 + kRounding))
    return "";
  const auto bus = static_cast<std::size_t>(busiest - simulation.buses.begin());
  return concat("\nnote: bus '", hardware.buses[bus].name, "' would be busy for ",
                time_text(busiest->busy),
                ", longer than the makespan, because all-reduces are not "
                "made to wait for other messages; so the makespan is too short\n");
}

/// The lines about devices whose memory is too small, with what they would need.
std::string overflows(const Hardware& hardware, const Simulation& simulation) {
  std::string text;
  int more = 0;
  for (std::size_t w = 0; w < simulation.workers.size(); ++w) {
    const std::int64_t need = simulation.workers[w].peak.total();
    const std::int64_t has = hardware.devices[w].memory;
    if (has == 0 || need <= has) continue;
    if (!text.empty()) {
      ++more;
      continue;
    }
    const MemoryUse& peak = simulation.workers[w].peak;
    const bool activations = peak.activations + peak.boundaries > peak.weights + peak.optimizer;
    text = concat(
        "\nnote: worker ", w, " needs ", bytes(need), ", its device has ", bytes(has),
        activations
            ? "; most of it is activations: try pipeline.recompute or pipeline.offload, or more "
              "micro-batches "
              "with a scheme that, unlike gpipe, does not keep the activations of all of them"
            : "; most of it is weights: try more stages, another balance, or a scheme "
              "that keeps fewer versions",
        "\n");
  }
  if (more > 0)
    text += concat("note: ", more,
                   more == 1 ? " more worker needs more than its device has\n"
                             : " more workers need more than their devices have\n");
  return text;
}

double mean_pass_seconds(const Schedule& schedule, const Simulation& simulation) {
  double seconds = 0, passes = 0;
  for (std::size_t w = 0; w < schedule.workers.size(); ++w)
    for (std::size_t i = 0; i < schedule.workers[w].size(); ++i) {
      if (!is_pass(schedule.workers[w][i].kind)) continue;
      const bool counted = i > 0 && is_fused_pair(schedule.workers[w], i - 1);
      const Span& span = simulation.spans[w][i];
      if (!counted) seconds += span.end - span.begin;  // else with the forward beside it
      ++passes;
    }
  return passes > 0 ? seconds / passes : 0;
}

/// A note if the times mean little: a device starts operators one by one, which is not counted
/// unless the hardware says what that takes, so the model errs where passes are shorter.
std::string launches(const Schedule& schedule, const Hardware& hardware,
                     const Simulation& simulation) {
  constexpr double kShort = 50e-6;
  if (!hardware.rates.known() || hardware.rates.launch > 0) return {};
  if (mean_pass_seconds(schedule, simulation) >= kShort) return {};
  return "\nnote: passes take less than 50 µs on average; launching their operations on such a "
         "device takes longer, which is only modelled where the hardware says devices.launch_us, "
         "so "
         "expect a slower run than this\n";
}

Value traffic_value(const Traffic& traffic) {
  return mapping_of({{"messages", Value::of(traffic.messages)},
                     {"bytes", Value::of(traffic.bytes)},
                     {"busy", Value::of(traffic.busy)}});
}

Value use_value(const MemoryUse& use) {
  return mapping_of({{"total", Value::of(use.total())},
                     {"weights", Value::of(use.weights)},
                     {"gradients", Value::of(use.gradients)},
                     {"optimizer", Value::of(use.optimizer)},
                     {"activations", Value::of(use.activations)},
                     {"boundaries", Value::of(use.boundaries)},
                     {"passing", Value::of(use.passing)}});
}

Value copies_value(const HostCopies& host) {
  return mapping_of({{"copies", Value::of(host.offloaded.messages)},
                     {"bytes", Value::of(host.offloaded.bytes)},
                     {"busy", Value::of(host.offloaded.busy)},
                     {"waiting", Value::of(host.waiting)},
                     {"most_bytes", Value::of(host.most_bytes)}});
}

Value worker_value(const Simulation& simulation, std::size_t w) {
  const WorkerReport& worker = simulation.workers[w];
  Value value = mapping_of({{"worker", Value::of(static_cast<std::int64_t>(w))},
                            {"computing", Value::of(worker.computing)},
                            {"communicating", Value::of(worker.communicating)},
                            {"idle", Value::of(worker.idle)},
                            {"utilisation", Value::of(simulation.utilisation(w))},
                            {"peak", use_value(worker.peak)},
                            {"peak_at", Value::of(worker.peak_at)}});
  if (worker.host.offloaded.messages > 0) value.at_or_add("offload") = copies_value(worker.host);
  if (worker.memory.empty()) return value;
  Value& steps = value.at_or_add("memory") = Value::sequence();
  for (const MemoryStep& step : worker.memory)
    steps.items.push_back(Value::sequence({Value::of(step.time), Value::of(step.use.total())}));
  return value;
}

}  // namespace

std::string render_simulation(const Schedule& schedule, const Hardware& hardware,
                              const Simulation& simulation, const IdleParts& idle,
                              std::int64_t samples) {
  const PipelineShape& shape = schedule.shape;
  const double period = simulation.seconds_per_minibatch();
  std::string text =
      concat(counted(shape.stages, "stage"), " on ", schedule.workers.size(), " of ",
             counted(hardware.devices.size(), "device"), " (", hardware.name, "), ",
             counted(shape.minibatches, "mini-batch"), " of ", microbatches_text(shape), "\n");
  text += concat("makespan    ", time_text(simulation.makespan), "; in the steady part ",
                 time_text(period), " a mini-batch\n");
  text += concat("throughput  ", pace_text(period > 0 ? static_cast<double>(samples) / period : 0),
                 " samples/s in the steady part\n");
  text += concat("bubble      ", percent_of(simulation.bubble, 1),
                 " of all workers' time: ", percent_of(idle.schedule, 1),
                 " by the schedule itself, ", percent_of(idle.stages, 1), " by uneven stages, ",
                 percent_of(idle.transfers, 1), " by transfers\n\n");
  text += worker_table(schedule, simulation);
  const Places places(shape);
  if (!simulation.links.empty())
    text += "\n" + table(
                       {"link", "messages", "traffic", "busy"}, simulation.links,
                       [&](std::size_t i) { return places.of(simulation.links[i]); },
                       [&](std::size_t, const LinkReport& link) {
                         return traffic_row(concat(link.from, " → ", link.to), link.traffic,
                                            simulation.makespan);
                       });
  text += offload_table(schedule, simulation);
  if (std::ranges::any_of(simulation.buses, [](const Traffic& bus) { return bus.messages > 0; }))
    text += "\n" + table(
                       {"bus", "messages", "traffic", "busy"}, simulation.buses,
                       [&](std::size_t b) { return hardware.buses[b].name; },
                       [&](std::size_t b, const Traffic& bus) {
                         return traffic_row(hardware.buses[b].name, bus, simulation.makespan);
                       });
  return text + overload(hardware, simulation) + overflows(hardware, simulation) +
         launches(schedule, hardware, simulation);
}

Value simulation_value(const Schedule& schedule, const Hardware& hardware,
                       const Simulation& simulation, const IdleParts& idle, std::int64_t samples) {
  Value value = Value::mapping();
  const double period = simulation.seconds_per_minibatch();
  value.at_or_add("hardware") = Value::of(hardware.name);
  value.at_or_add("stages") = Value::of(schedule.shape.stages);
  value.at_or_add("minibatches") = Value::of(schedule.shape.minibatches);
  value.at_or_add("microbatches") = Value::of(schedule.shape.whole_microbatches());
  if (schedule.shape.slices > 1) value.at_or_add("slices") = Value::of(schedule.shape.slices);
  value.at_or_add("makespan") = Value::of(simulation.makespan);
  value.at_or_add("bubble") = Value::of(simulation.bubble);
  value.at_or_add("bubble_parts") = mapping_of({{"schedule", Value::of(idle.schedule)},
                                                {"stages", Value::of(idle.stages)},
                                                {"transfers", Value::of(idle.transfers)}});
  value.at_or_add("seconds_per_minibatch") = Value::of(period);
  value.at_or_add("samples_per_second") =
      Value::of(period > 0 ? static_cast<double>(samples) / period : 0.0);
  Value& workers = value.at_or_add("workers") = Value::sequence();
  for (std::size_t w = 0; w < simulation.workers.size(); ++w)
    workers.items.push_back(worker_value(simulation, w));
  Value& links = value.at_or_add("links") = Value::sequence();
  for (const LinkReport& link : simulation.links) {
    Value one = traffic_value(link.traffic);
    one.at_or_add("from") = Value::of(link.from);
    one.at_or_add("to") = Value::of(link.to);
    links.items.push_back(std::move(one));
  }
  Value& buses = value.at_or_add("buses") = Value::sequence();
  for (std::size_t b = 0; b < simulation.buses.size(); ++b) {
    Value one = traffic_value(simulation.buses[b]);
    one.at_or_add("name") = Value::of(hardware.buses[b].name);
    buses.items.push_back(std::move(one));
  }
  return value;
}

}  // namespace pipewright
