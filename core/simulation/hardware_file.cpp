// SPDX-License-Identifier: Apache-2.0
// Reads a description of hardware from YAML. Units are in the names of the options, as data sheets
// have them.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/as_size.h"
#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/config/options.h"
#include "core/simulation/hardware.h"

namespace pipewright {
namespace {

constexpr double kGigabyte = 1e9;
constexpr double kTera = 1e12;
constexpr double kMicrosecond = 1e-6;
constexpr Range kAboveZero{1e-6, 1e9};
constexpr Range kLatencies{0, 1e12};
constexpr Range kMemoryInGiB{0, 1e9};        // its bytes are counted in 63 bits, 2^33 GiB
constexpr std::size_t kMostDevices = 65536;  // on all hosts together
constexpr Range kSomeDevices{1, kMostDevices};

/// 0, or a rate at which something ends: with less than this a simulation would take for ever.
constexpr double kLeastRate = 1e-9;
/// No device comes near to an exaflop a second or 10^15 bytes; what is beyond counts single
/// operations or bytes.
constexpr double kMostRate = 1e6;

double checked_rate(Options& options, const std::string& name, double read) {
  if (read > kMostRate) {
    const bool operations = name.ends_with("teraflops");
    options.problem(name, concat("is ", read, "; expected ",
                                 operations ? "TFLOPS, such as 15.7" : "GB/s, such as 900",
                                 ", and at most ", grouped_text(kMostRate)));
    return 0;
  }
  if (read <= 0 || read >= kLeastRate) return read;
  options.problem(name, concat("is ", read, "; expected 0, or at least ", kLeastRate));
  return 0;
}

double rate(Options& options, const std::string& name, const std::string& help) {
  return checked_rate(options, name, options.number(name, 0, help, kNotNegative));
}

/// A rate of which 0 means that there is no limit.
double limit(Options& options, const std::string& name, const std::string& help) {
  const double read = rate(options, name, help);
  return read > 0 ? read * kGigabyte : std::numeric_limits<double>::infinity();
}

double bandwidth(Options& options, const std::string& help) {
  return limit(options, "bandwidth_gb_per_s", help);
}

/// The peak of one number format, in operations per second.
double format_flops(Options& devices, const std::string& name, const std::string& help) {
  const Value read = devices.any(name, Value::of(0), help);
  if (read.refused) return 0;
  if (read.is(Value::Kind::Text) && read.text == "none") return DeviceRates::kLacksFormat;
  const double number = read.is(Value::Kind::Integer)  ? static_cast<double>(read.integer)
                        : read.is(Value::Kind::Number) ? read.number
                                                       : kNoNumber;
  if (number >= 0 && std::isfinite(number)) return checked_rate(devices, name, number) * kTera;
  devices.problem(name, concat("is ", read.shown(),
                               "; expected a number of at least 0, or none if the device does not "
                               "compute in this format"));
  return 0;
}

LinkSpeed link_speed(Options& options) {
  return {
      options.number("latency_us", 0, "Latency of a message in microseconds.", kLatencies) *
          kMicrosecond,
      bandwidth(options, "Bandwidth in 10^9 bytes per second, in each direction; 0 = unlimited."),
      options.flag("latency_occupies", false,
                   "Whether a message begins only when the one before it has arrived.")};
}

class Reader {
 public:
  Reader(const Value& document, Problems& problems)
      : options_(&document, "hardware", problems), problems_(problems) {}

