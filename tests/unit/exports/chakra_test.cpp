// SPDX-License-Identifier: Apache-2.0
// The bytes of Chakra's traces, written down by hand from the fields in chakra.h, and what the
// traces of schedules have.
#include "core/exports/chakra.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/base/text.h"
#include "core/base/version.h"
#include "core/cost/cost_table.h"
#include "core/exports/protocol_buffer.h"
#include "core/schedule/builders.h"

namespace pipewright {
namespace {

/// A field with its key and, for texts and messages, its length; all are shorter than 128 bytes.
std::string field(int number, const std::string& bytes) {
  return concat(std::string(1, static_cast<char>(number << 3 | 2)),
                std::string(1, static_cast<char>(bytes.size())), bytes);
}
std::string framed_node(const std::string& node) {
  return std::string(1, static_cast<char>(node.size())) + node;
}
/// An attribute whose value is a varint of one byte in a field below 16.
std::string attribute(const std::string& name, int type, int value) {
  return field(10, concat(field(1, name), std::string(1, static_cast<char>(type << 3)),
                          std::string(1, static_cast<char>(value))));
}
const std::string kOnDevice =
    field(10, concat(field(1, "is_cpu_op"), std::string("\xD8\x01\0", 3)));

std::string head_of(int id, const std::string& name, int type) {
  return concat("\x08", std::string(1, static_cast<char>(id)), field(2, name), "\x18",
                std::string(1, static_cast<char>(type)));
}
std::string place(int stage, int minibatch, int microbatch) {
  return attribute("stage", 7, stage) + attribute("replica", 7, 0) +
         attribute("minibatch", 7, minibatch) + attribute("microbatch", 7, microbatch);
}

struct Simulated {
  ProvedSchedule proved;
  std::vector<StageCost> costs;
  Hardware hardware;
  Simulation simulation;

