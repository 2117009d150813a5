// SPDX-License-Identifier: Apache-2.0
// Sort quantization against its definition: worked examples, and a plain sort that is written here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "core/codecs/kinds/sort_quantization_device.h"
#include "core/codecs/loops/bits.h"
#include "core/codecs/loops/sort_quantization_code.h"
#include "core/codecs/loops/zero_map.h"
#include "tests/unit/codecs/codec_trial.h"
#include "tests/unit/tolerances.h"

namespace pipewright::testing {
namespace {

using Floats = std::vector<float>;
using Bytes = std::vector<std::byte>;

constexpr std::size_t kHeader = 8;

// ---- the definition, by sorting ----

struct Sorted {
  Floats low, high, step;
  Floats decoded;  ///< of each value, in its place

  Sorted(const SortQuantization& settings, const Floats& x) : decoded(x.size()) {
    std::vector<std::size_t> order(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return x[a] < x[b]; });
    std::size_t groups = std::size_t{1} << settings.split;
    while (groups > x.size()) groups /= 2;
    const auto levels = static_cast<float>((1 << settings.bits) - 1);
    std::size_t begin = 0;
    for (std::size_t g = 0; g < groups; ++g) {
      const std::size_t size = x.size() / groups + (g < x.size() % groups ? 1 : 0);
      low.push_back(x[order[begin]] + 0.0f);
      high.push_back(x[order[begin + size - 1]] + 0.0f);
      step.push_back((high.back() - low.back()) / levels);
      for (std::size_t i = begin; i < begin + size; ++i) {
        const float q =
            step.back() > 0 ? std::nearbyint((x[order[i]] - low.back()) / step.back()) : 0;
        const float scaled = std::min(q, levels) * step.back();
        decoded[order[i]] = low.back() + scaled;
      }
      begin += size;
    }
  }
};

Bytes encoded(const SortQuantization& settings, const Floats& x) {
  const auto groups = find_groups(settings, x);
  Bytes payload(static_cast<std::size_t>(settings.payload_bytes(std::ssize(x))));
  if (groups) encode_groups(settings, *groups, x, payload);
  EXPECT_TRUE(groups) << "was not encoded";
  return payload;
}

Floats decoded(const Bytes& payload, std::size_t n) {
  Floats x(n, std::nanf(""));
  decode_quantized(payload, x);
  return x;
}

Floats table_of(const Bytes& payload, std::size_t groups) {
  Floats table(2 * groups);
  std::memcpy(table.data(), payload.data() + kHeader, 8 * groups);
  return table;
}

template <class Code>
std::vector<int> codes_of(const Bytes& payload, std::size_t groups, std::size_t n) {
  std::vector<Code> codes(n);
  std::memcpy(codes.data(), payload.data() + kHeader + 8 * groups, n * sizeof(Code));
  return {codes.begin(), codes.end()};
}

std::vector<int> fields_of(const Bytes& payload, std::size_t groups, int bits, std::size_t n) {
  std::vector<std::uint16_t> codes(n);
  const std::span<const std::byte> all(payload);
  unpack(all.subspan(kHeader + 8 * groups,
                     static_cast<std::size_t>(packed_bytes(static_cast<std::int64_t>(n), bits))),
         bits, std::span(codes));
  return {codes.begin(), codes.end()};
}

// ---- worked examples ----

const Floats kExample{0.9f, -1.2f, 0.1f, 2.5f, 0.0f, 3.0f, -0.4f, 0.7f};

TEST(SortQuantization, EncodesTheWorkedExample) {
  const SortQuantization settings{.bits = 2, .split = 1};
  const Bytes payload = encoded(settings, kExample);
  EXPECT_EQ(table_of(payload, 2), (Floats{-1.2f, (0.1f - -1.2f) / 3, 0.7f, (3.0f - 0.7f) / 3}));
  EXPECT_NEAR(table_of(payload, 2)[1], 0.433333, tolerance::written(6) + tolerance::rounded32(3));
  EXPECT_NEAR(table_of(payload, 2)[3], 0.766667, tolerance::written(6) + tolerance::rounded32(3));
  EXPECT_EQ(fields_of(payload, 2, 3, 8), (std::vector{4, 0, 3, 6, 3, 7, 2, 4}));
  const Floats expected{0.7f, -1.2f, 0.1f, 2.233333f, 0.1f, 3.0f, -0.333333f, 0.7f};
  const Floats found = decoded(payload, 8);
  for (std::size_t i = 0; i < 8; ++i)
    EXPECT_NEAR(found[i], expected[i], tolerance::written(6) + 3 * tolerance::rounded32(3));
}

TEST(SortQuantization, TakesTheBytesOfTheWorkedExample) {
  // Beside 8 of a header: 16 of the table, 3 of codes, padded; as a container 24.
  EXPECT_EQ((SortQuantization{.bits = 2, .split = 1}.payload_bytes(8)), 8 + 16 + 8);
  EXPECT_EQ((SortQuantization{.bits = 2, .split = 1, .container = true}.payload_bytes(8)), 8 + 24);
  EXPECT_EQ((SortQuantization{.bits = 6, .split = 2}.payload_bytes(12'845'056)),
            8 + 32 + 12'845'056);
  EXPECT_EQ((SortQuantization{.bits = 9, .split = 3}.payload_bytes(1000)), 8 + 64 + 1504);
  EXPECT_EQ((SortQuantization{.bits = 9, .split = 3, .container = true}.payload_bytes(1000)),
            8 + 64 + 2000);
  // More than 2^31 bytes.
  EXPECT_EQ((SortQuantization{.bits = 3, .split = 1}.payload_bytes(std::int64_t{1} << 36)),
            8 + 16 + (std::int64_t{1} << 35));
}

TEST(SortQuantization, HasTheCodesOfTheOtherExamples) {
  EXPECT_EQ(fields_of(encoded({.bits = 3, .split = 1}, kExample), 2, 4, 8),
            (std::vector{9, 0, 7, 13, 6, 15, 4, 8}));
  EXPECT_EQ(
      codes_of<std::int8_t>(encoded({.bits = 3, .split = 1, .container = true}, kExample), 2, 8),
      (std::vector{9, 0, 7, 13, 6, 15, 4, 8}));
  EXPECT_EQ(
      codes_of<std::int8_t>(encoded({.bits = 7, .split = 1, .container = true}, kExample), 2, 8),
      (std::vector{11, -128, -1, 99, -11, 127, -50, 0}));
  EXPECT_EQ(
      codes_of<std::int16_t>(encoded({.bits = 8, .split = 1, .container = true}, kExample), 2, 8),
      (std::vector{278, 0, 255, 456, 235, 511, 157, 256}));
  const Bytes six = encoded({.bits = 6, .split = 2, .container = true}, kExample);
  EXPECT_EQ(codes_of<std::int8_t>(six, 4, 8), (std::vector{63, -128, -1, 64, -64, 127, -65, 0}));
  const Floats exact = decoded(six, 8);
  for (std::size_t i = 0; i < 8; ++i)
    EXPECT_NEAR(exact[i], kExample[i], 3 * tolerance::rounded32(1));
}

TEST(SortQuantization, CutsTenValuesIntoThreeThreeTwoAndTwo) {
  Floats x(10);
  for (std::size_t i = 0; i < 10; ++i) x[i] = static_cast<float>((7 * i) % 10);
  const Floats table = table_of(encoded({.bits = 1, .split = 2}, x), 4);
  EXPECT_EQ(table, (Floats{0, 2, 3, 2, 6, 1, 8, 1}));
}

// ---- random trials ----

Floats trial(int round, std::mt19937& random) {
  const auto n = static_cast<std::size_t>(round % 5 == 0   ? 1 + random() % 8
                                          : round % 7 == 0 ? 4000 + random() % 9000
                                                           : 1 + random() % 700);
  std::normal_distribution<double> normal;
  Floats x(n);
  for (float& value : x) {
    const double d = normal(random);
    switch (round % 11) {
      case 0: value = static_cast<float>(d); break;
      case 1: value = static_cast<float>(std::max(d, 0.0)); break;             // ReLU
      case 2: value = static_cast<float>(std::clamp(4 * d, 0.0, 6.0)); break;  // ReLU6
      case 3: value = static_cast<float>(std::round(2 * d)); break;            // ties
      case 4: value = -3.25f; break;                                           // constant
      case 5: value = static_cast<float>(d * 1e-30); break;
      case 6: value = static_cast<float>(d * 1e-43); break;                           // denormal
      case 7: value = static_cast<float>(std::copysign(std::exp(12 * d), d)); break;  // tails
      case 8: value = static_cast<float>(d * 3e37); break;
      case 9: value = random() % 4 == 0 ? static_cast<float>(d) : 1.0f; break;  // constant groups
      default: value = random() % 2 == 0 ? -0.0f : static_cast<float>(1000 + d * 1e-3);
    }
  }
  return x;
}

SortQuantization settings_of(int round, std::mt19937& random) {
  static constexpr std::array<std::array<int, 2>, 11> kSettings{
      {{6, 2}, {2, 1}, {3, 1}, {9, 3}, {12, 4}, {8, 0}, {1, 0}, {16, 0}, {1, 15}, {4, 6}, {7, 5}}};
  const auto& [bits, split] = kSettings[random() % kSettings.size()];
  return {.bits = bits, .split = split, .container = round % 3 == 0};
}

/// Calls check(settings, values) for so many trials.
template <class Check>
void in_trials(int rounds, unsigned seed, const Check& check) {
  std::mt19937 random(seed);
  for (int round = 0; round < rounds; ++round) {
    const Floats x = trial(round, random);
    const SortQuantization settings = settings_of(round, random);
    SCOPED_TRACE(
        concat("round ", round, ": ", settings.bits, ", ", settings.split, ", n ", x.size()));
    check(settings, x);
  }
}

TEST(SortQuantization, IsThatOfASortInManyTrials) {
  in_trials(400, 1, [](const SortQuantization& settings, const Floats& x) {
    const Sorted expected(settings, x);
    const Bytes payload = encoded(settings, x);
    const Floats table = table_of(payload, expected.low.size()), found = decoded(payload, x.size());
    for (std::size_t g = 0; g < expected.low.size(); ++g) {
      ASSERT_EQ(table[2 * g], expected.low[g]);
      ASSERT_EQ(table[2 * g + 1], expected.step[g]);
    }
    const double scale = std::max(std::abs(expected.low.front()), std::abs(expected.high.back()));
    // Of two groups that share a value, each may have it; they decode to the same but for rounding,
    // which for steps among the last denormals is half of one of them at every level.
    const double rounding = scale > 1e-35 ? tolerance::rounded32(2) * scale
                                          : tolerance::kDenormal32 * (1 << settings.bits);
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_NEAR(found[i], expected.decoded[i], rounding) << i;
  });
}

TEST(SortQuantization, ErrsByHalfAStepOfItsGroup) {
  in_trials(100, 2, [](const SortQuantization& settings, const Floats& x) {
    const Sorted expected(settings, x);
    const Floats found = decoded(encoded(settings, x), x.size());
    const double rounding = tolerance::rounded32(3) * std::max(std::abs(expected.low.front()),
                                                               std::abs(expected.high.back())) +
                            64 * tolerance::kDenormal32;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto group = std::lower_bound(expected.high.begin(), expected.high.end(), x[i] + 0.0f) -
                         expected.high.begin();
      const double step = expected.step[static_cast<std::size_t>(group)];
      // A step among the last denormals is rounded by half of them, at every level.
      const double denormal = step < 1e-37 ? tolerance::kDenormal32 * (1 << settings.bits) : 0;
      ASSERT_LE(std::abs(double{found[i]} - x[i]), step / 2 + rounding + denormal) << i;
    }
  });
}

