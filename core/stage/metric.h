/// What an evaluation measures besides the loss: sums that micro-batches and processes add up, and
/// one number made of them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/registry.h"
#include "core/config/options.h"

namespace pipewright {

/// Stateless but for its options; any thread. Targets that are kNoTarget count for nothing.
class Metric {
 public:
  virtual ~Metric() = default;
  /// How many sums there are.
  virtual std::size_t size() const { return 2; }
  /// output [n, classes] with target [n], or [n, T, classes] with [n, T] → float64 [size()] on
  /// their device, whose sums over all samples value() takes. In maps [n, 1, h, w] with target [n]
  /// each pixel counts: two classes, of scores 0 and the logit.
  virtual at::Tensor sums(const at::Tensor& output, const at::Tensor& target) const = 0;
  /// NaN where there is none, as of no samples.
  virtual double value(std::span<const double> sums) const = 0;
};

/// A metric without options: all have none. Null if there is no such metric.
std::unique_ptr<Metric> make_metric(const std::string& name);

}  // namespace pipewright

#define PIPEWRIGHT_METRIC(name, Type, summary) \
  PIPEWRIGHT_REGISTER(::pipewright::Metric, name, Type, summary)
