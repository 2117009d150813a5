/// A codec as a tensor meets it: made from a line of options, both ends, through a frame. Where it
/// asks for samples and a call names none, rows are the samples 0, 1, 2, …
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "core/base/error.h"
#include "core/codecs/edge_coding.h"
#include "core/stage/torch.h"

namespace pipewright::testing {

class CodecTrial {
 public:
  /// options: "{bits: 6}", JSON being YAML.
  explicit CodecTrial(std::string name, const std::string& options = "{}");

  const Codec& codec() const { return *codec_; }
  Coder& sender() { return *sender_; }
  Coder& receiver() { return *receiver_; }
  at::Tensor frame(const at::Tensor& x, const CodecCall& call = {});
  at::Tensor arrived(const at::Tensor& frame, const CodecCall& call = {});
  /// There and back: what arrives of x.
  at::Tensor round_trip(const at::Tensor& x, const CodecCall& call = {});
  /// Bytes of the frame's payload.
  static std::int64_t payload(const at::Tensor& frame);
  /// Whether the values went as they are.
  static bool raw(const at::Tensor& frame);

 private:
  CodecCall with_samples(CodecCall call, at::IntArrayRef sizes);

  std::string name_;
  std::unique_ptr<Codec> codec_;
  std::unique_ptr<Coder> sender_, receiver_;
  std::vector<std::int64_t> samples_;
};

}  // namespace pipewright::testing
