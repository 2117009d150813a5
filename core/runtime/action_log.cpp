// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/action_log.h"

#include <algorithm>

#include "core/base/as_size.h"
#include "core/base/text.h"

namespace pipewright {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

}  // namespace

ActionLog::ActionLog(int workers) : workers_(as_size(workers)) {}

void ActionLog::begin(int worker, const Action& action, const PipelineShape& shape) {
  Worker& self = workers_[as_size(worker)];
  const std::int64_t number = self.begun.load(kRelaxed);
  Record& record = self.records[static_cast<std::size_t>(number % kLength)];
  record.minibatch.store(action.minibatch, kRelaxed);
  record.microbatch.store(action.microbatch, kRelaxed);
  record.stage.store(action.stage, kRelaxed);
  record.loss.store(action.loss, kRelaxed);
  record.kind.store(action.kind, kRelaxed);
  record.microbatches.store(shape.microbatches > 1, kRelaxed);
  record.training.store(shape.training, kRelaxed);
  const std::chrono::duration<double> now = std::chrono::steady_clock::now() - start_;
  record.began.store(now.count(), kRelaxed);
  self.begun.store(number + 1, std::memory_order_release);
}

std::string ActionLog::Record::name() const {
  Action action;
  action.kind = kind.load(kRelaxed);
  action.stage = stage.load(kRelaxed);
  action.minibatch = minibatch.load(kRelaxed);
  action.microbatch = microbatch.load(kRelaxed);
  action.loss = loss.load(kRelaxed);
  return action_name(action, microbatches.load(kRelaxed) ? 2 : 1);
}

std::string ActionLog::current(int worker) const {
  const Worker& self = workers_[as_size(worker)];
  const std::int64_t begun = self.begun.load(std::memory_order_acquire);
  if (begun == 0) return {};
  const Record& record = self.record(begun - 1);
  return concat("stage ", record.stage.load(kRelaxed), ", ", record.name());
}

std::string ActionLog::last(int worker) const {
  const Worker& self = workers_[as_size(worker)];
  const std::int64_t begun = self.begun.load(std::memory_order_acquire);
  std::string text;
  for (std::int64_t n = std::max(std::int64_t{0}, begun - kLength); n < begun; ++n) {
    const Record& record = self.record(n);
    text += concat(record.name(), " ", record.began.load(kRelaxed),
                   record.training.load(kRelaxed) ? "" : " evaluation", "\n");
  }
  return text;
}

}  // namespace pipewright
