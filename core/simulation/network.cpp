// SPDX-License-Identifier: Apache-2.0
#include "core/simulation/network.h"

#include <algorithm>
#include <limits>

#include "core/base/as_size.h"

namespace pipewright {

Network::Network(const Hardware& hardware, bool transfers)
    : hardware_(hardware),
      keeps_transfers_(transfers),
      lane_of_sender_(hardware.devices.size(), -1),
      buses_(hardware.buses),
      bus_free_(hardware.buses.size(), 0),
      bus_reduced_(hardware.buses.size(), 0),
      wire_free_(hardware.receives == Receives::ProgramOrder ? hardware.devices.size() : 0, 0),
      traffic_(hardware.buses.size()) {}

int Network::link(int from, int to) {
  const std::uint64_t key =
      static_cast<std::uint64_t>(from) * hardware_.devices.size() + static_cast<std::uint64_t>(to);
  const auto [known, fresh] = known_.try_emplace(key, static_cast<int>(links_.size()));
  if (!fresh) return known->second;
  Link& link = links_.emplace_back();
  link.from = from;
  link.to = to;
  link.speed = hardware_.speed_of(from, to);
  for (std::size_t bus = 0; bus < buses_.size(); ++bus)
    if (buses_[bus].carries(from, to)) link.buses.push_back(static_cast<int>(bus));
  int& shared_lane = lane_of_sender_[as_size(from)];
  if (hardware_.copy_engines > 0 && shared_lane >= 0) {
    link.lane = shared_lane;
  } else {
    link.lane = shared_lane = static_cast<int>(lanes_.size());
    lanes_.emplace_back().engines.resize(as_size(hardware_.copy_engines), 0);
  }
  return known->second;
}

double Network::beginning(const Link& link, double ready) const {
  const Lane& lane = lanes_[as_size(link.lane)];
  double begin = std::max(ready, link.free);
  if (!wire_free_.empty()) begin = std::max(begin, wire_free_[as_size(link.to)]);
  if (!lane.engines.empty())
    begin = std::max({begin, lane.begun, *std::ranges::min_element(lane.engines)});
  return begin;
}

Delivery Network::carry(int id, double ready, std::int64_t bytes) {
  Link& link = links_[as_size(id)];
  Lane& lane = lanes_[as_size(link.lane)];
  const auto size = static_cast<double>(bytes);
  const double begin = beginning(link, ready);
  double sent = begin + size / link.speed.bandwidth;
  for (const int bus : link.buses) {
    const double served = size / buses_[as_size(bus)].bandwidth;
    double& free = bus_free_[as_size(bus)];
    free = std::max(begin, free) + served;
    sent = std::max(sent, free);
    Traffic& traffic = traffic_[as_size(bus)];
    ++traffic.messages;
    traffic.bytes += bytes;
    traffic.busy += served;
  }
  const double arrived = sent + link.speed.latency;
  link.free = link.speed.latency_occupies ? arrived : sent;
  if (!wire_free_.empty()) wire_free_[as_size(link.to)] = link.free;
  lane.begun = begin;
  if (!lane.engines.empty()) *std::ranges::min_element(lane.engines) = sent;
  ++link.traffic.messages;
  link.traffic.bytes += bytes;
  link.traffic.busy += link.free - begin;
  if (keeps_transfers_) link.transfers.push_back({begin, arrived, bytes});
  return {sent, arrived};
}

void Network::queue_turn(int id) {
  PostedMessage& first = lanes_[as_size(id)].waiting.front();
  Link& link = links_[as_size(first.link)];
  if (rendezvous()) {
    if (!link.receive) return;
    first.ready = std::max(first.ready, *link.receive);
    link.receive.reset();
  }
  // One event may let several messages begin; which receive was posted first is then no matter.
  const std::int64_t order =
      rendezvous() ? link.from * static_cast<std::int64_t>(hardware_.devices.size()) + link.to
                   : posted_++;
  turns_.push({beginning(link, first.ready), order, id});
}

void Network::receive(int id, double time) {
  Link& link = links_[as_size(id)];
  link.receive = time;
  const auto& waiting = lanes_[as_size(link.lane)].waiting;
  if (!waiting.empty() && waiting.front().link == id) queue_turn(link.lane);
}

int Network::blocking_link(int id) const {
  const auto& waiting = lanes_[as_size(links_[as_size(id)].lane)].waiting;
  return waiting.empty() ? id : waiting.front().link;
}

void Network::post(const PostedMessage& message) {
  const int id = links_[as_size(message.link)].lane;
  auto& waiting = lanes_[as_size(id)].waiting;
  waiting.push_back(message);
  if (waiting.size() == 1) queue_turn(id);
}

std::optional<std::pair<PostedMessage, Delivery>> Network::next() {
  if (turns_.empty()) return {};
  const int id = turns_.top().lane;
  turns_.pop();
  auto& waiting = lanes_[as_size(id)].waiting;
  const PostedMessage message = waiting.front();
  waiting.pop_front();
  const Delivery delivery = carry(message.link, message.ready, message.bytes);
  if (!waiting.empty()) queue_turn(id);
  return std::pair(message, delivery);
}

double Network::next_time() const {
  return turns_.empty() ? std::numeric_limits<double>::infinity() : turns_.top().time;
}

double Network::all_reduce(const std::vector<int>& workers, std::int64_t bytes, double ready) {
  if (workers.size() < 2) return 0;
  std::vector<int> ring;
  for (std::size_t r = 0; r < workers.size(); ++r)
    ring.push_back(link(workers[r], workers[(r + 1) % workers.size()]));
  std::vector<int> crossings(buses_.size(), 0);
  for (const int id : ring)
    for (const int bus : links_[as_size(id)].buses) ++crossings[as_size(bus)];
  double latency = 0, bandwidth = std::numeric_limits<double>::infinity();
  for (const int id : ring) {
    latency = std::max(latency, links_[as_size(id)].speed.latency);
    bandwidth = std::min(bandwidth, links_[as_size(id)].speed.bandwidth);
  }
  for (std::size_t bus = 0; bus < buses_.size(); ++bus)
    if (crossings[bus] > 0) bandwidth = std::min(bandwidth, buses_[bus].bandwidth / crossings[bus]);
  const auto replicas = static_cast<std::int64_t>(workers.size());
  const std::int64_t steps = 2 * (replicas - 1);
  const double share = static_cast<double>(steps * bytes) / static_cast<double>(replicas);
  const double carried = share / bandwidth;
  double begin = ready;
  for (std::size_t bus = 0; bus < buses_.size(); ++bus)
    if (crossings[bus] > 0) begin = std::max(begin, bus_reduced_[bus]);
  auto count = [&](Traffic& traffic, int times, double busy) {
    traffic.messages += steps * times;
    traffic.bytes += steps * bytes / replicas * times;
    traffic.busy += busy;
  };
  for (const int id : ring) count(links_[as_size(id)].traffic, 1, carried);
  for (std::size_t bus = 0; bus < buses_.size(); ++bus) {
    if (crossings[bus] == 0) continue;
    const double served = share * crossings[bus] / buses_[bus].bandwidth;
    bus_reduced_[bus] = begin + served;
    count(traffic_[bus], crossings[bus], served);
  }
  return begin - ready + carried + static_cast<double>(steps) * latency;
}

}  // namespace pipewright
