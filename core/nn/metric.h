// SPDX-License-Identifier: Apache-2.0
/// Metrics: what an evaluation measures besides the loss. Micro-batches and processes add up sums,
/// from which one number is computed at the end.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/version.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/registry.h"
#include "core/base/stamp.h"
#include "core/config/options.h"
#include "core/nn/task.h"

namespace pipewright {

/// A metric has no state but its options; any thread may call it. Targets equal to kNoTarget are
/// ignored.
class Metric {
 public:
  virtual ~Metric() = default;
  /// Number of sums.
  virtual std::size_t size() const { return 2; }
  /// Returns this batch's contribution to the sums: float64 [size()], on the inputs' device.
  /// Shapes: output [n, classes] with target [n], or [n, T, classes] with [n, T]. In outputs
  /// [n, 1, …] with target [n], and in those of the target's shape, each number is the logit of a
  /// row of two classes. Targets of Task::Regress are real numbers [n, k]; no class is right there.
  virtual at::Tensor sums(const at::Tensor& output, const at::Tensor& target) const = 0;
  /// Computes the metric from the sums over all samples; NaN if it is undefined, as without
  /// samples.
  virtual double value(std::span<const double> sums) const = 0;
  /// Whether it rates outputs of that task.
  virtual bool fits(Task task) const { return task != Task::Regress; }
  /// The most classes of which it rates the choice of one.
  virtual std::int64_t most_classes() const { return std::numeric_limits<std::int64_t>::max(); }
};

/// Makes a metric by name, without options (no metric has any); null if the name is unknown.
std::unique_ptr<Metric> make_metric(const std::string& name);

}  // namespace pipewright

#define PIPEWRIGHT_METRIC(name, Type, summary)  \
  PIPEWRIGHT_STAMP(metric, TORCH_VERSION, name) \
  PIPEWRIGHT_REGISTER(::pipewright::Metric, name, Type, summary)
