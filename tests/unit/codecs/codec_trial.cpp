#include "tests/unit/codecs/codec_trial.h"

#include "core/config/value.h"

namespace pipewright::testing {
namespace {

FrameHeader header(const at::Tensor& frame) {
  return read_header({static_cast<const std::byte*>(frame.const_data_ptr()), frame.nbytes()});
}

}  // namespace

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
  return encode(*sender_, name_, x, call).bytes;
}

at::Tensor CodecTrial::arrived(const at::Tensor& frame, const CodecCall& call) {
  return decode(*receiver_, name_, {frame, {}}, call);
}

at::Tensor CodecTrial::round_trip(const at::Tensor& x, const CodecCall& call) {
  return arrived(frame(x, call), call);
}

std::int64_t CodecTrial::payload(const at::Tensor& frame) {
  return header(frame).payload;
}

bool CodecTrial::raw(const at::Tensor& frame) {
  return header(frame).raw;
}

}  // namespace pipewright::testing
