// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/losses_and_metrics.h"

#include <cmath>
#include <limits>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

/// A mini-batch number above all others.
constexpr int kAll = std::numeric_limits<int>::max();

std::size_t sums_of(const std::vector<const Metric*>& metrics) {
  std::size_t sum = 0;
  for (const Metric* metric : metrics) sum += metric->size();
  return sum;
}

}  // namespace

LossesAndMetrics::LossesAndMetrics(const Program& program, const RunRequest& request,
                                   const PassSamples& passes)
    : shape_(program.schedule.shape),
      request_(request),
      passes_(passes),
      sites_(1 + static_cast<int>(program.schedule.auxiliary.size())),
      site_of_(as_size(shape_.stages), -1),
      sums_(as_size(program.minibatches()) * as_size(sites_ * shape_.replicas), 0),
      readings_(program.workers.size()),
      metric_sums_(sums_of(request.metrics), 0) {
  if (request.on_loss && RunRequest::tells_losses(request.execution, shape_.replicas))
    parts_.resize(as_size(program.minibatches()), 0);
  site_of_.back() = 0;
  int site = 1;
  for (const int stage : program.schedule.auxiliary) site_of_[as_size(stage)] = site++;
}

void LossesAndMetrics::record(const Instruction& instruction, int worker, std::int64_t updates,
                              const at::Tensor& loss, std::optional<LateValue> sums) {
  const Action& action = instruction.action;
  readings_[as_size(worker)].push_back({action, instruction.weights.key, passes_.share(action),
                                        updates, LateValue(loss), std::move(sums)});
  read(worker, loss.is_cpu() ? kAll : action.minibatch);
}

void LossesAndMetrics::finish(int worker) {
  read(worker, kAll);
}

/// Reads the worker's values in flight of all mini-batches before `minibatch`.
void LossesAndMetrics::read(int worker, int minibatch) {
  std::deque<Reading>& readings = readings_[as_size(worker)];
  for (; !readings.empty() && readings.front().action.minibatch < minibatch; readings.pop_front())
    account(readings.front(), worker);
}

void LossesAndMetrics::account(const Reading& reading, int worker) {
  const Action& action = reading.action;
  const auto loss = value_of(reading.loss).item<double>();
  if (reading.sums) {
    const at::Tensor& added = value_of(*reading.sums);
    for (std::size_t i = 0; i < metric_sums_.size(); ++i)
      metric_sums_[i] += added.const_data_ptr<double>()[i];
  }
  if (!std::isfinite(loss)) refuse(reading, loss, worker);
  add(action, loss, reading.share);
  const bool complete = action.stage == shape_.stages - 1 &&
                        action.microbatch == shape_.microbatches - 1 && action.replica == 0 &&
                        request_.execution != Execution::Mpi;
  if (complete && request_.on_minibatch) request_.on_minibatch(action.minibatch);
  if (!parts_.empty() && action.stage == shape_.stages - 1) tell_loss(action);
}

/// Calls on_loss once all micro-batches of the action's mini-batch have been read, in whatever
/// order the schedule has them.
void LossesAndMetrics::tell_loss(const Action& action) {
  if (++parts_[as_size(action.minibatch)] < shape_.microbatches) return;
  request_.on_loss(action.minibatch, sums_[as_size(action.minibatch) * as_size(sites_)]);
}

void LossesAndMetrics::add(const Action& action, double loss, const Share& share) {
  const int site = site_of_[as_size(action.stage)];
  const double weight = static_cast<double>(share.samples) / static_cast<double>(share.all_samples);
  const std::size_t each = as_size(sites_ * shape_.replicas),
                    within = as_size(site * shape_.replicas + action.replica);
  sums_[as_size(action.minibatch) * each + within] += loss * weight;
}

void LossesAndMetrics::refuse(const Reading& reading, double loss, int worker) const {
  const Action& action = reading.action;
  const WeightKey& key = reading.key;
  const Pass pass = passes_.pass(action, reading.share);
  throw Error(ErrorKind::NotFinite,
              concat(pass.training ? "the loss of mini-batch " : "the test loss of mini-batch ",
                     pass.minibatch, pass.training ? " of epoch " : " after epoch ", pass.epoch,
                     " at stage ", action.stage, " is ", loss, " with version ", reading.updates,
                     " of the weights",
                     key.ahead == 0 ? std::string()
                                    : concat(", predicted ", counted(key.ahead, "step"), " ahead"),
                     reading.updates > 0 ? "; try a smaller learning rate"
                                         : "; no update has been made, so that no learning rate is "
                                           "to blame: look at the samples and the initial weights"),
              passes_.where(action, worker));
}

/// Reads a value. A process of a team polls for it, so that a failure elsewhere ends the wait.
const at::Tensor& LossesAndMetrics::value_of(const LateValue& late) const {
  if (request_.execution == Execution::Mpi && !late.is_there())
    request_.team->wait_for_device([&] { return late.is_there(); });
  return late.read();
}

std::vector<std::vector<double>> LossesAndMetrics::means() const {
  const std::size_t each = as_size(sites_ * shape_.replicas);
  std::vector<std::vector<double>> all(sums_.size() / each,
                                       std::vector<double>(as_size(sites_), 0));
  std::size_t next = 0;
  for (auto& of_minibatch : all)
    for (double& of_site : of_minibatch)
      for (int r = 0; r < shape_.replicas; ++r) of_site += sums_[next++];
  return all;
}

std::vector<double> LossesAndMetrics::metrics() const {
  std::vector<double> values;
  std::span<const double> rest = metric_sums_;
  for (const Metric* metric : request_.metrics) {
    values.push_back(metric->value(rest.first(metric->size())));
    rest = rest.subspan(metric->size());
  }
  return values;
}

}  // namespace pipewright
