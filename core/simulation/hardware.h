/// What a schedule is simulated on: devices, links between them, and what links share.
///
/// Sending b bytes over a link takes b/β, then the message arrives α later. A link carries one
/// message at a time, in the order in which they were sent; a bus is crossed by several links and
/// serves one message at a time too, for b/β of its own, in the order in which messages begin.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/config/value.h"
#include "core/cost/roofline.h"

namespace pipewright {

struct Device {
  double speed = 1;         ///< of the profiled device's; larger is faster
  double slowdown = 1;      ///< of a straggler: factor of its times
  std::int64_t memory = 0;  ///< bytes; 0 = not known
};

struct LinkSpeed {
  double latency = 0;                                          ///< α, s
  double bandwidth = std::numeric_limits<double>::infinity();  ///< β, bytes/s
};

/// A link unlike the others of its kind.
struct SpecialLink {
  int from = 0, to = 0;  ///< devices
  LinkSpeed speed;
};

struct Bus {
  /// Of which transfers: both ends among its devices; only the sender; only the receiver; any end.
  enum class Crossing : std::uint8_t { Inside, Leaving, Entering, Any };
  std::string name;
  std::vector<int> devices;  ///< ascending
  Crossing crossing = Crossing::Any;
  double bandwidth = std::numeric_limits<double>::infinity();

  bool carries(int from, int to) const;
};

/// How fast a device of speed 1 encodes and decodes what crosses edges, or with powersgd gradients
/// that replicas sum: uncompressed bytes/s.
struct CodecSpeed {
  std::string codec;
  double encode = std::numeric_limits<double>::infinity();
  double decode = std::numeric_limits<double>::infinity();
};

struct Hardware {
  std::string name = "ideal";
  std::string device_name;
  DeviceRates rates;            ///< of a device of speed 1; 0 = not known
  std::vector<Device> devices;  ///< worker w computes on device w
  int devices_per_host = 0;     ///< 0: one host has them all
  LinkSpeed within, between;    ///< hosts
  std::vector<SpecialLink> links;
  std::vector<Bus> buses;
  std::vector<CodecSpeed> codecs;  ///< those it is known of
  int copy_engines = 0;            ///< transfers a device can send at once, in order; 0 = unlimited
  bool sending_blocks = false;     ///< a device computes nothing while it sends
  double jitter = 0;               ///< standard deviation of compute times, relative; log-normal
  std::uint64_t seed = 1;

  int host_of(int device) const { return devices_per_host == 0 ? 0 : device / devices_per_host; }
  LinkSpeed speed_of(int from, int to) const;
  /// Factor of a profiled time on that device.
  double time_factor(int device) const;
};

/// Equal devices whose transfers take no time.
Hardware ideal_hardware(int devices);

/// Reads a description as in experiments/hardware; what is wrong goes to `problems`.
Hardware read_hardware(const Value& document, Problems& problems);

}  // namespace pipewright
