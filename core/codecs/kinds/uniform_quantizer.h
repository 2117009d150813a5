/// Uniform quantization of a tensor into a payload: what `uniform` does, and codecs that quantize
/// something else than the tensor.
///
/// Payload: for each group its least value and step, two float32 (symmetric: the step alone), then
/// the codes in the order of the values, packed (bits.h).
#pragma once

#include <ATen/core/Tensor.h>

#include "core/codecs/codec.h"
#include "core/codecs/loops/uniform_loops.h"

namespace pipewright {

/// What shares a range.
enum class Per : std::uint8_t {
  Tensor,
  Channel,  ///< an index of dimension 1
  Token,    ///< a row of the last dimension
  Group     ///< a run of consecutive values; the last one may be shorter
};

struct UniformDefaults {
  int bits = 8;
  const char* per = "tensor";
  bool symmetric = false;
};

class UniformQuantizer {
 public:
  /// Reads its options.
  UniformQuantizer(Options& options, const UniformDefaults& defaults);

  std::int64_t bytes(at::IntArrayRef sizes) const;
  /// x: float32, contiguous. False, with nothing of use written, where x is on a CPU and has values
  /// or a range that are not finite; elsewhere such groups decode to what is not finite.
  bool encode(const at::Tensor& x, const CodecCall& call, const at::Tensor& payload) const;
  /// payload: bytes(sizes) bytes.
  at::Tensor decode(const at::Tensor& payload, at::IntArrayRef sizes) const;

  /// The same with LibTorch's operations, on any device.
  void encode_anywhere(const at::Tensor& x, const CodecCall& call, const at::Tensor& payload) const;
  at::Tensor decode_anywhere(const at::Tensor& payload, at::IntArrayRef sizes) const;

 private:
  /// Value (o, g, i) of [outer, groups, inner] is one of group g; the last run may be cut off.
  struct Runs {
    std::int64_t outer = 1, groups = 0, inner = 1, values = 0;
  };
  Runs runs(at::IntArrayRef sizes) const;
  template <class Take>
  static void each_run(const Runs& runs, const Take& take);
  std::int64_t table(const Runs& runs) const;  ///< bytes before the codes
  std::optional<UniformLevels> levels(const ValueRange& range) const;
  UniformLevels read_levels(const float* table, std::int64_t group) const;
  at::Tensor filled_up(const at::Tensor& x, const Runs& runs) const;

  int bits_;
  Per per_;
  std::int64_t group_;
  bool symmetric_;
  bool stochastic_;
  UniformGrid grid_;
};

}  // namespace pipewright
