// SPDX-License-Identifier: Apache-2.0
// Schedules from CSV files, through the scheme that experiments name. A schedule that is valid,
// written in the same format, is read as an equal one.
#include <algorithm>
#include <cctype>

#include "core/config/options.h"
#include "core/drawing/render.h"
#include "core/schedule/prove.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/target.h"

namespace pipewright::fuzz {
namespace {

/// What an experiment must say with the file: how many stages it names, and micro-batches. Read
/// from the digits in front of F, B, I and W and behind them, whatever else is in the file.
struct Asked {
  int stages = 0, microbatches = 0;
};

Asked asked_by(std::string_view text) {
  constexpr int kMost = 1 << 20;
  constexpr std::string_view kOperations = "FBIW";
  const auto digit = [&](std::size_t at) {
    return at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0;
  };
  Asked asked;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!digit(at)) continue;
    int stage = 0, microbatch = 0;
    for (; digit(at); ++at) stage = std::min(kMost, 10 * stage + (text[at] - '0'));
    if (at == text.size()) break;
    if (kOperations.find(text[at]) == std::string_view::npos || !digit(at + 1)) continue;
    for (++at; digit(at); ++at) microbatch = std::min(kMost, 10 * microbatch + (text[at] - '0'));
    asked = {std::max(asked.stages, stage + 1), std::max(asked.microbatches, microbatch + 1)};
    --at;
  }
  return asked;
}

Schedule schedule_in(const std::filesystem::path& path, const Asked& asked) {
  Value given = Value::mapping();
  given.at_or_add("file") = Value::of(path.string());
  Problems problems;
  Options options(&given, "scheme", problems);
  const auto scheme = Registry<Scheme>::instance().find("csv_schedule")->make(options);
  options.finish();
  problems.throw_if_any();
  PipelineShape shape{.stages = std::max(1, asked.stages),
                      .microbatches = std::max(1, asked.microbatches)};
  shape.placement = scheme->placement(shape.stages);
  // So many passes as a file of this size cannot have: it is refused for that, sooner or later.
  if (shape.stages * std::int64_t{shape.microbatches} > 1 << 12)
    throw Error(ErrorKind::Experiment, "is not asked for its schedule");
  return scheme->schedule(shape);
}

std::string read(std::string_view bytes) {
  static MemoryFile file, written;
  const Asked asked = asked_by(bytes);
  const Schedule schedule = schedule_in(file.holding(bytes), asked);
  const std::vector<ActionPlace> order = prove(schedule).order;
  std::size_t actions = 0;
  for (const std::vector<Action>& worker : schedule.workers) actions += worker.size();
  require(order.size() == actions, "the order does not have every action");
  const std::string csv = render_pytorch_csv(prove(schedule));
  require(reread([&] { return schedule_in(written.holding(csv), asked); }) == schedule,
          "what is written is another schedule: " + csv);
  return csv;
}

std::size_t most_memory(std::string_view bytes) {
  return (4 << 20) + 4096 * bytes.size();
}

}  // namespace

const Target kTarget{.read = read,
                     .refusals = {ErrorKind::Data, ErrorKind::Experiment, ErrorKind::Schedule},
                     .most_memory = most_memory,
                     .rounds = 5000};

}  // namespace pipewright::fuzz
