// SPDX-License-Identifier: Apache-2.0
// Reads a description of hardware from YAML. Units are in the names of the options, as data sheets
// have them.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/as_size.h"
#include "core/base/text.h"
#include "core/config/options.h"
#include "core/simulation/hardware.h"

namespace pipewright {
namespace {

constexpr double kGigabyte = 1e9;
constexpr double kTera = 1e12;
constexpr double kMicrosecond = 1e-6;
constexpr Range kAboveZero{1e-6, 1e9};
constexpr Range kMemoryInGiB{0, 1e9};        // its bytes are counted in 63 bits, 2^33 GiB
constexpr std::size_t kMostDevices = 65536;  // on all hosts together
constexpr Range kSomeDevices{1, kMostDevices};

double bandwidth(Options& options, const std::string& help) {
  const double read = options.number("bandwidth_gb_per_s", 0, help, kNotNegative);
  return read > 0 ? read * kGigabyte : std::numeric_limits<double>::infinity();
}

LinkSpeed link_speed(Options& options) {
  return {options.number("latency_us", 0, "Latency of a message, in microseconds.", kNotNegative) *
              kMicrosecond,
          bandwidth(options, "Bandwidth in 10^9 bytes a second, each direction; 0 = unlimited.")};
}

class Reader {
 public:
  Reader(const Value& document, Problems& problems)
      : options_(&document, "hardware", problems), problems_(problems) {}

  Hardware read() {
    hardware_.name = options_.text("name", "unnamed", "What the machine is called.");
    hosts_ = static_cast<int>(options_.integer("hosts", 1, "Machines.", kSomeDevices));
    read_devices();
    hardware_.within = read_tier("within", "Between two devices of one host.", false);
    hardware_.between = read_tier("between", "Between devices of two hosts.", true);
    read_each("links", "Links unlike the others: from, to, latency_us, bandwidth_gb_per_s.",
              [this](Options& link) { read_link(link); });
    read_each("buses", "What several links share: name, devices, crossing, bandwidth_gb_per_s.",
              [this](Options& bus) { read_bus(bus); });
    read_each("codecs",
              "How fast a device of speed 1 compresses what crosses edges: name, "
              "encode_gb_per_s, decode_gb_per_s, in 10^9 uncompressed bytes a second.",
              [this](Options& codec) { read_codec(codec); });
    read_copies();
    read_jitter();
    options_.finish();
    return std::move(hardware_);
  }

 private:
  int count() const { return static_cast<int>(hardware_.devices.size()); }
  Range device_range() const { return {0, static_cast<double>(count() - 1)}; }

  void read_devices() {
    Options devices = options_.section("devices", "The devices of each host.");
    const auto each =
        static_cast<int>(devices.integer("count", 1, "Devices of a host.", kSomeDevices));
    hardware_.device_name = devices.text("name", "", "What one is called.");
    const double speed = devices.number(
        "speed", 1, "How many times as fast as the device of the profile.", kAboveZero);
    const double memory =
        devices.number("memory_gib", 0, "Memory of one in GiB; 0 = not known.", kMemoryInGiB);
    read_rates(devices);
    const auto speeds = devices.numbers(
        "speeds", {}, "Of each device of all hosts, where they differ.", kAboveZero);
    const auto slowdowns = devices.numbers(
        "slowdown", {}, "Stragglers: factor of the times of each device of all hosts.", kAboveZero);
    devices.finish();
    if (as_size(each) * as_size(hosts_) > kMostDevices) {
      problems_.add(options_.where("hosts"),
                    concat("hardware.hosts is ", hosts_, " and devices.count ", each, ": ",
                           as_size(each) * as_size(hosts_), " devices; at most ", kMostDevices,
                           " are possible"));
      hosts_ = 1;
    }
    hardware_.devices_per_host = each;
    hardware_.devices.assign(as_size(each) * as_size(hosts_),
                             {.speed = speed, .memory = std::llround(memory * kGiB)});
    auto set = [&](const char* name, const std::vector<double>& values, double Device::*member) {
      if (!values.empty() && values.size() != hardware_.devices.size())
        options_.problem("devices", concat(name, " has ", values.size(), " numbers for ",
                                           hardware_.devices.size(), " devices"));
      for (std::size_t i = 0; i < std::min(values.size(), hardware_.devices.size()); ++i)
        hardware_.devices[i].*member = values[i];
    };
    set("speeds", speeds, &Device::speed);
    set("slowdown", slowdowns, &Device::slowdown);
  }

  void read_rates(Options& devices) {
    DeviceRates& rates = hardware_.rates;
    rates.flops = devices.number("teraflops", 0,
                                 "10^12 operations a second by the data sheet, for models without "
                                 "a profile; 0 = not known.",
                                 kNotNegative) *
                  kTera;
    rates.bandwidth =
        devices.number("memory_gb_per_s", 0, "10^9 bytes a second of its memory; 0 = not known.",
                       kNotNegative) *
        kGigabyte;
    rates.efficiency = devices.number("efficiency", 0.5,
                                      "Part of `teraflops` that layers reach where memory does "
                                      "not hold them up.",
                                      {1e-3, 1});
  }

