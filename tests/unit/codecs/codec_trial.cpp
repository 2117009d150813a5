// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/codecs/codec_trial.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/codecs/low_rank.h"
#include "core/config/value.h"
#include "tests/unit/tolerances.h"

namespace pipewright::testing {
namespace {

FrameHeader header(const at::Tensor& frame) {
  return read_header({static_cast<const std::byte*>(frame.const_data_ptr()), frame.nbytes()});
}

}  // namespace

double truncation_tolerance(const at::Tensor& x, std::int64_t most_rank) {
  const auto m = LowRank::of_last_dimensions(x.sizes(), most_rank);
  if (m.as_it_is()) return 0;
  const at::Tensor all = at::linalg_svdvals(x.to(at::kDouble).view({m.count, m.a, m.b}));
  double squares = 0;
  for (std::int64_t i = 0; i < m.count; ++i) {
    const at::Tensor values = all[i];
    const double of_one = tolerance::truncated32(
        static_cast<double>(std::max(m.a, m.b)), values.norm().item<double>(),
        values[m.rank - 1].item<double>(), values[m.rank].item<double>());
    squares += of_one * of_one;
  }
  return std::sqrt(squares);
}

CodecTrial::CodecTrial(std::string name, const std::string& options) : name_(std::move(name)) {
  Problems problems;
  const Value value = parse_yaml(options, "codec.yaml");
  Options read(&value, "codec", problems);
  codec_ = Registry<Codec>::instance().find(name_)->make(read);
  read.finish();
  EXPECT_TRUE(problems.empty()) << options;
  sender_ = codec_->coder();
  receiver_ = codec_->coder();
}

at::Tensor CodecTrial::frame(const at::Tensor& x, const CodecCall& call) {
  return encode(*sender_, name_, x, with_samples(call, x.sizes())).bytes;
}

at::Tensor CodecTrial::arrived(const at::Tensor& frame, const CodecCall& call) {
  CodecCall named = call;
  try {
    named = with_samples(call, header(frame).sizes);
  } catch (const Error&) {  // decode() will say so
  }
  return decode(*receiver_, name_, {frame, {}}, named);
}

CodecCall CodecTrial::with_samples(CodecCall call, at::IntArrayRef sizes) {
  if (!codec_->by_sample() || !call.samples.empty() || sizes.empty()) return call;
  samples_.resize(static_cast<std::size_t>(std::min<std::int64_t>(sizes[0], 1 << 20)));
  std::iota(samples_.begin(), samples_.end(), 0);
  call.samples = samples_;
  return call;
}

at::Tensor CodecTrial::round_trip(const at::Tensor& x, const CodecCall& call) {
  const CodecCall named = with_samples(call, x.sizes());
  return decode(*receiver_, name_, encode(*sender_, name_, x, named), named);
}

at::Tensor CodecTrial::payload_of(const at::Tensor& x, const CodecCall& call) {
  const at::Tensor bytes = frame(x, call);
  if (!x.is_cpu()) return bytes.cpu();
  if (raw(bytes)) return {};
  return bytes.narrow(0, bytes.numel() - payload(bytes), payload(bytes));
}

std::int64_t CodecTrial::payload(const at::Tensor& frame) {
  return header(frame).payload;
}

bool CodecTrial::raw(const at::Tensor& frame) {
  return header(frame).raw;
}

}  // namespace pipewright::testing
