/// What an end of an edge remembers of each sample: a row of a tensor.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <span>
#include <vector>

#include "core/codecs/codec.h"

namespace pipewright {

/// Whether the rows of x belong to samples that the call names.
bool has_samples(at::IntArrayRef sizes, const CodecCall& call);
/// "3x4"
std::string sizes_text(at::IntArrayRef sizes);

class SampleMemory {
 public:
  /// type: kFloat; kHalf keeps half as many bytes, and what is too large as ±65504.
  explicit SampleMemory(at::ScalarType type) : type_(type) {}

  /// Whether a row of these sizes is remembered.
  bool has(std::int64_t sample, at::IntArrayRef row) const;
  /// [samples, row…], float32, on that device; zeros for samples that are not remembered.
  at::Tensor rows(std::span<const std::int64_t> samples, at::IntArrayRef row, at::Device device);
  /// rows: [samples, row…], float32. Where a value is not finite the one before stays, at first 0;
  /// where a sample is named twice, the last row counts.
  void keep(std::span<const std::int64_t> samples, const at::Tensor& rows);

  /// Rows as they come back once they are kept: float32 with the memory's precision.
  at::Tensor rounded(const at::Tensor& rows) const;

  NamedTensors state() const;
  /// Throws Error{Data} where the tensors are none that state() gives.
  void restore(const NamedTensors& state);

 private:
  /// Of one size of rows, in one tensor, so that a device gathers them at once.
  struct Shelf {
    at::Tensor rows;  ///< [places, row…]; places are added by doubling
    std::map<std::int64_t, std::int64_t> places;  ///< of samples
  };
  Shelf* shelf(at::IntArrayRef row, at::Device device);
  Shelf& with_places(std::span<const std::int64_t> samples, const at::Tensor& rows);

  at::ScalarType type_;
  std::map<std::vector<std::int64_t>, Shelf> shelves_;
};

}  // namespace pipewright