TEST(SortQuantization, DecodesTheSameFromPackedBitsAndFromContainers) {
  in_trials(60, 3, [](SortQuantization settings, const Floats& x) {
    settings.container = false;
    const Floats packed = decoded(encoded(settings, x), x.size());
    settings.container = true;
    EXPECT_EQ(decoded(encoded(settings, x), x.size()), packed);
  });
}

TEST(SortQuantization, KeepsTheEndsOfItsGroups) {
  std::mt19937 random(4);
  const Floats x = trial(0, random);
  const Floats found = decoded(encoded({.bits = 4, .split = 0}, x), x.size());
  const auto least = std::min_element(x.begin(), x.end()) - x.begin();
  EXPECT_EQ(found[static_cast<std::size_t>(least)], x[static_cast<std::size_t>(least)]);
}

TEST(SortQuantization, TakesNothingAndFewerValuesThanGroups) {
  EXPECT_EQ(decoded(encoded({}, {}), 0), Floats{});
  EXPECT_EQ((SortQuantization{.bits = 6, .split = 2}.for_values(3).split), 1);
  EXPECT_EQ((SortQuantization{.bits = 6, .split = 2}.for_values(0).split), 0);
  EXPECT_EQ(decoded(encoded({.bits = 6, .split = 2}, {1.5f, -2, 4}), 3)[0], 1.5f);
  EXPECT_EQ(decoded(encoded({.bits = 1, .split = 15}, {1.5f, -2, 4, 9}), 4),
            (Floats{1.5f, -2, 4, 9}));
}

