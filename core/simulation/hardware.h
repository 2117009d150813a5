// SPDX-License-Identifier: Apache-2.0
/// The hardware on which a schedule is simulated: devices, links between them, and buses that links
/// share.
///
/// Sending b bytes over a link of bandwidth β and latency α takes b/β; the message arrives α after
/// that, and may keep the link occupied until then. A link carries one message at a time, in the
/// order in which they were sent. A bus is
/// crossed by several links and serves one message at a time too, for b/β of its own bandwidth, in
/// the order in which the messages begin. Of several messages on a link the receiver takes any one,
/// unless the hardware says that it takes them in the order in which they were sent.
///
/// A device has a link to the memory of its host, with a way of its own in either direction, which
/// nothing else uses. It is busy with b bytes for b/β, and they are there α later.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/config/options.h"
#include "core/config/value.h"
#include "core/cost/roofline.h"

namespace pipewright {

struct Device {
  double speed = 1;         ///< relative to the profiled device; larger is faster
  double slowdown = 1;      ///< factor on the times of a straggler
  std::int64_t memory = 0;  ///< bytes; 0: not known
};

struct LinkSpeed {
  double latency = 0;                                          ///< α, s
  double bandwidth = std::numeric_limits<double>::infinity();  ///< β, bytes/s
  bool latency_occupies = false;  ///< whether the next message begins only when one has arrived
};

/// A link with a speed of its own.
struct SpecialLink {
  int from = 0, to = 0;  ///< devices
  LinkSpeed speed;
};

struct Bus {
  /// The transfers that cross the bus: those with both ends among its devices; only the sender;
  /// only the receiver; any end.
  enum class Crossing : std::uint8_t { Inside, Leaving, Entering, Any };
  std::string name;
  std::vector<int> devices;  ///< ascending
  Crossing crossing = Crossing::Any;
  double bandwidth = std::numeric_limits<double>::infinity();

  bool carries(int from, int to) const;
};

/// The message of a link that a device can take. A device posts one receive at a time: when it
/// reaches the action that needs the message.
enum class Receives : std::uint8_t {
  AnyOrder,    ///< whichever it wants: those before it wait at the device
  InOrder,     ///< only the first that was sent and not yet taken; it arrives while nobody waits
  Rendezvous,  ///< only that one, and it begins to cross when its receive has been posted
  /// The one that its program takes next. All links into a device are one wire, which carries
  /// messages in the order of the program, each as soon as it was sent, whenever it is received.
  ProgramOrder
};

/// How fast a device of speed 1 encodes and decodes tensors that cross edges, or with powersgd
/// gradients that replicas sum; in uncompressed bytes/s.
struct CodecSpeed {
  std::string codec;
  double encode = std::numeric_limits<double>::infinity();
  double decode = std::numeric_limits<double>::infinity();
};

struct Hardware {
  std::string name = "ideal";
  std::string device_name;
  DeviceRates rates;              ///< rates of a device of speed 1; 0: not known
  std::vector<Device> devices;    ///< worker w computes on device w, once they are laid_out()
  int devices_per_host = 0;       ///< 0: one host has them all
  std::vector<int> hosts;         ///< of each device, where laid_out() has moved them; else empty
  bool replicas_first = false;    ///< hosts are filled with replicas of a stage, not with stages
  LinkSpeed within, between;      ///< speeds of links within a host and between hosts
  std::optional<LinkSpeed> host;  ///< of the link to the host's memory; none: not known
  std::vector<SpecialLink> links;
  std::vector<Bus> buses;
  std::vector<CodecSpeed> codecs;  ///< codecs of known speed
  int copy_engines = 0;            ///< transfers that a device sends at once; 0: unlimited
  bool sending_blocks = false;     ///< whether a device computes nothing while it sends
  Receives receives = Receives::AnyOrder;
  /// Of a forward and a backward that run beside each other, the part of the shorter one's time
  /// that costs nothing; 0: they take as long as in turn, 1: as long as the longer one.
  double overlap = 0;
  double jitter = 0;  ///< relative standard deviation of compute times; log-normal
  std::uint64_t seed = 1;

  /// Whether the messages of a link must be taken in the order in which they were sent.
  bool taken_as_sent() const {
    return receives == Receives::InOrder || receives == Receives::Rendezvous;
  }
  int host_of(int device) const {
    if (!hosts.empty()) return hosts[static_cast<std::size_t>(device)];
    return devices_per_host == 0 ? 0 : device / devices_per_host;
  }
  LinkSpeed speed_of(int from, int to) const;
  /// The factor from a profiled time to the time on that device.
  double time_factor(int device) const;
  double mean_time_factor() const;  ///< of all devices
};

/// The hardware with its devices in the order of the workers that compute on them. Worker w is on
/// device w, but with `replicas_first` and several replicas worker w of replica r of R is on device
/// w·R + r, so that the replicas of a stage are neighbours.
Hardware laid_out(const Hardware& hardware, int workers, int replicas);

/// Equal devices whose transfers, those with their host's memory included, take no time.
Hardware ideal_hardware(int devices);

/// Reads a description such as those in experiments/hardware. Faults are recorded in `problems`.
Hardware read_hardware(const Value& document, Problems& problems);

/// The options of such a description, for `describe` and the JSON Schema.
std::vector<OptionInfo> hardware_options();

}  // namespace pipewright
