// SPDX-License-Identifier: Apache-2.0
// Schedules with weights from CSV files, an action a line. A schedule that is valid, written in the
// same format, is read as an equal one.
#include "core/schedule/action_list.h"
#include "core/drawing/render.h"
#include "core/schedule/prove.h"
#include "tests/fuzz/target.h"

namespace pipewright::fuzz {
namespace {

constexpr std::int64_t kMostPasses = 1 << 12;

std::string read(std::string_view bytes) {
  const Schedule schedule = read_action_list(bytes, "fuzz.csv").schedule;
  const PipelineShape& shape = schedule.shape;
  // So many passes as a file of this size cannot have: the proof would miss one, sooner or later.
  const std::int64_t passes = std::int64_t{shape.stages} * shape.replicas;
  if (passes > kMostPasses || passes * shape.microbatches > kMostPasses ||
      passes * shape.microbatches * shape.minibatches > kMostPasses)
    throw Error(ErrorKind::Experiment, "is not asked for its schedule");
  const std::vector<ActionPlace> order = prove(schedule).order;
  std::size_t actions = 0;
  for (const std::vector<Action>& worker : schedule.workers) actions += worker.size();
  require(order.size() == actions, "the order does not have every action");
  const std::string csv = render_csv(prove(schedule));
  require(reread([&] { return read_action_list(csv, "written.csv").schedule; }) == schedule,
          "what is written is another schedule: " + csv);
  return csv;
}

std::size_t most_memory(std::string_view bytes) {
  return (16 << 20) + 4096 * bytes.size();
}

}  // namespace

const Target kTarget{.read = read,
                     .refusals = {ErrorKind::Data, ErrorKind::Experiment, ErrorKind::Schedule},
                     .most_memory = most_memory,
                     .rounds = 20'000};

}  // namespace pipewright::fuzz
