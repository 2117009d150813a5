/// Error feedback (Seide et al., 2014; Karimireddy et al., 2019): what a codec lost of a tensor is
/// added to the next one, v = x + e; e ← v − what was sent.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <vector>

#include "core/codecs/codec.h"
#include "core/codecs/sample_memory.h"

namespace pipewright {

enum class Feedback : std::uint8_t {
  None,
  Tensor,  ///< the next tensor of the same sizes: for gradients
  Sample   ///< the same sample in the next epoch: for activations
};

/// Reads `feedback`.
Feedback feedback_of(Options& options);

/// Of a sending end. Only in training: evaluation neither uses errors nor leaves any.
class ErrorFeedback {
 public:
  explicit ErrorFeedback(Feedback kind) : kind_(kind), by_sample_(at::kFloat) {}

  bool active(const at::Tensor& x, const CodecCall& call) const;
  /// x + e, or x where there is none.
  at::Tensor corrected(const at::Tensor& x, const CodecCall& call);
  /// error: v − what was sent, where active.
  void keep(const at::Tensor& error, const CodecCall& call);

  NamedTensors state() const;
  void restore(const NamedTensors& state);

 private:
  Feedback kind_;
  std::map<std::vector<std::int64_t>, at::Tensor> by_sizes_;
  SampleMemory by_sample_;
};

}  // namespace pipewright