  Hardware read() {
    hardware_.name = options_.text("name", "unnamed", "Name of the hardware in results.");
    hosts_ = static_cast<int>(options_.integer("hosts", 1, "Number of machines.", kSomeDevices));
    read_devices();
    hardware_.within = read_tier("within", "Link between two devices of one host.", false);
    hardware_.between = read_tier("between", "Link between devices of two hosts.", true);
    read_host();
    read_each("links",
              "Links that differ from these, each with from, to, latency_us, bandwidth_gb_per_s.",
              [this](Options& link) { read_link(link); });
    add_ways_back();
    read_each("buses",
              "Buses, whose bandwidth several links share, each with name, devices, crossing, "
              "bandwidth_gb_per_s.",
              [this](Options& bus) { read_bus(bus); });
    read_each("codecs",
              "Speed of a codec on a device of speed 1, each with name, "
              "encode_gb_per_s, decode_gb_per_s, in 10^9 uncompressed bytes a second.",
              [this](Options& codec) { read_codec(codec); });
    read_copies();
    read_order();
    read_jitter();
    options_.finish();
    return std::move(hardware_);
  }

  const std::vector<OptionInfo>& declared() const { return options_.declared(); }

 private:
  int count() const { return static_cast<int>(hardware_.devices.size()); }
  Range device_range() const { return {0, static_cast<double>(count() - 1)}; }

  void read_devices() {
    Options devices = options_.section("devices", "The devices of each host.");
    const auto per_host =
        static_cast<int>(devices.integer("count", 1, "Number of devices of a host.", kSomeDevices));
    hardware_.device_name = devices.text("name", "", "Name of the device model, for reports.");
    const double speed = devices.number(
        "speed", 1, "How many times as fast as the device of the profile.", kAboveZero);
    const double memory = devices.number(
        "memory_gib", 0, "Memory of one device in GiB; 0 = not known.", kMemoryInGiB);
    read_rates(devices);
    hardware_.overlap = devices.number(
        "overlap", 0,
        "How much of the shorter pass takes no time where a schedule runs a forward beside a "
        "backward: 0 = they take as long as one after the other, 1 = as long as the longer one.",
        {0, 1});
    const auto speeds = devices.numbers(
        "speeds", {}, "Speed of each device of all hosts, where they differ; [] = all as `speed`.",
        kAboveZero);
    const auto slowdowns = devices.numbers(
        "slowdown", {},
        "Stragglers: the factor by which each device of all hosts takes longer; [] = 1 for all.",
        kAboveZero);
    devices.finish();
    if (as_size(per_host) * as_size(hosts_) > kMostDevices) {
      problems_.add(options_.where("hosts"),
                    concat("hardware.hosts is ", grouped_text(hosts_),
                           " and hardware.devices.count ", grouped_text(per_host), ", which makes ",
                           counted(as_size(per_host) * as_size(hosts_), "device"), "; at most ",
                           grouped_text(kMostDevices), " are possible"));
      hosts_ = 1;
    }
    hardware_.devices_per_host = per_host;
    hardware_.devices.assign(as_size(per_host) * as_size(hosts_),
                             {.speed = speed, .memory = std::llround(memory * kGiB)});
    auto set = [&](const char* name, const std::vector<double>& values, double Device::*member) {
      if (!values.empty() && values.size() != hardware_.devices.size())
        problems_.add(
            options_.where("devices"),
            concat("hardware.devices.", name, " has ", counted(values.size(), "number"), " for ",
                   counted(hardware_.devices.size(), "device"), "; expected one per device"));
      for (std::size_t i = 0; i < std::min(values.size(), hardware_.devices.size()); ++i)
        hardware_.devices[i].*member = values[i];
    };
    set("speeds", speeds, &Device::speed);
    set("slowdown", slowdowns, &Device::slowdown);
  }