  LinkSpeed read_tier(const std::string& name, const std::string& help, bool network) {
    Options tier = options_.section(name, help);
    const LinkSpeed speed = link_speed(tier);
    const bool shared =
        tier.flag("shared", network,
                  network ? "All transfers that leave or enter a host share its network card."
                          : "All transfers within a host share this bandwidth.");
    tier.finish();
    if (!shared || !std::isfinite(speed.bandwidth)) return speed;
    for (int host = 0; host < hosts_; ++host) {
      if (network && hosts_ == 1) break;
      std::vector<int> devices(as_size(hardware_.devices_per_host));
      std::iota(devices.begin(), devices.end(), host * hardware_.devices_per_host);
      auto add = [&](const std::string& what, Bus::Crossing crossing) {
        hardware_.buses.push_back(
            {concat("host ", host, what), devices, crossing, speed.bandwidth});
      };
      if (network) {
        add(", out", Bus::Crossing::Leaving);
        add(", in", Bus::Crossing::Entering);
      } else {
        add("", Bus::Crossing::Inside);
      }
    }
    return speed;
  }

  /// Calls `read` with the options of each mapping in a list. It must finish() them.
  template <class Read>
  void read_each(const std::string& name, const std::string& help, const Read& read) {
    const Value list = options_.any(name, Value::sequence(), help);
    if (list.refused) return;
    if (!list.is(Value::Kind::Sequence)) {
      options_.problem(name, concat("is ", list.shown(), "; expected a list of mappings"));
      return;
    }
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      Options one(&list.items[i], concat("hardware.", name, "[", i, "]"), problems_);
      read(one);
    }
  }

  void read_link(Options& link) {
    SpecialLink special;
    const std::size_t faults = problems_.errors().size();
    special.from = static_cast<int>(link.integer("from", 0, "The sender.", device_range()));
    special.to = static_cast<int>(link.integer("to", 0, "The receiver.", device_range()));
    const bool both = link.flag("both_ways", true, "The way back is like it.");
    special.speed = link_speed(link);
    link.finish();
    if (special.from == special.to && problems_.errors().size() == faults)
      link.problem("to", concat("is device ", special.to,
                                ", where the link begins; expected another device"));
    hardware_.links.push_back(special);
    std::swap(special.from, special.to);
    if (both) hardware_.links.push_back(special);
  }

  void read_bus(Options& options) {
    Bus bus;
    bus.name = options.text("name", concat("bus ", hardware_.buses.size()), "What it is called.");
    for (const std::int64_t device :
         options.integers("devices", {}, "Devices whose transfers cross it.", device_range()))
      bus.devices.push_back(static_cast<int>(device));
    std::ranges::sort(bus.devices);
    const std::string crossing =
        options.choice("crossing", {"inside", "leaving", "entering", "any"}, "any",
                       "Transfers between its devices, out of them, into them, or all of these.");
    bus.crossing = crossing == "inside"     ? Bus::Crossing::Inside
                   : crossing == "leaving"  ? Bus::Crossing::Leaving
                   : crossing == "entering" ? Bus::Crossing::Entering
                                            : Bus::Crossing::Any;
    bus.bandwidth = bandwidth(options, "Bandwidth in 10^9 bytes a second; 0 = unlimited.");
    options.finish();
    hardware_.buses.push_back(std::move(bus));
  }

  void read_codec(Options& options) {
    CodecSpeed speed;
    speed.codec = options.required_text(
        "name", "The codec, as in pipeline.compression or gradient_compression.");
    const auto rate = [&](const char* name) {
      const double read = options.number(name, 0, "0 = takes no time.", kNotNegative);
      return read > 0 ? read * kGigabyte : std::numeric_limits<double>::infinity();
    };
    speed.encode = rate("encode_gb_per_s");
    speed.decode = rate("decode_gb_per_s");
    options.finish();
    hardware_.codecs.push_back(std::move(speed));
  }

  void read_copies() {
    Options copies = options_.section("copies", "How a device sends.");
    hardware_.copy_engines = static_cast<int>(
        copies.integer("engines", 0, "Transfers at once; 0 = any number.", {0, 1024}));
    hardware_.sending_blocks =
        copies.flag("block_compute", false, "A device computes nothing while it sends.");
    copies.finish();
  }

  void read_jitter() {
    Options jitter = options_.section("jitter", "How much times vary.");
    hardware_.jitter = jitter.number(
        "compute", 0, "Standard deviation of compute times, relative; log-normal.", {0, 10});
    hardware_.seed = static_cast<std::uint64_t>(
        jitter.integer("seed", 1, "Equal seeds give equal times.", kNotNegative));
    jitter.finish();
  }

  Options options_;
  Problems& problems_;
  Hardware hardware_;
  int hosts_ = 1;
};

}  // namespace

Hardware read_hardware(const Value& document, Problems& problems) {
  return Reader(document, problems).read();
}

}  // namespace pipewright
