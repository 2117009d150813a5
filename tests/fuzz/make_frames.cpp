// SPDX-License-Identifier: Apache-2.0
// Writes the seeds of the target codecs: a frame of every codec with each of the options that unit
// tests have, and one that travels raw:
//   fuzz_make_frames tests/fuzz/corpus
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>

#include "core/codecs/edge_coding.h"
#include "core/config/value.h"
#include "core/tensors/torch.h"
#include "tests/unit/codecs/codec_trial.h"

namespace pipewright::fuzz {
namespace {

void write(const std::filesystem::path& path, int choice, const at::Tensor& frame) {
  std::ofstream out(path, std::ios::binary);
  out.put(static_cast<char>(choice));
  out.write(static_cast<const char*>(frame.const_data_ptr()),
            static_cast<std::streamsize>(frame.nbytes()));
}

/// Numbers from -1 to 1 in no order.
at::Tensor values_of(at::IntArrayRef sizes, at::ScalarType type) {
  at::Tensor x = at::empty(sizes, at::kFloat);
  auto* out = x.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < x.numel(); ++i)
    out[i] = static_cast<float>((i * 7919) % 1009) / 504.5f - 1;
  return x.to(type);
}

void write_all(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  std::map<std::string, int> choices;  // of options, by codec
  for (const testing::TestedCodec& tested : testing::kTestedCodecs) {
    Problems problems;
    const Value value = parse_yaml(tested.options, "codec.yaml");
    Options options(&value, "codec", problems);
    const auto codec = Registry<Codec>::instance().find(tested.name)->make(options);
    const int choice = choices[tested.name]++;
    std::vector<std::int64_t> samples(codec->by_sample() ? 4 : 0);
    std::iota(samples.begin(), samples.end(), 0);
    const CodecCall call{.samples = samples};
    const auto put = [&](const char* what, at::IntArrayRef sizes, at::ScalarType type) {
      const auto coder = codec->coder();
      const at::Tensor x = values_of(sizes, type);
      write(folder / concat("good-", tested.name, '-', choice, '-', what), choice,
            encode(*coder, tested.name, x, call).bytes);
    };
    put("float32", {4, 3, 5}, at::kFloat);
    if (choice == 0) put("float64", {4, 7}, at::kDouble);
  }
  const auto put_raw = [&](const std::string& name, const std::string& codec, FrameType type,
                           const at::Tensor& x) {
    FrameHeader header{.codec = codec_tag(codec), .raw = true, .sizes = {2, 3}};
    header.type = type;
    FrameBuilder frame(header, at::kCPU);
    frame.payload(static_cast<std::int64_t>(x.nbytes())).copy_(x.reshape({-1}).view(at::kByte));
    write(folder / name, 0, frame.frame());
  };
  const auto codec = choices.begin()->first;
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
    const at::Tensor x = values_of({2, 3}, type);
    const FrameType stated = type == at::kFloat    ? FrameType::Float32
                             : type == at::kDouble ? FrameType::Float64
                             : type == at::kHalf   ? FrameType::Float16
                                                   : FrameType::BFloat16;
    put_raw(concat("good-raw-", static_cast<int>(stated)), codec, stated, x);
  }
  // A NaN of all ones: rounding its bits as a signed number would overflow.
  const at::Tensor greatest = at::full({2, 3}, 0x7fffffff, at::kInt).view(at::kFloat);
  for (const char* rounding : {"fp16", "bf16", "fp8", "mx"})
    put_raw(concat("good-greatest-nan-", rounding), rounding, FrameType::Float32, greatest);
}

}  // namespace
}  // namespace pipewright::fuzz

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", arguments[0]);
    return 2;
  }
  pipewright::fuzz::write_all(std::filesystem::path(arguments[1]) / "codecs");
  return 0;
}
