// SPDX-License-Identifier: Apache-2.0
/// Per-sample state of an end of an edge: one row of a tensor for each sample.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <span>
#include <vector>

#include "core/codecs/codec.h"

namespace pipewright {

/// Whether the rows of a tensor with these sizes are the samples that `call` names.
bool has_samples(at::IntArrayRef sizes, const CodecCall& call);
/// The sizes as text: "3x4".
std::string sizes_text(at::IntArrayRef sizes);

class SampleMemory {
 public:
  /// `type` is kFloat, or kHalf, which needs half the memory and clamps values to ±65504.
  explicit SampleMemory(at::ScalarType type) : type_(type) {}

  /// Whether a row with these sizes is stored for the sample.
  bool has(std::int64_t sample, at::IntArrayRef row) const;
  /// The rows of the samples: [samples, row…], float32, on `device`; zeros where none is stored.
  at::Tensor rows(std::span<const std::int64_t> samples, at::IntArrayRef row, at::Device device);
  /// Stores rows [samples, row…], float32. A non-finite value leaves the stored one unchanged
  /// (initially 0). If a sample occurs twice, its last row counts.
  void keep(std::span<const std::int64_t> samples, const at::Tensor& rows);
  /// Multiplies all rows.
  void multiply(double factor);

  /// The rows as rows() would return them after keep(): float32, rounded to the memory's precision.
  at::Tensor rounded(const at::Tensor& rows) const;

  NamedTensors state() const;
  /// Throws Error{Data} if the tensors cannot come from state().
  void restore(const NamedTensors& state);

 private:
  /// All rows of one size in one tensor, so that a device gathers them with one operation.
  struct Shelf {
    at::Tensor rows;                              ///< [places, row…]; grows by doubling
    std::map<std::int64_t, std::int64_t> places;  ///< sample → place
  };
  Shelf* shelf(at::IntArrayRef row, at::Device device);
  Shelf& with_places(std::span<const std::int64_t> samples, const at::Tensor& rows);

  at::ScalarType type_;
  std::map<std::vector<std::int64_t>, Shelf> shelves_;
};

}  // namespace pipewright
