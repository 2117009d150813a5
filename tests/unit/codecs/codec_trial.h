// SPDX-License-Identifier: Apache-2.0
/// A codec made from a line of options, with both its ends, for round trips of tensors through
/// frames. If it needs samples and a call names none, rows are the samples 0, 1, 2, …
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "core/base/error.h"
#include "core/codecs/edge_coding.h"
#include "core/tensors/torch.h"

namespace pipewright::testing {

struct TestedCodec {
  const char* name;
  const char* options;
};
/// Every codec with its defaults and with options that select its other code paths.
inline constexpr TestedCodec kTestedCodecs[] = {
    {"none", "{}"},
    {"fp16", "{}"},
    {"fp16", "{saturate: false}"},
    {"bf16", "{}"},
    {"sort_quantization", "{}"},
    {"sort_quantization", "{bits: 3, split: 1}"},
    {"sort_quantization", "{bits: 9, split: 3, thresholds: sampled}"},
    {"sort_quantization", "{bits: 12, split: 16, split_means: count}"},
    {"sort_quantization", "{bits: 6, split: 2, wire: container}"},
    {"sort_quantization", "{bits: 5, split: 6, wire: container}"},
    {"sort_quantization", "{skip_zeros: true}"},
    {"uniform", "{}"},
    {"uniform", "{bits: 1}"},
    {"uniform", "{bits: 3, per: channel}"},
    {"uniform", "{bits: 5, per: token, symmetric: true}"},
    {"uniform", "{bits: 6, per: group, rounding: stochastic}"},
    {"uniform", "{bits: 16, per: group, group: 5}"},
    {"fp8", "{}"},
    {"fp8", "{format: e5m2, per: block}"},
    {"mx", "{}"},
    {"mx", "{element: fp8_e5m2}"},
    {"mx", "{element: fp6_e2m3}"},
    {"mx", "{element: fp6_e3m2}"},
    {"mx", "{element: fp4_e2m1}"},
    {"top_k", "{}"},
    {"top_k", "{fraction: 0.02, feedback: tensor}"},
    {"top_k", "{fraction: 0.3, feedback: sample, mask_gradient: true}"},
    {"top_k", "{fraction: 1}"},
    {"sign", "{}"},
    {"sign", "{feedback: tensor}"},
    {"sign", "{feedback: sample}"},
    {"k_means", "{}"},
    {"k_means", "{bits: 1, rounds: 0}"},
    {"k_means", "{bits: 7}"},
    {"svd", "{}"},
    {"svd", "{rank: 1}"},
    {"power_iteration", "{rank: 1}"},
    {"power_iteration", "{rank: 2, rounds: 1}"},
    {"aq_sgd", "{}"},
    {"aq_sgd", "{bits: 2, per: tensor, symmetric: false, cache: float32}"}};

inline std::string codec_test_name(const ::testing::TestParamInfo<TestedCodec>& info) {
  std::string name = concat(info.param.name, '_', info.param.options);
  std::erase_if(name,
                [](char c) { return !std::isalnum(static_cast<unsigned char>(c)) && c != '_'; });
  return name;
}

/// How far two computations of svd's approximation of x in float32 may be apart
/// (tolerance::truncated32).
double truncation_tolerance(const at::Tensor& x, std::int64_t most_rank);

class CodecTrial {
 public:
  /// `options` is YAML in flow style, such as "{bits: 6}".
  explicit CodecTrial(std::string name, const std::string& options = "{}");

  const Codec& codec() const { return *codec_; }
  Coder& sender() { return *sender_; }
  Coder& receiver() { return *receiver_; }
  at::Tensor frame(const at::Tensor& x, const CodecCall& call = {});
  at::Tensor arrived(const at::Tensor& frame, const CodecCall& call = {});
  /// Encodes and decodes x, on any device.
  at::Tensor round_trip(const at::Tensor& x, const CodecCall& call = {});
  /// The payload for x, on the CPU; undefined if x is sent raw. x may be on any device.
  at::Tensor payload_of(const at::Tensor& x, const CodecCall& call = {});
  /// Size of the frame's payload in bytes.
  static std::int64_t payload(const at::Tensor& frame);
  /// Whether the frame has the values unencoded.
  static bool raw(const at::Tensor& frame);

 private:
  CodecCall with_samples(CodecCall call, at::IntArrayRef sizes);

  std::string name_;
  std::unique_ptr<Codec> codec_;
  std::unique_ptr<Coder> sender_, receiver_;
  std::vector<std::int64_t> samples_;
};

}  // namespace pipewright::testing