  std::string trace(int worker) const {
    return ChakraTraces({proved, costs, hardware, simulation}).of_worker(worker);
  }
};

Simulated simulated_of(Schedule schedule, std::vector<StageCost> costs) {
  const Hardware hardware = ideal_hardware(schedule.shape.workers());
  ProvedSchedule proved = prove(std::move(schedule));
  Simulation simulation = simulate(proved, costs, hardware);
  return {std::move(proved), std::move(costs), hardware, std::move(simulation)};
}

/// A forward of stage 0 that takes 100 μs sends 5 bytes to stage 1, whose forward takes 7 μs.
Simulated one_message() {
  std::vector<StageCost> costs = equal_costs(2);
  costs[0].forward = 100e-6;
  costs[0].output_bytes = 5;
  costs[1].forward = 7e-6;
  return simulated_of(evaluation_schedule({.stages = 2}), costs);
}

TEST(Chakra, ATraceHasTheBytesOfTheFormat) {
  const std::string metadata = concat(
      field(1, "0.0.4"),
      field(2, concat(field(1, "written_by"),
                      concat("\xEA\x01",
                             std::string(
                                 1, static_cast<char>(std::string(PIPEWRIGHT_VERSION).size() + 11)),
                             "pipewright ", PIPEWRIGHT_VERSION))));
  const std::string message = attribute("comm_size", 9, 5) + attribute("comm_src", 7, 0) +
                              attribute("comm_dst", 7, 1) + attribute("comm_tag", 7, 0);
  const Simulated simulated = one_message();
  EXPECT_EQ(
      simulated.trace(0),
      framed_node(metadata) +
          framed_node(concat(head_of(1, "0F0", 4), "\x38\x64", kOnDevice, place(0, 0, 0))) +
          framed_node(concat(head_of(2, "send 0F0", 5), field(5, "\x01"), kOnDevice, message)));
  EXPECT_EQ(simulated.trace(1),
            framed_node(metadata) +
                framed_node(concat(head_of(1, "receive 0F0", 6), kOnDevice, message)) +
                framed_node(concat(head_of(2, "1F0", 4), field(5, "\x01"), "\x38\x07", kOnDevice,
                                   place(1, 0, 0))));
}

struct Node {
  std::string name;
  int type = 0;
  std::set<std::uint64_t> after;
  std::uint64_t micros = 0, tag = 0;
};

/// The number of the attribute `name` if that is the attribute, else what stands there.
std::uint64_t number_if(const std::string& name, std::string_view attribute, std::uint64_t before) {
  bool is = false;
  for (ProtocolFields fields(attribute); fields.next();) {
    if (fields.field() == 1) is = fields.bytes() == name;
    if (is && fields.field() == 7) return fields.number();
  }
  return before;
}

/// The nodes of a trace by number.
std::map<std::uint64_t, Node> nodes_of(const std::string& trace) {
  std::map<std::uint64_t, Node> nodes;
  std::string_view rest = trace;
  bool metadata = true;
  while (!rest.empty()) {
    std::size_t size = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(rest.front());
      rest.remove_prefix(1);
      size |= std::size_t{byte & 0x7FU} << shift;
      if ((byte & 0x80U) == 0) break;
    }
    const std::string_view message = rest.substr(0, size);
    rest.remove_prefix(size);
    if (std::exchange(metadata, false)) continue;
    Node node;
    std::uint64_t id = 0;
    for (ProtocolFields fields(message); fields.next();) {
      if (fields.field() == 1) id = fields.number();
      if (fields.field() == 2) node.name = fields.bytes();
      if (fields.field() == 3) node.type = static_cast<int>(fields.number());
      if (fields.field() == 7) node.micros = fields.number();
      if (fields.field() == 10) node.tag = number_if("comm_tag", fields.bytes(), node.tag);
      if (fields.field() == 5)
        for (const char each : fields.bytes()) node.after.insert(static_cast<std::uint64_t>(each));
    }
    nodes[id] = node;
  }
  return nodes;
}

const Node& named(const std::map<std::uint64_t, Node>& nodes, const std::string& name) {
  for (const auto& [id, node] : nodes)
    if (node.name == name) return node;
  throw std::out_of_range(name);
}

std::uint64_t number_of(const std::map<std::uint64_t, Node>& nodes, const std::string& name) {
  for (const auto& [id, node] : nodes)
    if (node.name == name) return id;
  throw std::out_of_range(name);
}

TEST(Chakra, ReplicasMeetInASumBehindTheirEncoding) {
  std::vector<StageCost> costs = equal_costs(1);
  costs[0].parameter_bytes = 100;
  Simulated simulated =
      simulated_of(pipeline_schedule({.stages = 1, .replicas = 2}, {.flush = true}), costs);
  EXPECT_EQ(named(nodes_of(simulated.trace(1)), "0R0").type, 7);
  EXPECT_EQ(chakra_groups(simulated.proved.schedule), "{\"1\":[0,1]}\n");
  simulated.costs[0].coding_reduce = 2;
  simulated.costs[0].reduced_bytes = {{10, 20}};
  const auto nodes = nodes_of(simulated.trace(1));
  EXPECT_EQ(named(nodes, "encode 0R0").type, 4);
  EXPECT_EQ(named(nodes, "0R0").after, (std::set{number_of(nodes, "encode 0R0")}));
  EXPECT_EQ(named(nodes, "0R0, second sum").after, (std::set{number_of(nodes, "0R0")}));
  EXPECT_EQ(named(nodes, "0U0").after, (std::set{number_of(nodes, "0R0, second sum")}));
  EXPECT_EQ(chakra_groups(one_message().proved.schedule), "") << "one replica sums with nobody";
}

TEST(Chakra, EveryMessageHasATagOfItsOwn) {
  const Simulated simulated = simulated_of(
      pipeline_schedule({.stages = 3, .microbatches = 3}, {.flush = true}), equal_costs(3));
  std::multiset<std::uint64_t> sent, received;
  for (int worker = 0; worker < 3; ++worker)
    for (const auto& [id, node] : nodes_of(simulated.trace(worker))) {
      if (node.type == 5) sent.insert(node.tag);
      if (node.type == 6) received.insert(node.tag);
    }
  EXPECT_EQ(sent.size(), 12U) << "two edges, there and back";
  EXPECT_EQ(std::set(sent.begin(), sent.end()).size(), sent.size());
  EXPECT_EQ(sent, received);
}

TEST(Chakra, AFusedPairTakesItsTimeOnce) {
  const PipelineShape shape{.stages = 4, .microbatches = 4, .placement = v_placement(4)};
  const Simulated simulated = simulated_of(dual_pipe_schedule(shape), equal_costs(4));
  for (int worker = 0; worker < 2; ++worker) {
    std::uint64_t micros = 0;
    for (const auto& [id, node] : nodes_of(simulated.trace(worker))) micros += node.micros;
    const Simulation& simulation = simulated.simulation;
    EXPECT_DOUBLE_EQ(
        static_cast<double>(micros) * 1e-6,
        simulation.makespan - simulation.workers[static_cast<std::size_t>(worker)].idle);
  }
}

TEST(Chakra, SendsThatBlockComeBeforeTheNextAction) {
  Simulated simulated =
      simulated_of(evaluation_schedule({.stages = 2, .minibatches = 2}), equal_costs(2));
  const auto free = nodes_of(simulated.trace(0));
  EXPECT_EQ(named(free, "0F1").after, (std::set{number_of(free, "0F0")}));
  simulated.hardware.sending_blocks = true;
  const auto blocked = nodes_of(simulated.trace(0));
  EXPECT_EQ(named(blocked, "0F1").after, (std::set{number_of(blocked, "send 0F0")}));
}

TEST(Chakra, ReceivesOfARendezvousComeBehindTheActionBefore) {
  Simulated simulated =
      simulated_of(evaluation_schedule({.stages = 2, .minibatches = 2}), equal_costs(2));
  EXPECT_EQ(named(nodes_of(simulated.trace(1)), "receive 0F1").after, std::set<std::uint64_t>{});
  simulated.hardware.receives = Receives::Rendezvous;
  const auto met = nodes_of(simulated.trace(1));
  EXPECT_EQ(named(met, "receive 0F1").after, (std::set{number_of(met, "1F0")}));
}

}  // namespace
}  // namespace pipewright
