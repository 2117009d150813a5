// SPDX-License-Identifier: Apache-2.0
#include "core/exports/training_events.h"

#include <cmath>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/exports/run_events.h"

namespace pipewright {
namespace {

EventLog log_of(const std::filesystem::path& file, std::int64_t minibatches, std::int64_t epochs) {
  if (minibatches == 0) return EventLog::begin(file);
  return EventLog::go_on(file, [=](const EventPlace& place) {
    return place.step < (is_per_minibatch(place.tag) ? minibatches : epochs);
  });
}

void add(std::vector<TaggedValue>& values, std::string tag, double value) {
  if (!std::isnan(value)) values.push_back({std::move(tag), value});
}

}  // namespace

TrainingEvents::TrainingEvents(const std::filesystem::path& run_folder, std::int64_t minibatches,
                               std::int64_t epochs)
    : log_(log_of(run_folder / kEventFile, minibatches, epochs)) {}

TrainingEvents::~TrainingEvents() {
  try {
    log_.flush();
  } catch (const Error&) {  // the run has failed, for a reason that is told already
  }
}

void TrainingEvents::loss(std::int64_t minibatch, double value) {
  const TaggedValue loss{step_tag("loss"), value};
  log_.add(minibatch, {&loss, 1});
}

void TrainingEvents::steps(const std::vector<std::vector<double>>& numbers, std::int64_t first,
                           const std::vector<std::string>& columns, bool recorded) {
  for (const std::vector<double>& of : numbers) {
    std::vector<TaggedValue> values;
    for (std::size_t i = recorded ? 1 : 0; i < columns.size(); ++i)
      add(values, step_tag(columns[i]), of.at(i));
    if (!values.empty()) log_.add(first, values);
    ++first;
  }
  log_.flush();
}

void TrainingEvents::epoch(const EpochRow& row, const std::vector<std::string>& metrics) {
  std::vector<TaggedValue> values;
  add(values, epoch_tag("train_loss"), row.train_loss);
  add(values, epoch_tag("test_loss"), row.test_loss);
  add(values, epoch_tag("test_accuracy"), row.test_accuracy);
  add(values, epoch_tag("lr"), row.lr);
  add(values, epoch_tag("seconds"), row.seconds);
  add(values, epoch_tag("samples_per_second"), row.samples_per_second);
  for (std::size_t i = 0; i < metrics.size(); ++i)
    add(values, epoch_tag(concat("test_", metrics[i])), row.metrics.at(i));
  log_.add(row.epoch, values);
  log_.flush();
}

void TrainingEvents::evaluation(const EvaluationRow& row, const std::vector<std::string>& metrics) {
  std::vector<TaggedValue> values;
  add(values, evaluation_tag("test_loss"), row.test_loss);
  add(values, evaluation_tag("test_accuracy"), row.test_accuracy);
  for (std::size_t i = 0; i < metrics.size(); ++i)
    add(values, evaluation_tag(concat("test_", metrics[i])), row.metrics.at(i));
  log_.add(row.minibatches - 1, values);
  log_.flush();
}

void TrainingEvents::probe(std::int64_t minibatch, const std::string& probe,
                           const std::string& quantity, std::optional<int> stage, double value) {
  if (std::isnan(value)) return;
  const TaggedValue measured{probe_tag(probe, quantity, stage), value};
  log_.add(minibatch, {&measured, 1});
}

}  // namespace pipewright