TEST(SortQuantization, MakesOneZeroOfBoth) {
  const Floats found = decoded(encoded({.bits = 3, .split = 1}, {-0.0f, -0.0f, 0.0f, -0.0f}), 4);
  for (const float x : found) EXPECT_FALSE(std::signbit(x));
}

TEST(SortQuantization, LeavesAsTheyAreWhatItsNumbersCannotSay) {
  const float most = std::numeric_limits<float>::max();
  EXPECT_FALSE(find_groups({.bits = 6, .split = 0}, Floats{-most, 0, most}));
  EXPECT_TRUE(find_groups({.bits = 6, .split = 1}, Floats{-most, -1, 1, most}));
  EXPECT_FALSE(find_groups({}, Floats{1, 2, std::nanf(""), 4, 5}));
  EXPECT_FALSE(find_groups({.sampled = true}, Floats{1, 2, 3, 4, INFINITY}));
  CodecTrial trial("sort_quantization");
  EXPECT_TRUE(CodecTrial::raw(trial.frame(at::full({8}, INFINITY))));
  const at::Tensor wide = at::tensor({-3e38f, 3e38f});
  EXPECT_TRUE(CodecTrial("sort_quantization", "{split: 0}").round_trip(wide).equal(wide));
}

/// A sample of 65,536 says where a group ends; a group has two ends.
TEST(SortQuantization, HasGroupsOfNearlyEqualSizesBySample) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  Floats x(500'000);
  for (float& value : x) value = normal(random);
  const SortQuantization exact{.bits = 6, .split = 2};
  SortQuantization sampled = exact;
  sampled.sampled = true;
  const auto groups = find_groups(sampled, x);
  ASSERT_TRUE(groups);
  Floats sorted = x;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(groups->front().low, sorted.front());
  EXPECT_EQ(groups->back().high, sorted.back());
  std::int64_t before = 0;
  for (const QuantizedGroup& group : *groups) {
    const auto end = std::upper_bound(sorted.begin(), sorted.end(), group.high) - sorted.begin();
    EXPECT_NEAR(static_cast<double>(end - before) / 500'000, 0.25,
                2 * tolerance::share_of(65'536, 0.5));
    EXPECT_EQ(group.low, sorted[static_cast<std::size_t>(before)]) << "limits of groups are exact";
    before = end;
  }
  const Floats found = decoded(encoded(sampled, x), x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto group = std::find_if(groups->begin(), groups->end(),
                                    [&](const auto& each) { return x[i] <= each.high; });
    ASSERT_LE(std::abs(found[i] - x[i]), group->step / 2 + 6 * tolerance::rounded32(3));
  }
}

TEST(SortQuantization, WritesTheSameBytesOnSeveralThreads) {
  std::mt19937 random(6);
  std::normal_distribution<float> normal;
  Floats x(100'003);
  for (float& value : x) value = normal(random);
  const ForPieces backwards = [](std::int64_t n, std::int64_t, const auto& work) {
    for (std::int64_t end = n; end > 0; end -= std::min<std::int64_t>(end, 7))
      work(std::max<std::int64_t>(0, end - 7), end);
  };
  for (const bool sampled : {false, true})
    for (const int bits : {3, 6, 9}) {
      const SortQuantization settings{.bits = bits, .split = 2, .sampled = sampled};
      const Bytes expected = encoded(settings, x);
      const auto groups = find_groups(settings, x, backwards);
      Bytes payload(expected.size(), std::byte{255});
      encode_groups(settings, *groups, x, payload, backwards);
      EXPECT_EQ(payload, expected);
      Floats found(x.size());
      decode_quantized(payload, found, backwards);
      EXPECT_EQ(found, decoded(expected, x.size()));
    }
}

// ---- zeros ----

TEST(SortQuantization, SkipsZerosAndQuantisesTheOthers) {
  for (const std::int64_t n : {1, 7, 8, 64, 65, 999}) {
    const at::Tensor x = at::randn({n}).relu();
    const at::Tensor others = x.masked_select(x > 0);
    CodecTrial skipping("sort_quantization", "{bits: 3, split: 1, skip_zeros: true}");
    const at::Tensor frame = skipping.frame(x), found = skipping.arrived(frame);
    EXPECT_TRUE(found.masked_select(x.eq(0)).eq(0).all().item<bool>());
    EXPECT_TRUE(found.masked_select(x > 0).equal(
        CodecTrial("sort_quantization", "{bits: 3, split: 1}").round_trip(others)));
    const SortQuantization inner{.bits = 3, .split = 1};
    EXPECT_EQ(CodecTrial::payload(frame),
              8 + (n + 63) / 64 * 8 + inner.payload_bytes(others.numel()));
  }
  const at::Tensor zeros = at::full({5}, -0.0);
  EXPECT_TRUE(CodecTrial("sort_quantization", "{skip_zeros: true}").round_trip(zeros).equal(zeros));
}

TEST(SortQuantization, MapsZerosTheSameByOperators) {
  for (const std::int64_t n : {0, 1, 8, 65, 999}) {
    const at::Tensor x = at::randn({n}).relu();
    const auto size = static_cast<std::size_t>(n);
    Bytes expected(static_cast<std::size_t>(zero_map_bytes(n)));
    const Floats others = take_zeros_out({x.const_data_ptr<float>(), size}, expected);
    const at::Tensor map = at::empty({zero_map_bytes(n)}, at::kByte);
    write_zero_map(x, std::ssize(others), map);
    EXPECT_EQ(std::memcmp(map.const_data_ptr(), expected.data(), expected.size()), 0);
    EXPECT_TRUE(nonzeros_of(map, n).equal(x.ne(0)));
  }
}

// ---- what others send ----

TEST(SortQuantization, RefusesWhatNobodyEncodes) {
  const Bytes payload = encoded({.bits = 3, .split = 1, .container = true}, kExample);
  const auto refused = [&](std::size_t at, int byte) {
    Bytes damaged = payload;
    damaged[at] = static_cast<std::byte>(byte);
    try {
      decoded(damaged, 8);
      return std::string("taken");
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Data);
      return error.message();
    }
  };
  EXPECT_NE(refused(0, 2).find("version"), std::string::npos);
  EXPECT_NE(refused(1, 0).find("bits"), std::string::npos);
  EXPECT_NE(refused(1, 200).find("bits"), std::string::npos);
  EXPECT_NE(refused(2, 200).find("bits"), std::string::npos);
  EXPECT_NE(refused(2, 4).find("groups"), std::string::npos);
  EXPECT_NE(refused(2, 0).find("bytes"), std::string::npos);
  EXPECT_NE(refused(3, 2).find("flags"), std::string::npos);
  EXPECT_NE(refused(6, 1).find("flags"), std::string::npos);
  EXPECT_NE(refused(kHeader + 16 + 3, 16).find("code"), std::string::npos);
  EXPECT_EQ(refused(kHeader + 16 + 3, 15), "taken");
  Bytes padded = encoded({.bits = 2, .split = 1}, kExample);
  padded.back() = std::byte{1};
  EXPECT_THROW(decoded(padded, 8), Error);
  EXPECT_THROW(read_quantized(payload, std::int64_t{1} << 40), Error);
  EXPECT_THROW(CodecTrial("sort_quantization", "{bits: 5}")
                   .arrived(CodecTrial("sort_quantization").frame(at::randn({8}))),
               Error);
}

TEST(SortQuantization, RefusesMoreBitsThanACodeHas) {
  const auto problems_of = [](const char* text) {
    Problems problems;
    const Value value = parse_yaml(text, "codec.yaml");
    Options options(&value, "codec", problems);
    const auto codec = Registry<Codec>::instance().find("sort_quantization")->make(options);
    options.finish();
    EXPECT_NE(codec, nullptr);
    return !problems.empty();
  };
  EXPECT_TRUE(problems_of("{bits: 13, split: 4}"));
  EXPECT_TRUE(problems_of("{bits: 0}"));
  EXPECT_TRUE(problems_of("{split: 17}"));
  EXPECT_TRUE(problems_of("{split: 3, split_means: count}"));
  EXPECT_TRUE(problems_of("{split: 0, split_means: count}"));
  EXPECT_TRUE(problems_of("{bits: 14, split: 8, split_means: count}"));
  EXPECT_FALSE(problems_of("{bits: 1, split: 15}"));
  EXPECT_FALSE(problems_of("{bits: 12, split: 16, split_means: count}"));
}

// ---- by LibTorch's operators, as on devices ----

TEST(SortQuantization, IsTheSameByOperators) {
  in_trials(120, 8, [](const SortQuantization& settings, const Floats& x) {
    const at::Tensor values = at::tensor(x);
    const at::Tensor payload = at::empty({settings.payload_bytes(values.numel())}, at::kByte);
    encode_on_device(settings, values, payload);
    const Bytes expected = encoded(settings, x);
    ASSERT_EQ(std::memcmp(payload.const_data_ptr(), expected.data(), expected.size()), 0);
    const at::Tensor back = at::empty_like(values);
    decode_on_device(settings, payload, back);
    EXPECT_TRUE(back.equal(at::tensor(decoded(expected, x.size()))));
  });
}

TEST(SortQuantization, IsTheSameByOperatorsWhereLimitsAreSampled) {
  at::manual_seed(3);
  for (const std::int64_t n : {1, 8, 1000, 65'537})
    for (const auto& [bits, split] : {std::pair{6, 2}, {3, 1}, {12, 4}}) {
      const SortQuantization settings{.bits = bits, .split = split, .sampled = true};
      const at::Tensor noise = at::randn({n});
      for (const at::Tensor& x :
           {noise, (2 * noise).round(), noise.where(noise > 0, at::full({}, -0.0))}) {
        const at::Tensor payload = at::empty({settings.payload_bytes(n)}, at::kByte);
        encode_on_device(settings, x, payload);
        const Bytes expected = encoded(
            settings, Floats(x.const_data_ptr<float>(), x.const_data_ptr<float>() + x.numel()));
        ASSERT_EQ(std::memcmp(payload.const_data_ptr(), expected.data(), expected.size()), 0)
            << n << ", " << bits << ", " << split;
      }
    }
}

TEST(SortQuantization, IsNeverSilentByOperators) {
  for (const bool sampled : {false, true})
    for (const float odd : {std::nanf(""), INFINITY, -INFINITY}) {
      const SortQuantization settings{.sampled = sampled};
      at::Tensor x = at::randn({100});
      x[40] = odd;
      const at::Tensor payload = at::empty({settings.payload_bytes(100)}, at::kByte);
      encode_on_device(settings, x, payload);
      decode_on_device(settings, payload, x);
      EXPECT_TRUE(x.isnan().all().item<bool>());
    }
}

TEST(SortQuantization, HasHalfAStepBySampleByOperators) {
  const SortQuantization settings{.sampled = true};
  const at::Tensor x = at::randn({200'000}), back = at::empty_like(x);
  const at::Tensor payload = at::empty({settings.payload_bytes(x.numel())}, at::kByte);
  encode_on_device(settings, x, payload);
  decode_on_device(settings, payload, back);
  const Bytes bytes(static_cast<const std::byte*>(payload.const_data_ptr()),
                    static_cast<const std::byte*>(payload.const_data_ptr()) + payload.numel());
  const Floats table = table_of(bytes, 4);
  const float widest = std::max({table[1], table[3], table[5], table[7]});
  EXPECT_LE((x - back).abs().max().item<float>(), widest * 0.501f);
}

}  // namespace
}  // namespace pipewright::testing
