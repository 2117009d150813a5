// SPDX-License-Identifier: Apache-2.0
// fp8 and mx, against LibTorch's casts and against the nearest of all values a format has.
#include <gtest/gtest.h>

#include <cmath>

#include "core/codecs/loops/small_float.h"
#include "core/codecs/loops/small_float_tensors.h"
#include "tests/unit/codecs/codec_trial.h"

namespace pipewright::testing {
namespace {

/// As the OCP MX specification lists them.
struct Format {
  const char* name;
  SmallFloat format;
  int exponent, mantissa;
  double largest, least;
};
const std::vector<Format> kFormats{{"fp8_e4m3", kE4M3, 4, 3, 448, 0x1p-9},
                                   {"fp8_e5m2", kE5M2, 5, 2, 57344, 0x1p-16},
                                   {"fp6_e2m3", kE2M3, 2, 3, 7.5, 0.125},
                                   {"fp6_e3m2", kE3M2, 3, 2, 28, 0.0625},
                                   {"fp4_e2m1", kE2M1, 2, 1, 6, 0.5}};

/// All values that are not negative, in the order of their codes: from the definition.
std::vector<double> values_of_format(const Format& f) {
  std::vector<double> values;
  const int bias = (1 << (f.exponent - 1)) - 1;
  for (int e = 0; e < 1 << f.exponent; ++e)
    for (int m = 0; m < 1 << f.mantissa; ++m) {
      const double fraction = std::ldexp(m, -f.mantissa);
      const double value =
          e == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, e - bias);
      if (value <= f.largest) values.push_back(value);
    }
  return values;
}

std::size_t nearest_value(const std::vector<double>& values, double x) {
  x = std::min(x, values.back());
  std::size_t best = 0;
  for (std::size_t code = 1; code < values.size(); ++code) {
    const double now = std::abs(values[code] - x), before = std::abs(values[best] - x);
    if (now < before || (now == before && code % 2 == 0)) best = code;
  }
  return best;
}

TEST(SmallFloats, AreTheNearestValuesOfTheirFormats) {
  at::manual_seed(1);
  for (const Format& f : kFormats) {
    const auto values = values_of_format(f);
    EXPECT_EQ(values.back(), f.largest);
    EXPECT_EQ(values[1], f.least);
    std::vector<float> inputs;
    for (std::size_t i = 0; i + 1 < values.size(); ++i) {
      const double middle = (values[i] + values[i + 1]) / 2;
      for (const double x :
           {values[i], middle, std::nextafter(static_cast<float>(middle), 0.F) * 1.0,
            std::nextafter(static_cast<float>(middle), 1e9F) * 1.0})
        inputs.push_back(static_cast<float>(x));
    }
    inputs.insert(inputs.end(), {static_cast<float>(f.largest), 1e9F, 3e38F, 1e-40F});
    const std::uint32_t sign = 1U << (f.exponent + f.mantissa);
    for (const float x : inputs) {
      const auto code = static_cast<std::uint32_t>(nearest_value(values, x));
      EXPECT_EQ(small_code(x, SmallRounding(f.format)), code) << f.name << ' ' << x;
      EXPECT_EQ(small_code(-x, SmallRounding(f.format)), code | sign) << f.name << ' ' << -x;
      EXPECT_EQ(small_value(code, f.format), static_cast<float>(values[code]));
      EXPECT_EQ(small_value(code | sign, f.format), -static_cast<float>(values[code]));
    }
    const at::Tensor x = at::tensor(inputs), codes = small_codes(x, f.format);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      EXPECT_EQ(codes[static_cast<std::int64_t>(i)].item<std::int64_t>(),
                small_code(inputs[i], SmallRounding(f.format)));
    EXPECT_TRUE(small_codes(-x, f.format).equal(codes + static_cast<int>(sign)));
    EXPECT_EQ(small_values(codes, f.format)[3].item<float>(),
              small_value(static_cast<std::uint32_t>(codes[3].item<int>()), f.format));
  }
}

/// small_code() as the header says it, in 64 bits, where nothing overflows.
std::uint32_t wide_code(std::uint32_t all, const SmallRounding& r) {
  const std::int64_t bits = all & 0x7fffffffU;
  std::int64_t code = ((bits + r.half + ((bits >> r.shift) & 1)) >> r.shift) - r.rebias;
  if (bits < r.least_normal) {
    const float tiny =
        std::bit_cast<float>(static_cast<std::uint32_t>(bits)) + std::bit_cast<float>(r.unit);
    code = std::int64_t{std::bit_cast<std::int32_t>(tiny)} - r.unit;
  }
  return static_cast<std::uint32_t>(std::min<std::int64_t>(code, r.top)) |
         ((all & 0x80000000U) >> r.sign);
}

TEST(SmallFloats, RoundAnyBitsAsIn64) {
  std::vector<SmallFloat> formats{kHalf, kHalfOrInfinity, kBFloat16};
  for (const Format& f : kFormats) formats.push_back(f.format);
  for (const SmallFloat& format : formats) {
    const SmallRounding r(format);
    std::int64_t wrong = 0;
    for (std::uint32_t high = 0; high < 1U << 16; ++high)
      for (const std::uint32_t low :
           {0U, 1U, 0x0fffU, 0x1000U, 0x1001U, 0x7fffU, 0x8000U, 0x8001U, 0xfffeU, 0xffffU}) {
        const std::uint32_t all = high << 16 | low;
        if (small_code(std::bit_cast<float>(all), r) != wide_code(all, r)) ++wrong;
      }
    EXPECT_EQ(wrong, 0) << format.exponent_bits << " and " << format.mantissa_bits << " bits";
  }
}

TEST(Fp8, IsLibTorchsCastOfScaledValues) {
  at::manual_seed(2);
  const at::Tensor x = at::randn({3, 4, 50}) * at::randn({3, 4, 50}).mul(3).exp();
  for (const bool e4m3 : {true, false})
    for (const bool blocks : {false, true}) {
      const float largest = e4m3 ? 448 : 57344;
      const at::Tensor padded = at::constant_pad_nd(x.view({-1}), {0, blocks ? 40 : 0});
      const at::Tensor rows = padded.view({blocks ? 5 : 1, -1});
      const at::Tensor scale = std::get<0>(rows.abs().max(1, true)) / largest;
      const at::Tensor expected = (rows / scale)
                                      .clamp(-largest, largest)
                                      .to(e4m3 ? at::kFloat8_e4m3fn : at::kFloat8_e5m2)
                                      .to(at::kFloat) *
                                  scale;
      CodecTrial codec("fp8", concat("{format: ", e4m3 ? "e4m3" : "e5m2",
                                     ", per: ", blocks ? "block" : "tensor", "}"));
      const at::Tensor frame = codec.frame(x), y = codec.arrived(frame);
      EXPECT_TRUE(y.view({-1}).equal(expected.view({-1}).narrow(0, 0, 600)));
      EXPECT_EQ(CodecTrial::payload(frame), 600 + 4 * (blocks ? 5 : 1));
      // Half of the last of 3 (2) bits; below the least normal number, 2^-6 (2^-14) of 448 (57344),
      // half of the least one.
      const double relative = e4m3 ? 0x1p-4 : 0x1p-3, least = e4m3 ? 0x1p-10 : 0x1p-17;
      const at::Tensor bound =
          at::maximum(rows.abs() * relative, scale * least).view({-1}).narrow(0, 0, 600) * 1.001;
      EXPECT_TRUE(((y - x).abs().view({-1}) <= bound).all().item<bool>());
    }
}

TEST(Fp8, TakesZerosAndWhatIsTooSmallForAScale) {
  EXPECT_EQ(
      CodecTrial("fp8").payload_of(at::zeros({5})).narrow(0, 0, 4).view(at::kFloat).item<float>(),
      1);
  EXPECT_TRUE(CodecTrial("fp8").round_trip(at::zeros({5})).equal(at::zeros({5})));
  EXPECT_TRUE(CodecTrial("fp8").round_trip(at::full({5}, 1e-44F)).equal(at::zeros({5})));
}

TEST(Mx, ScalesBlocksOf32ByTheirLargestValuesPowerOfTwo) {
  at::manual_seed(3);
  at::Tensor x = at::randn({5, 27}) * at::randn({5, 27}).mul(4).exp();
  x.view({-1}).narrow(0, 32, 32).zero_();
  x[0][0] = -0.F;
  x.view({-1})[130] = 1e-40F;
  for (const Format& f : kFormats) {
    const auto values = values_of_format(f);
    CodecTrial codec("mx", concat("{element: ", f.name, "}"));
    const at::Tensor frame = codec.frame(x), y = codec.arrived(frame);
    EXPECT_EQ(CodecTrial::payload(frame), 5 + (135 * (1 + f.exponent + f.mantissa) + 7) / 8);
    for (std::int64_t block = 0; block < 5; ++block) {
      const std::int64_t n = std::min<std::int64_t>(32, 135 - 32 * block);
      const at::Tensor in = x.view({-1}).narrow(0, 32 * block, n),
                       out = y.view({-1}).narrow(0, 32 * block, n);
      const auto amax = in.abs().max().item<double>();
      const double scale =
          amax == 0 ? 1 : std::exp2(std::floor(std::log2(amax)) - std::floor(std::log2(f.largest)));
      for (std::int64_t i = 0; i < n; ++i) {
        const auto value = in[i].item<double>();
        EXPECT_EQ(
            out[i].item<double>(),
            std::copysign(values[nearest_value(values, std::abs(value) / scale)] * scale, value))
            << f.name << ' ' << value << " of " << amax;
      }
    }
  }
}

TEST(Mx, IsFourAndAQuarterBitsWithTheSmallestElements) {
  EXPECT_EQ(CodecTrial("mx", "{element: fp4_e2m1}").codec().payload_bytes({64, 1000}),
            64000 * 17 / 32);
}

TEST(Mx, TakesTheLargestAndTheSmallestNumbers) {
  for (const Format& f : kFormats) {
    CodecTrial codec("mx", concat("{element: ", f.name, "}"));
    for (const float x : {3.4e38F, 1.2e-38F, 1e-40F, 1e-45F}) {
      const float y = codec.round_trip(at::full({1}, x)).item<float>();
      EXPECT_LE(std::abs(y - x), std::max(0.26F * x, 0x1p-127F)) << f.name << ' ' << x;
    }
  }
}

}  // namespace
}  // namespace pipewright::testing
