// SPDX-License-Identifier: Apache-2.0
// Sort Quantization on a device against a copy there, in turns: the tensor of MobileNetV2's first
// cut for 32 images, as codec_bench has it.
#include "core/base/error.h"
#include "core/codecs/edge_coding.h"
#include "core/config/value.h"
#include "core/tensors/torch.h"
#include "tests/bench/device_bench.h"

namespace pipewright::bench {
namespace {

std::unique_ptr<Codec> sort_quantization(const std::string& options) {
  Problems problems;
  const Value value = parse_yaml(options, "device_bench");
  Options read(&value, "codec", problems);
  auto codec = Registry<Codec>::instance().find("sort_quantization")->make(read);
  PIPEWRIGHT_CHECK(problems.empty(), "options ", options);
  return codec;
}

std::vector<std::pair<std::string, std::string>> rounds_of(const DeviceBench& bench,
                                                           const std::string& options) {
  at::manual_seed(1);
  const std::int64_t images = bench.small ? 1 : 32;
  const int repetitions = bench.small ? 1 : 20;
  const at::Tensor x = at::randn({images, 32, 112, 112}).to(bench.device);
  const at::Tensor there = at::empty_like(x);
  const auto codec = sort_quantization(options);
  const auto sender = codec->coder(), receiver = codec->coder();
  Encoded sent;
  at::Tensor arrived;
  std::vector<double> copy, encoding, decoding;
  for (int round = 0; round <= bench.rounds; ++round) {
    const auto take = [&](std::vector<double>& times, const std::function<void()>& work) {
      const double taken = seconds(bench.device, [&] {
        for (int i = 0; i < repetitions; ++i) work();
      });
      if (round > 0) times.push_back(1e3 * taken / repetitions);
    };
    take(copy, [&] { there.copy_(x); });
    take(encoding, [&] { sent = encode(*sender, "sort_quantization", x, {}); });
    take(decoding, [&] { arrived = decode(*receiver, "sort_quantization", sent, {}); });
  }
  const double error = ((arrived - x).norm() / x.norm()).item<double>();
  return {{"values", std::to_string(x.numel())},
          {"bits", json_numbers({8.0 * static_cast<double>(sent.bytes.numel()) /
                                 static_cast<double>(x.numel())})},
          {"error_of_values", json_numbers({error})},
          {"copy_ms", json_numbers(copy)},
          {"encode_ms", json_numbers(encoding)},
          {"decode_ms", json_numbers(decoding)},
          {"encode_over_copy", json_ratios(encoding, copy)},
          {"decode_over_copy", json_ratios(decoding, copy)}};
}

}  // namespace

void measure_codecs(const DeviceBench& bench) {
  for (const char* options :
       {"{bits: 6, split: 2}", "{bits: 3, split: 1}", "{bits: 6, split: 2, thresholds: sampled}",
        "{bits: 9, split: 3}", "{bits: 12, split: 4}"})
    report("codec", {{"options", json_text(options)}}, [&] { return rounds_of(bench, options); });
}

}  // namespace pipewright::bench
