// SPDX-License-Identifier: Apache-2.0
/// Uniform quantization of a tensor into a payload, shared by `uniform` and by codecs that quantize
/// something derived from the tensor.
///
/// Payload: the least value and the step of each group, two float32 (symmetric: the step only),
/// then the packed codes (bits.h) in the order of the values.
#pragma once

#include <ATen/core/Tensor.h>

#include "core/codecs/codec.h"
#include "core/codecs/loops/uniform_loops.h"

namespace pipewright {

/// Which values share a range and so form a group.
enum class Per : std::uint8_t {
  Tensor,
  Channel,  ///< values with the same index in dimension 1
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
  /// Reads the options; `defaults` are the codec's.
  UniformQuantizer(Options& options, const UniformDefaults& defaults);

  std::int64_t bytes(at::IntArrayRef sizes) const;
  /// Encodes x (float32, contiguous) into `payload`, bytes(x.sizes()) bytes. On a CPU it returns
  /// false, and the payload is useless, if a value or a range is not finite; on other devices such
  /// groups decode to non-finite values.
  bool encode(const at::Tensor& x, const CodecCall& call, const at::Tensor& payload) const;
  /// Decodes a payload. Throws Error{Data} if it has not bytes(sizes) bytes.
  at::Tensor decode(const at::Tensor& payload, at::IntArrayRef sizes) const;

  /// Encode and decode with LibTorch's operators, on any device.
  void encode_anywhere(const at::Tensor& x, const CodecCall& call, const at::Tensor& payload) const;
  at::Tensor decode_anywhere(const at::Tensor& payload, at::IntArrayRef sizes) const;

 private:
  /// How groups lie in memory: value (o, g, i) of [outer, groups, inner] belongs to group g. The
  /// last run of `inner` values may be shorter.
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
