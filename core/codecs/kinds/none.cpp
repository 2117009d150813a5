// SPDX-License-Identifier: Apache-2.0
/// The codec that does not compress, for edges and directions that are left alone. Reading an
/// experiment replaces it by no codec, so there it costs nothing.
#include "core/base/error.h"
#include "core/codecs/codec.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

class NoCoder final : public Coder {
 public:
  void encode(const at::Tensor& x, const CodecCall&, FrameBuilder& out) override {
    out.payload(static_cast<std::int64_t>(x.nbytes())).copy_(x.reshape({-1}).view(at::kByte));
  }
  at::Tensor decode(const at::Tensor& payload, at::IntArrayRef sizes, const CodecCall&) override {
    if (payload.numel() != 4 * c10::multiply_integers(sizes))
      throw Error(ErrorKind::Data, "values and dimensions of a message do not fit");
    return payload.clone().view(at::kFloat).view(sizes);
  }
};

class None final : public Codec {
 public:
  explicit None(Options&) {}
  std::unique_ptr<Coder> coder() const override { return std::make_unique<NoCoder>(); }
  std::optional<std::int64_t> payload_bytes(at::IntArrayRef sizes) const override {
    return 4 * c10::multiply_integers(sizes);
  }
};

PIPEWRIGHT_CODEC(none, None, "No compression: tensors are sent as they are.");

}  // namespace
}  // namespace pipewright
