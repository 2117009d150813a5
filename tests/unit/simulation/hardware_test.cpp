// SPDX-License-Identifier: Apache-2.0
#include "core/simulation/hardware.h"
#include "tests/unit/source_dir.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

namespace pipewright {
namespace {

Hardware read(const std::string& text) {
  Problems problems;
  Hardware hardware = read_hardware(parse_yaml(text, "h.yaml"), problems);
  problems.throw_if_any();
  return hardware;
}

std::string complaint(const std::string& text) {
  Problems problems;
  read_hardware(parse_yaml(text, "h.yaml"), problems);
  return problems.empty() ? std::string() : problems.errors()[0].message();
}

TEST(Hardware, HasItsHostsDevicesOneAfterTheOther) {
  const Hardware hardware = read(
      "{hosts: 2, devices: {count: 3, memory_gib: 1, speed: 2, slowdown: [1, 1, 1, 1, 4, 1]},"
      " within: {latency_us: 2, bandwidth_gb_per_s: 10},"
      " between: {latency_us: 50, bandwidth_gb_per_s: 1}}");
  ASSERT_EQ(hardware.devices.size(), 6u);
  EXPECT_EQ(hardware.devices[5].memory, std::int64_t{1} << 30);
  EXPECT_EQ(hardware.time_factor(0), 0.5);
  EXPECT_EQ(hardware.time_factor(4), 2);
  EXPECT_DOUBLE_EQ(hardware.speed_of(0, 2).latency, 2e-6);
  EXPECT_EQ(hardware.speed_of(0, 2).bandwidth, 10e9);
  EXPECT_DOUBLE_EQ(hardware.speed_of(2, 3).latency, 50e-6);
  EXPECT_EQ(hardware.speed_of(2, 3).bandwidth, 1e9);
}

TEST(Hardware, RefusesMoreDevicesThanAnyoneHas) {
  EXPECT_EQ(complaint("{hosts: 65536, devices: {count: 65536}}"),
            "hardware.hosts is 65,536 and hardware.devices.count 65,536, which makes 4,294,967,296 "
            "devices; at most 65,536 are possible");
  EXPECT_EQ(complaint("{hosts: 256, devices: {count: 256}}"), "");
}

TEST(Hardware, RefusesMoreMemoryThanItCountsTheBytesOf) {
  Problems problems;
  const Hardware largest =
      read_hardware(parse_yaml("devices: {memory_gib: 1e9}", "h.yaml"), problems);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(largest.devices[0].memory, 1'000'000'000 * (std::int64_t{1} << 30));
  read_hardware(parse_yaml("devices:\n  memory_gib: 8589934592", "h.yaml"), problems);
  ASSERT_EQ(problems.errors().size(), 1u);
  EXPECT_EQ(problems.errors()[0].where(), "h.yaml:2:15");
  EXPECT_NE(problems.errors()[0].message().find("expected a number from 0 to 1,000,000,000"),
            std::string::npos)
      << problems.errors()[0].message();
}

TEST(Hardware, SharesTheNetworkCardOfAHostUnlessToldOtherwise) {
  const std::string two = "hosts: 2, devices: {count: 2}, between: {bandwidth_gb_per_s: 1";
  const Hardware shared = read("{" + two + "}}");
  ASSERT_EQ(shared.buses.size(), 4u);
  int crossed = 0;
  for (const Bus& bus : shared.buses) {
    EXPECT_EQ(bus.bandwidth, 1e9);
    EXPECT_FALSE(bus.carries(0, 1));
    if (bus.carries(1, 2)) ++crossed;
  }
  EXPECT_EQ(crossed, 2) << "out of one host and into the other";
  EXPECT_TRUE(read("{" + two + ", shared: false}}").buses.empty());
}

TEST(Hardware, SharesABusWithinAHostWhenAsked) {
  const Hardware hardware =
      read("{hosts: 2, devices: {count: 2}, within: {bandwidth_gb_per_s: 8, shared: true}}");
  ASSERT_EQ(hardware.buses.size(), 2u);
  EXPECT_TRUE(hardware.buses[0].carries(0, 1));
  EXPECT_FALSE(hardware.buses[0].carries(2, 3));
  EXPECT_FALSE(hardware.buses[0].carries(0, 2));
}

TEST(Hardware, HasSpecialLinksBothWaysUnlessToldOtherwise) {
  const Hardware hardware = read(
      "{devices: {count: 3}, within: {bandwidth_gb_per_s: 10}, links: ["
      "{from: 0, to: 1, bandwidth_gb_per_s: 50},"
      "{from: 1, to: 2, bandwidth_gb_per_s: 25, both_ways: false}]}");
  EXPECT_EQ(hardware.speed_of(1, 0).bandwidth, 50e9);
  EXPECT_EQ(hardware.speed_of(1, 2).bandwidth, 25e9);
  EXPECT_EQ(hardware.speed_of(2, 1).bandwidth, 10e9);
}

TEST(Hardware, ALinkThatIsGivenCountsBeforeTheWayBackOfAnother) {
  const std::string there = "{from: 0, to: 1, bandwidth_gb_per_s: 50}",
                    back = "{from: 1, to: 0, bandwidth_gb_per_s: 5, both_ways: false}",
                    again = "{from: 1, to: 0, bandwidth_gb_per_s: 6}";
  for (const std::string& links :
       {there + ", " + back, back + ", " + there, there + ", " + back + ", " + again}) {
    const Hardware hardware = read(concat("{devices: {count: 2}, links: [", links, "]}"));
    EXPECT_EQ(hardware.speed_of(0, 1).bandwidth, 50e9) << links;
    EXPECT_EQ(hardware.speed_of(1, 0).bandwidth, 5e9) << links;
  }
}

TEST(Hardware, KnowsHowFastItCompresses) {
  const Hardware hardware =
      read("{codecs: [{name: fp16, encode_gb_per_s: 2, decode_gb_per_s: 8}, {name: none}]}");
  ASSERT_EQ(hardware.codecs.size(), 2u);
  EXPECT_EQ(hardware.codecs[0].codec, "fp16");
  EXPECT_EQ(hardware.codecs[0].encode, 2e9);
  EXPECT_EQ(hardware.codecs[0].decode, 8e9);
  EXPECT_TRUE(std::isinf(hardware.codecs[1].encode)) << "0: it takes no time";
  EXPECT_NE(complaint("{codecs: [{encode_gb_per_s: 2}]}").find("name"), std::string::npos);
}

TEST(Hardware, KnowsARateForEachNumberFormat) {
  const DeviceRates rates =
      read(
          "{devices: {teraflops: 2, float16_teraflops: 16, bfloat16_teraflops: none,"
          " float64_teraflops: 1, memory_gb_per_s: 1}}")
          .rates;
  EXPECT_EQ(rates.flops, 2e12);
  EXPECT_EQ(rates.float16_flops, 16e12);
  EXPECT_EQ(rates.bfloat16_flops, DeviceRates::kLacksFormat);
  EXPECT_EQ(rates.float64_flops, 1e12);
  EXPECT_EQ(read("{devices: {teraflops: 2, float32_teraflops: 8}}").rates.flops, 8e12);
  EXPECT_EQ(read("{devices: {float32_teraflops: 8}}").rates.flops, 8e12);
  EXPECT_EQ(complaint("{devices: {float16_teraflops: no_such}}"),
            "hardware.devices.float16_teraflops is 'no_such'; expected a number of at least 0, or "
            "none if the device does not compute in this format");
  EXPECT_NE(complaint("{devices: {bfloat16_teraflops: -1}}").find("is -1"), std::string::npos)
      << "the value that stands for none";
}

TEST(Hardware, RefusesRatesAtWhichNothingEverEnds) {
  for (const char* rate :
       {"devices: {teraflops", "devices: {float16_teraflops", "devices: {memory_gb_per_s",
        "within: {bandwidth_gb_per_s", "between: {bandwidth_gb_per_s",
        "codecs: [{name: fp16, encode_gb_per_s"}) {
    const std::string text = std::string("{") + rate + ": 5e-324}" + (rate[0] == 'c' ? "]}" : "}");
    EXPECT_NE(complaint(text).find("is 5e-324; expected 0, or at least 1e-09"), std::string::npos)
        << text << ": " << complaint(text);
  }
  EXPECT_EQ(complaint("{within: {bandwidth_gb_per_s: 1e-9}}"), "");
}

TEST(Hardware, RefusesRatesThatCountSingleOperationsOrBytes) {
  EXPECT_EQ(complaint("{devices: {teraflops: 15.7e12}}"),
            "hardware.devices.teraflops is 1.57e+13; expected TFLOPS, such as 15.7, and at most "
            "1,000,000");
  EXPECT_EQ(complaint("{devices: {float16_teraflops: 125e12}}"),
            "hardware.devices.float16_teraflops is 1.25e+14; expected TFLOPS, such as 15.7, and at "
            "most 1,000,000");
  EXPECT_EQ(complaint("{devices: {memory_gb_per_s: 900e9}}"),
            "hardware.devices.memory_gb_per_s is 9e+11; expected GB/s, such as 900, and at most "
            "1,000,000");
  for (const char* link : {"within", "between", "host"})
    EXPECT_NE(complaint(concat("{", link, ": {bandwidth_gb_per_s: 25e6}}")).find("expected GB/s"),
              std::string::npos)
        << link;
  EXPECT_EQ(complaint("{devices: {teraflops: 1e6, memory_gb_per_s: 1e6}}"), "");
}

TEST(Hardware, OfNoWordsIsOneDeviceWithFreeTransfers) {
  const Hardware hardware = read("{}");
  EXPECT_EQ(hardware.devices.size(), 1u);
  EXPECT_TRUE(std::isinf(hardware.within.bandwidth));
  EXPECT_TRUE(hardware.buses.empty());
}

TEST(Hardware, TakesMessagesInAnyOrderUnlessToldOtherwise) {
  EXPECT_EQ(read("{}").receives, Receives::AnyOrder);
  EXPECT_EQ(read("{copies: {receives: any_order}}").receives, Receives::AnyOrder);
  EXPECT_EQ(read("{copies: {receives: in_order}}").receives, Receives::InOrder);
  EXPECT_EQ(read("{copies: {receives: rendezvous}}").receives, Receives::Rendezvous);
  EXPECT_EQ(read("{copies: {receives: program_order}}").receives, Receives::ProgramOrder);
  EXPECT_NE(complaint("{copies: {receives: eager}}").find("expected any_order, in_order"),
            std::string::npos)
      << complaint("{copies: {receives: eager}}");
}

TEST(Hardware, HasNoBusesAndNoSendersThatWaitWhereAWireServesItsReceiver) {
  const std::string wire = "copies: {receives: program_order";
  EXPECT_NE(complaint("{hosts: 2, between: {bandwidth_gb_per_s: 1}, " + wire + "}}")
                .find("expected no buses, and between.shared: false"),
            std::string::npos);
  for (const char* more : {"engines: 1", "block_compute: true"})
    EXPECT_NE(complaint("{" + wire + ", " + more + "}}")
                  .find("expected copies.engines: 0 and copies.block_compute: false"),
              std::string::npos);
}

TEST(Hardware, SaysWhatIsWrong) {
  EXPECT_NE(complaint("{devices: {count: 0}}").find("count"), std::string::npos);
  EXPECT_NE(complaint("{devices: {count: 2, slowdown: [1]}}")
                .find("slowdown has 1 number for 2 devices; expected one per device"),
            std::string::npos);
  EXPECT_NE(complaint("{buses: [{devices: [1]}]}").find("buses[0].devices"), std::string::npos);
  EXPECT_NE(complaint("{links: [{form: 0}]}").find("did you mean 'from'"), std::string::npos);
  EXPECT_NE(complaint("{links: 3}").find("expected a list"), std::string::npos);
  EXPECT_NE(complaint("{withing: {}}").find("did you mean 'within'"), std::string::npos);
}

/// Two hosts of two devices for two replicas of two stages: worker 1 is stage 1 of replica 0, and
/// worker 2 stage 0 of replica 1.
TEST(Hardware, FillsHostsWithReplicasOfAStageWhereItSaysSo) {
  const std::string machine =
      "hosts: 2, devices: {count: 2, slowdown: [1, 2, 3, 4]}, within: {bandwidth_gb_per_s: 10}, "
      "between: {bandwidth_gb_per_s: 1}, links: [{from: 0, to: 3, bandwidth_gb_per_s: 5}]";
  const Hardware plain = read("{" + machine + "}");
  EXPECT_EQ(laid_out(plain, 4, 2).speed_of(0, 1).bandwidth, 10e9) << "a pipeline fills a host";
  EXPECT_EQ(laid_out(plain, 4, 2).speed_of(0, 2).bandwidth, 1e9);
  const Hardware turned = read("{order: [replica, pipeline], " + machine + "}");
  const Hardware laid = laid_out(turned, 4, 2);
  EXPECT_EQ(laid.speed_of(0, 1).bandwidth, 1e9) << "between stages";
  EXPECT_EQ(laid.speed_of(0, 2).bandwidth, 10e9) << "between replicas of stage 0";
  EXPECT_EQ(laid.speed_of(1, 3).bandwidth, 10e9) << "between replicas of stage 1";
  EXPECT_EQ(laid.speed_of(0, 3).bandwidth, 5e9) << "device 3 is that of worker 3 in both orders";
  std::vector<double> slowdowns;
  for (const Device& device : laid.devices) slowdowns.push_back(device.slowdown);
  EXPECT_EQ(slowdowns, (std::vector<double>{1, 3, 2, 4}));
  std::vector<std::vector<int>> leaving;  // the workers of each host's network card
  for (const Bus& bus : laid.buses)
    if (bus.crossing == Bus::Crossing::Leaving) leaving.push_back(bus.devices);
  EXPECT_EQ(leaving, (std::vector<std::vector<int>>{{0, 2}, {1, 3}}));
  EXPECT_EQ(laid_out(turned, 4, 1).speed_of(0, 1).bandwidth, 10e9) << "there are no replicas";
  EXPECT_EQ(complaint("{order: [replica]}"),
            "hardware.order is a list; expected [pipeline, replica] or [replica, pipeline]");
}

TEST(Hardware, OfEveryPresetReadsWithoutComplaint) {
  int presets = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(source_dir() / "experiments/hardware")) {
    if (file.path().extension() != ".yaml") continue;
    ++presets;
    Problems problems;
    const Hardware hardware = read_hardware(load_yaml(file.path()), problems);
    EXPECT_NO_THROW(problems.throw_if_any()) << file.path();
    EXPECT_GT(hardware.devices.size(), 1u) << file.path();
    EXPECT_TRUE(std::isfinite(hardware.speed_of(0, 1).bandwidth)) << file.path();
    EXPECT_GT(hardware.speed_of(0, 1).latency, 0) << file.path();
    EXPECT_GT(hardware.devices[0].memory, 0) << file.path();
  }
  EXPECT_GE(presets, 6);
}

TEST(Hardware, KnowsTheLinkToItsHostWhereItsBandwidthIsGiven) {
  EXPECT_FALSE(read("{}").host.has_value());
  EXPECT_FALSE(read("{host: {latency_us: 5}}").host.has_value());
  const Hardware hardware = read("{host: {latency_us: 5, bandwidth_gb_per_s: 12}}");
  ASSERT_TRUE(hardware.host.has_value());
  EXPECT_DOUBLE_EQ(hardware.host->latency, 5e-6);
  EXPECT_EQ(hardware.host->bandwidth, 12e9);
  EXPECT_NE(complaint("{host: {bandwidth_gb_per_s: -1}}"), "");
  EXPECT_EQ(ideal_hardware(1).host->bandwidth, std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace pipewright
