// SPDX-License-Identifier: Apache-2.0
#include "core/exports/chakra.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/version.h"
#include "core/exports/protocol_buffer.h"

namespace pipewright {
namespace {

constexpr int kVersion = 1, kMetadataAttribute = 2;  // of a GlobalMetadata
constexpr int kId = 1, kName = 2, kType = 3, kDataDependencies = 5, kDurationMicros = 7,
              kNodeAttribute = 10;  // of a Node
constexpr int kAttributeName = 1, kInt32 = 7, kInt64 = 9, kBool = 27, kString = 29;
constexpr std::int64_t kAllReduce = 0;  // of CollectiveCommType

enum class NodeType : std::uint8_t { Compute = 4, Send = 5, Receive = 6, Collective = 7 };

void append_framed(std::string& out, std::string_view message) {
  append_varint(out, message.size());
  out += message;
}

/// Attributes of a node or of the metadata.
class Attributes {
 public:
  explicit Attributes(int field) : field_(field) {}

  Attributes& integer(const char* name, int type, std::int64_t value) {
    std::string attribute = named(name);
    append_varint_field(attribute, type, static_cast<std::uint64_t>(value));
    append_bytes_field(bytes, field_, attribute);
    return *this;
  }
  Attributes& text(const char* name, std::string_view value) {
    std::string attribute = named(name);
    append_bytes_field(attribute, kString, value);
    append_bytes_field(bytes, field_, attribute);
    return *this;
  }

  std::string bytes;

 private:
  static std::string named(const char* name) {
    std::string attribute;
    append_bytes_field(attribute, kAttributeName, name);
    return attribute;
  }

  int field_;
};

std::int64_t microseconds(double seconds) {
  return std::llround(seconds * 1e6);
}

/// The nodes of a worker, written one after the other.
class TraceWriter {
 public:
  TraceWriter(const SimulatedSchedule& simulated, int worker)
      : schedule_(simulated.proved.schedule),
        index_(simulated.proved.index),
        simulated_(simulated),
        slots_(index_.slots()),
        worker_(worker) {
    std::string metadata;
    append_bytes_field(metadata, kVersion, "0.0.4");
    metadata += Attributes(kMetadataAttribute)
                    .text("written_by", concat("pipewright ", PIPEWRIGHT_VERSION))
                    .bytes;
    append_framed(out_, metadata);
  }

  std::string write() {
    const std::vector<Action>& actions = schedule_.workers[as_size(worker_)];
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const Action& action = actions[i];
      // A fused pair begins with the inputs of both, so its first node has the time of the pair.
      const bool second = i > 0 && is_fused_pair(actions, i - 1);
      std::vector<std::uint64_t> after = before_;
      if (!second) receive(action, after);
      if (is_fused_pair(actions, i)) receive(actions[i + 1], after);
      if (action.kind == ActionKind::Reduce && schedule_.shape.replicas > 1)
        reduce(action);
      else
        before_ = {compute(action, second ? 0 : duration_of(i), after)};
      send(action);
    }
    return std::move(out_);
  }

 private:
  const Action& at(ActionPlace place) const { return action_at(schedule_, place); }
  std::string name_of(const Action& action) const {
    return action_name(action, schedule_.shape.microbatches);
  }

  std::uint64_t add(const std::string& name, NodeType type, std::int64_t duration,
                    const std::vector<std::uint64_t>& after, const Attributes& attributes) {
    std::string node, ids;
    for (const std::uint64_t id : after) append_varint(ids, id);
    const std::uint64_t id = next_++;
    append_varint_field(node, kId, id);
    append_bytes_field(node, kName, name);
    append_varint_field(node, kType, static_cast<std::uint64_t>(type));
    if (!ids.empty()) append_bytes_field(node, kDataDependencies, ids);
    if (duration > 0)
      append_varint_field(node, kDurationMicros, static_cast<std::uint64_t>(duration));
    append_framed(out_, node + attributes.bytes);
    return id;
  }

  /// Attributes that every node has: none is work of a host.
  static Attributes on_device() {
    Attributes attributes(kNodeAttribute);
    attributes.integer("is_cpu_op", kBool, 0);
    return attributes;
  }
  static Attributes of(const Action& action) {
    Attributes attributes = on_device();
    attributes.integer("stage", kInt32, action.stage)
        .integer("replica", kInt32, action.replica)
        .integer("minibatch", kInt32, action.minibatch);
    if (is_pass(action.kind)) attributes.integer("microbatch", kInt32, action.microbatch);
    return attributes;
  }

  std::int64_t duration_of(std::size_t position) const {
    const Span& span = simulated_.simulation.spans[as_size(worker_)][position];
    return microseconds(span.end) - microseconds(span.begin);
  }

  std::uint64_t compute(const Action& action, std::int64_t duration,
                        const std::vector<std::uint64_t>& after) {
    return add(name_of(action), NodeType::Compute, duration, after, of(action));
  }

  /// The message that an action makes for a stage of another worker.
  struct Message {
    int from = 0, to = 0;  ///< workers
    std::int64_t bytes = 0;
    std::int64_t tag = 0;  ///< of all messages of a schedule, none has that of another
    Attributes attributes() const {
      Attributes all = on_device();
      all.integer("comm_size", kInt64, bytes)
          .integer("comm_src", kInt32, from)
          .integer("comm_dst", kInt32, to)
          .integer("comm_tag", kInt32, tag);
      return all;
    }
  };

