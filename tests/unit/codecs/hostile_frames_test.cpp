// SPDX-License-Identifier: Apache-2.0
// Small messages that claim to stand for much: refused before there is memory for it.
#include <gtest/gtest.h>

#include <cstring>

#include "core/codecs/edge_ends.h"
#include "tests/unit/codecs/codec_trial.h"

namespace pipewright::testing {
namespace {

constexpr std::int64_t kExpected = 1 << 16;  ///< values that cross the edge

/// Whatever a codec makes of its payload, its bytes are as many as the codec says for these sizes.
at::Tensor hostile(const std::string& codec, const std::vector<std::int64_t>& sizes,
                   std::int64_t payload) {
  const FrameHeader header{.codec = codec_tag(codec), .sizes = sizes, .payload = payload};
  at::Tensor frame = at::zeros({header.bytes() + payload}, at::kByte);
  write_header(header, {static_cast<std::byte*>(frame.mutable_data_ptr()), frame.nbytes()});
  return frame;
}

Error refusal(CodecTrial& trial, const std::string& codec, const Encoded& encoded) {
  try {
    decode(trial.receiver(), codec, encoded, {}, kExpected);
  } catch (const Error& error) {
    return error;
  }
  return {ErrorKind::Bug, concat(codec, " took it")};
}

struct Claim {
  const char* codec;
  const char* options;
  std::vector<std::int64_t> sizes;
};

/// A few thousand bytes, or one or two, that are a gigabyte and more when decoded.
const Claim kClaims[] = {{"svd", "{rank: 1}", {1 << 14, 1 << 14}},
                         {"power_iteration", "{rank: 1}", {1, 1 << 14, 1 << 14}},
                         {"top_k", "{fraction: 1e-9}", {1 << 30}},
                         {"sign", "{}", {1 << 17}},
                         {"k_means", "{bits: 1}", {1 << 17}},
                         {"mx", "{element: fp4_e2m1}", {1 << 17}},
                         {"uniform", "{bits: 1}", {1 << 17}}};

TEST(HostileFrames, ThatClaimMoreValuesThanCrossAreRefused) {
  for (const Claim& claim : kClaims) {
    CodecTrial trial(claim.codec, claim.options);
    const auto bytes = trial.codec().payload_bytes(claim.sizes);
    ASSERT_TRUE(bytes && *bytes < 1 << 18) << claim.codec;
    const at::Tensor frame = hostile(claim.codec, claim.sizes, *bytes);
    const Error error = refusal(trial, claim.codec, {frame, {}});
    EXPECT_EQ(error.kind(), ErrorKind::Data) << error.what();
    EXPECT_NE(error.message().find("values, where at most 65536 cross"), std::string::npos)
        << error.what();
  }
}

/// From devices payloads come without a header; beside them an empty tensor has the sizes.
TEST(HostileFrames, ThatSayTheirSizesOtherwiseAreRefused) {
  CodecTrial trial("svd", "{rank: 1}");
  const at::Tensor payload = at::zeros({4 << 15}, at::kByte);
  const auto like = [](const std::vector<std::int64_t>& sizes, at::ScalarType type = at::kFloat) {
    return at::empty(sizes, at::TensorOptions(type));
  };
  for (const at::Tensor& said :
       {like({0, 1 << 14, 1 << 14}), like({0, std::int64_t{1} << 40, 1 << 20}), like({}), like({4}),
        like({0, 8, 8}, at::kFloat8_e5m2)})
    EXPECT_EQ(refusal(trial, "svd", {payload, said}).kind(), ErrorKind::Data) << said.sizes();
  EXPECT_NO_THROW(decode(trial.receiver(), "svd",
                         {payload.narrow(0, 0, 4 << 9), like({0, 256, 256})}, {}, kExpected));
}

/// Every payload's length follows from its sizes, or is checked before it is believed.
TEST(HostileFrames, WithFewerBytesThanTheirSizesNeedAreRefused) {
  for (const TestedCodec& tested : kTestedCodecs)
    for (const std::vector<std::int64_t>& sizes :
         {std::vector<std::int64_t>{1 << 30}, {1 << 10, 1 << 20}, {1 << 10, 1 << 10, 1 << 10}})
      for (const std::int64_t payload : {0, 8, 4096}) {
        CodecTrial trial(tested.name, tested.options);
        if (trial.codec().payload_bytes(sizes) == payload) continue;
        EXPECT_THROW(trial.arrived(hostile(tested.name, sizes, payload)), Error)
            << tested.name << ' ' << tested.options << ' ' << payload;
      }
}

}  // namespace
}  // namespace pipewright::testing
