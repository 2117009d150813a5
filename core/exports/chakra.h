// SPDX-License-Identifier: Apache-2.0
/// Execution traces of MLCommons' Chakra, which ASTRA-sim and other simulators of networks read: a
/// file for each worker with the actions of a schedule, its messages and its reductions as nodes.
///
/// A file is a sequence of messages of protocol buffers, each behind its length as a varint: a
/// GlobalMetadata, then the Nodes, those before which others wait first. Of schema/protobuf/
/// et_def.proto (github: mlcommons/chakra, version 0.0.4) we write these fields:
///
///   GlobalMetadata  1 version: string   2 attr: AttributeProto, repeated
///   Node            1 id   2 name: string   3 type   5 data_deps: packed ids   7 duration_micros
///                   10 attr: AttributeProto, repeated
///   AttributeProto  1 name: string   and one of   7 int32   9 int64   27 bool   29 string
///   NodeType        4 COMP_NODE   5 COMM_SEND_NODE   6 COMM_RECV_NODE   7 COMM_COLL_NODE
#pragma once

#include <span>
#include <string>

#include "core/cost/cost.h"
#include "core/schedule/prove.h"
#include "core/simulation/hardware.h"
#include "core/simulation/simulate.h"

namespace pipewright {

/// A simulated schedule. The hardware tells whether sends block their device and when receives are
/// posted; its links leave no mark, for the reader simulates its own.
struct SimulatedSchedule {
  const ProvedSchedule& proved;
  std::span<const StageCost> costs;
  const Hardware& hardware;
  const Simulation& simulation;
};

/// The traces of all workers of a simulated schedule, which must live longer.
class ChakraTraces {
 public:
  explicit ChakraTraces(const SimulatedSchedule& simulated);

  /// The bytes of one worker's file. Seconds of actions are those of the simulation, begin and end
  /// rounded to microseconds. Times of messages and reductions are left to the reader.
  std::string of_worker(int worker) const;

 private:
  SimulatedSchedule simulated_;
};

/// The groups of workers whose gradients are summed, as ASTRA-sim reads them: {"1": [0, 2], …},
/// group k + 1 of stage k. "" without replicas.
std::string chakra_groups(const Schedule& schedule);

/// Whether a file that begins so is a trace or a file of groups of this program's.
bool is_chakra_file(std::string_view beginning);

}  // namespace pipewright