  std::optional<Message> message_of(const Action& maker) const {
    const ActionOutput output = facts_of(maker.kind).output;
    const bool gradient = output == ActionOutput::Gradient;
    const int to = maker.stage + (gradient ? -1 : 1);
    if (output == ActionOutput::Activation ? to == schedule_.shape.stages
                                           : !gradient || index_.consumer_of(maker) == kNowhere)
      return {};
    const StageCost& cost = simulated_.costs[as_size(maker.stage)];
    const std::size_t slot =
        gradient ? slots_.backward(maker, maker.stage) : slots_.forward(maker, maker.stage);
    const Message message{.from = schedule_.shape.worker_of(maker.stage, maker.replica),
                          .to = schedule_.shape.worker_of(to, maker.replica),
                          .bytes = gradient ? cost.sent_gradient_bytes.value_or(cost.input_bytes)
                                            : cost.sent_bytes.value_or(cost.output_bytes),
                          .tag = static_cast<std::int64_t>(2 * slot + (gradient ? 1 : 0))};
    return message.from == message.to ? std::nullopt : std::optional(message);
  }

  /// Receives the action's input if another worker sends it, and adds that to what the action
  /// waits for. Receives wait for nothing, unless the hardware says that they are posted one at a
  /// time: then for all that is waited for already.
  void receive(const Action& action, std::vector<std::uint64_t>& after) {
    const ActionPlace maker = index_.input_of(action);
    if (maker == kNowhere || maker.first == worker_) return;
    const std::optional<Message> message = message_of(at(maker));
    PIPEWRIGHT_CHECK(message.has_value(), "an input of another worker is a message");
    const bool in_turn = simulated_.hardware.receives == Receives::Rendezvous;
    after.push_back(add(concat("receive ", name_of(at(maker))), NodeType::Receive, 0,
                        in_turn ? after : std::vector<std::uint64_t>(), message->attributes()));
  }

  void send(const Action& action) {
    const std::optional<Message> message = message_of(action);
    if (!message) return;
    const std::uint64_t sent =
        add(concat("send ", name_of(action)), NodeType::Send, 0, before_, message->attributes());
    if (simulated_.hardware.sending_blocks) before_ = {sent};
  }

  /// Encodes gradients if they are compressed, and sums them over the replicas.
  void reduce(const Action& action) {
    const StageCost& cost = simulated_.costs[as_size(action.stage)];
    const double coding =
        seconds_of(cost, ActionKind::Reduce) * simulated_.hardware.time_factor(worker_);
    if (coding > 0)
      before_ = {add(concat("encode ", name_of(action)), NodeType::Compute, microseconds(coding),
                     before_, of(action))};
    std::vector<std::int64_t> sums{cost.parameter_bytes};
    if (cost.reduced_bytes) sums.assign(cost.reduced_bytes->begin(), cost.reduced_bytes->end());
    for (std::size_t i = 0; i < sums.size(); ++i) {
      Attributes attributes = of(action);
      attributes.integer("comm_type", kInt64, kAllReduce)
          .integer("comm_size", kInt64, sums[i])
          .text("pg_name", std::to_string(action.stage + 1));
      before_ = {add(concat(name_of(action), i > 0 ? ", second sum" : ""), NodeType::Collective, 0,
                     before_, attributes)};
    }
  }

  const Schedule& schedule_;
  const PassIndex& index_;
  const SimulatedSchedule& simulated_;
  const PassSlots& slots_;
  int worker_;
  std::uint64_t next_ = 1;
  std::vector<std::uint64_t> before_;  ///< the node that the worker's next action waits for
  std::string out_;
};

}  // namespace

ChakraTraces::ChakraTraces(const SimulatedSchedule& simulated) : simulated_(simulated) {
  for_each_action(simulated.proved.schedule, [](ActionPlace, const Action& action) {
    if (goes_on_beside(action.kind))
      throw Error(ErrorKind::Experiment,
                  concat("the schedule has actions that go on beside what a device computes (",
                         kind_name(action.kind),
                         "), and no node of a Chakra trace stands for one; expected a schedule "
                         "without them"));
  });
  const auto refuse = [](int stage, int other) {
    throw Error(ErrorKind::Experiment,
                concat("stages ", stage, " and ", other,
                       " share weights, whose messages are no nodes of the traces yet; expected "
                       "model.tie: none or start"));
  };
  const PipelineShape& shape = simulated.proved.schedule.shape;
  for (const Skip& skip : shape.skips)
    if (skip.lent_bytes > 0) refuse(skip.from, skip.to);
  for (const TiedCopies& tied : shape.tied) refuse(tied.first, tied.second);
}

std::string ChakraTraces::of_worker(int worker) const {
  return TraceWriter(simulated_, worker).write();
}

std::string chakra_groups(const Schedule& schedule) {
  if (schedule.shape.replicas == 1) return {};
  nlohmann::ordered_json groups;
  for (int stage = 0; stage < schedule.shape.stages; ++stage)
    groups[std::to_string(stage + 1)] = schedule.shape.workers_of(stage);
  return groups.dump() + "\n";
}

bool is_chakra_file(std::string_view beginning) {
  return beginning.find("written_by") < beginning.find("pipewright ") ||
         beginning.starts_with("{\"1\": [");
}

}  // namespace pipewright