  void read_rates(Options& devices) {
    DeviceRates& rates = hardware_.rates;
    const double all = rate(devices, "teraflops",
                            "10^12 operations per second by the data sheet in float32, for models "
                            "without a profile; 0 = not known.") *
                       kTera;
    const double own = rate(devices, "float32_teraflops",
                            "The same, before `teraflops`, where matrices in float32 have a rate "
                            "of their own, such as TF32's; 0 = teraflops.") *
                       kTera;
    rates.flops = own > 0 ? own : all;
    rates.float16_flops = format_flops(
        devices, "float16_teraflops",
        "The same for layers in float16 (train.precision); none = the device does not compute in "
        "it; 0 = as in bfloat16 or, if that has no rate, in float32.");
    rates.bfloat16_flops = format_flops(devices, "bfloat16_teraflops",
                                        "The same for layers in bfloat16; 0 = as in float32.");
    rates.float64_flops = format_flops(devices, "float64_teraflops",
                                       "The same for layers in float64; 0 = as in float32.");
    rates.bandwidth = rate(devices, "memory_gb_per_s",
                           "Bandwidth of its memory in 10^9 bytes per second; 0 = not known.") *
                      kGigabyte;
    rates.efficiency = devices.number("efficiency", 0.5,
                                      "Fraction of the peak that layers reach where memory does "
                                      "not hold them up.",
                                      {1e-3, 1});
    rates.launch = devices.number("launch_us", 0,
                                  "Microseconds that the host takes to start one operator on the "
                                  "device, while that computes the ones before, for models without "
                                  "a profile; 0 = no time, as on a CPU.",
                                  {0, 1e9}) *
                   kMicrosecond;
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

  void read_host() {
    Options host = options_.section(
        "host", "Link between a device and the memory of its host, for schedules that offload.");
    const double latency =
        host.number("latency_us", 0, "Latency of a copy in microseconds.", kLatencies);
    const double bandwidth = rate(host, "bandwidth_gb_per_s",
                                  "Bandwidth in 10^9 bytes per second, in each direction; 0 = not "
                                  "known: then schedules that offload are refused.");
    host.finish();
    if (bandwidth > 0)
      hardware_.host =
          LinkSpeed{.latency = latency * kMicrosecond, .bandwidth = bandwidth * kGigabyte};
  }

  /// Calls `read` with the options of each mapping in a list. It must finish() them.
  template <class Read>
  void read_each(const std::string& name, const std::string& help, const Read& read) {
    const Value list = options_.any(name, Value::sequence(), help);
    if (list.refused) return;
    if (!list.is(Value::Kind::Sequence)) {
      options_.problem(name,
                       concat("is ", list.shown(), "; expected a list of mappings of options"));
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
    special.from =
        static_cast<int>(link.integer("from", 0, "Number of the sending device.", device_range()));
    special.to =
        static_cast<int>(link.integer("to", 0, "Number of the receiving device.", device_range()));
    const bool both = link.flag("both_ways", true, "Whether the way back is like this one.");
    special.speed = link_speed(link);
    link.finish();
    if (special.from == special.to && problems_.errors().size() == faults)
      link.problem("to", concat("is device ", special.to,
                                ", where the link begins; expected another device"));
    hardware_.links.push_back(special);
    std::swap(special.from, special.to);
    if (both) ways_back_.push_back(special);
  }

  /// Of links with the same ends the first counts, so those that are only a way back come last.
  void add_ways_back() {
    hardware_.links.insert(hardware_.links.end(), ways_back_.begin(), ways_back_.end());
  }

  void read_bus(Options& options) {
    Bus bus;
    bus.name = options.text("name", concat("bus ", hardware_.buses.size()), "Name of the bus.");
    for (const std::int64_t device :
         options.integers("devices", {}, "Numbers of the devices whose transfers cross the bus.",
                          device_range()))
      bus.devices.push_back(static_cast<int>(device));
    std::ranges::sort(bus.devices);
    const std::string crossing = options.choice(
        "crossing", {"inside", "leaving", "entering", "any"}, "any",
        "Transfers that cross it: between its devices (inside), out of them (leaving), into them "
        "(entering), or all of these (any).");
    bus.crossing = crossing == "inside"     ? Bus::Crossing::Inside
                   : crossing == "leaving"  ? Bus::Crossing::Leaving
                   : crossing == "entering" ? Bus::Crossing::Entering
                                            : Bus::Crossing::Any;
    bus.bandwidth = bandwidth(options, "Bandwidth in 10^9 bytes per second; 0 = unlimited.");
    options.finish();
    hardware_.buses.push_back(std::move(bus));
  }

  void read_codec(Options& options) {
    CodecSpeed speed;
    speed.codec = options.required_text(
        "name", "The codec, as in pipeline.compression or gradient_compression.");
    const std::string help = "10^9 uncompressed bytes per second; 0 = takes no time.";
    speed.encode = limit(options, "encode_gb_per_s", help);
    speed.decode = limit(options, "decode_gb_per_s", help);
    options.finish();
    hardware_.codecs.push_back(std::move(speed));
  }

  void read_copies() {
    Options copies = options_.section("copies", "How devices send and receive messages.");
    hardware_.copy_engines = static_cast<int>(copies.integer(
        "engines", 0, "Number of transfers that a device makes at once; 0 = any number.",
        {0, 1024}));
    hardware_.sending_blocks =
        copies.flag("block_compute", false, "Whether a device stops computing while it sends.");
    const std::string receives = copies.choice(
        "receives", {"any_order", "in_order", "rendezvous", "program_order"}, "any_order",
        "Which message of a link a device takes: any that is there (any_order); the one sent first "
        "(in_order), so that a receive of another one waits; that one, which moreover begins to "
        "cross when the device has come to its receive, as NCCL's do (rendezvous). With "
        "program_order all links into a device are one wire, which carries messages in the order "
        "in which the device's program takes them.");
    hardware_.receives = receives == "in_order"     ? Receives::InOrder
                         : receives == "rendezvous" ? Receives::Rendezvous
                                                    : Receives::AnyOrder;
    if (receives == "program_order") read_program_order(copies);
    copies.finish();
  }

  void read_program_order(Options& copies) {
    hardware_.receives = Receives::ProgramOrder;
    if (!hardware_.buses.empty())
      copies.problem("receives",
                     "is program_order, where the links into a device are one wire that shares "
                     "nothing; expected no buses, and between.shared: false");
    if (hardware_.copy_engines > 0 || hardware_.sending_blocks)
      copies.problem("receives",
                     "is program_order, where receivers alone decide when messages cross; expected "
                     "copies.engines: 0 and copies.block_compute: false");
  }

  void read_order() {
    const Value order = options_.any(
        "order", Value::sequence({Value::of("pipeline"), Value::of("replica")}),
        "What fills a host first: [pipeline, replica] = the stages of a pipeline, so that replicas "
        "sum gradients between hosts; [replica, pipeline] = the replicas of a stage, so that "
        "stages pass activations between hosts.");
    if (order.refused) return;
    std::vector<std::string> axes;
    for (const Value& axis : order.items) axes.push_back(axis.text);
    hardware_.replicas_first = axes == std::vector<std::string>{"replica", "pipeline"};
    if (!hardware_.replicas_first && axes != std::vector<std::string>{"pipeline", "replica"})
      options_.problem("order", concat("is ", order.shown(),
                                       "; expected [pipeline, replica] or [replica, pipeline]"));
  }

  void read_jitter() {
    Options jitter = options_.section("jitter", "Random variation of the times.");
    hardware_.jitter = jitter.number(
        "compute", 0, "Relative standard deviation of compute times, which are log-normal.",
        {0, 10});
    hardware_.seed = static_cast<std::uint64_t>(jitter.integer(
        "seed", 1, "Seed of the random numbers; equal seeds give equal times.", kNotNegative));
    jitter.finish();
  }

  Options options_;
  Problems& problems_;
  Hardware hardware_;
  std::vector<SpecialLink> ways_back_;  ///< of links that are so both ways
  int hosts_ = 1;
};

}  // namespace

Hardware read_hardware(const Value& document, Problems& problems) {
  return Reader(document, problems).read();
}

std::vector<OptionInfo> hardware_options() {
  const Value nothing = Value::mapping();
  Problems unheard;
  Reader reader(nothing, unheard);
  reader.read();
  return reader.declared();
}

}  // namespace pipewright
