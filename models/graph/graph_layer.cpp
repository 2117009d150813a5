// SPDX-License-Identifier: Apache-2.0
#include "models/graph/graph_layer.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/stage/deferred_statistics.h"
#include "core/stage/layers.h"
#include "core/stage/meta/on_meta.h"
#include "core/stage/meta/operation_count.h"
#include "core/stage/torch.h"
#include "models/graph/graph_matching.h"
#include "models/graph/graph_operators.h"
#include "models/graph/graph_schema.h"

namespace pipewright {
namespace {

/// A node whose arguments are matched with its operator's schema.
struct Call {
  const GraphNode* node = nullptr;
  std::optional<c10::OperatorHandle> handle;  ///< none: a dropout
  std::vector<MatchedArgument> arguments;     ///< one for each argument of the schema
  std::vector<std::size_t> outputs;           ///< places in the frame
  std::vector<std::size_t> ends;              ///< places whose values no later call reads
  LayerPtr dropout;
};

/// What the operators of one forward share.
struct Frame {
  std::vector<at::Tensor> tensors;
  std::int64_t batch = 0;
  at::ScalarType type = at::kFloat;  ///< of activations
  at::Device device = at::kCPU;

  std::int64_t of(const GraphSize& size) const { return size[0] * batch + size[1]; }
};

class GraphLayer final : public Layer {
 public:
  GraphLayer(std::shared_ptr<const GraphFile> file, const GraphRun& run)
      : file_(std::move(file)), entering_(run.enters.size()) {
    for (const std::string& name : run.enters) place("value", name);
    declare(run);
    for (std::size_t i = run.first; i < run.last; ++i) calls_.push_back(call(file_->nodes[i]));
    for (const std::string& name : run.leaves) leaving_.push_back(places_.at({"value", name}));
    find_ends();
    const auto writes = [](const GraphNode& node) { return !operator_use(node).writes.empty(); };
    clones_ = run.first == 0 && std::any_of(file_->nodes.begin() + as_offset(run.first),
                                            file_->nodes.begin() + as_offset(run.last), writes);
  }

  void set_name(std::string name) override {
    for (std::size_t i = 0; i < calls_.size(); ++i)
      if (calls_[i].dropout)
        calls_[i].dropout->set_name(concat(name, ".", calls_[i].node->outputs.at(0).name));
    Layer::set_name(std::move(name));
  }

  std::vector<ParameterSpec> parameters() const override { return parameters_; }
  std::vector<BufferSpec> buffers() const override { return buffers_; }

  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor> parameters,
                     std::span<at::Tensor> buffers, const Pass& pass) const override {
    return forward_all({input}, parameters, buffers, pass)[0];
  }

  Tensors forward_all(const Tensors& inputs, std::span<const at::Tensor> parameters,
                      std::span<at::Tensor> buffers, const Pass& pass) const override {
    Frame frame = filled(inputs, parameters, buffers);
    for (const Call& each : calls_) {
      run(each, frame, pass);
      for (const std::size_t place : each.ends) frame.tensors[place].reset();
    }
    Tensors outputs;
    for (const std::size_t place : leaving_) outputs.push_back(frame.tensors[place]);
    return outputs;
  }

 private:
  using Key = std::pair<std::string, std::string>;  // kind and name of a reference

  std::size_t place(const std::string& kind, const std::string& name) {
    return places_.emplace(Key{kind, name}, places_.size()).first->second;
  }

  static std::ptrdiff_t as_offset(std::size_t place) { return static_cast<std::ptrdiff_t>(place); }

  /// Notes after which call each value is needed no more, so that a forward holds no other tensors
  /// than a module's forward does.
  void find_ends() {
    std::set<std::size_t> needed(leaving_.begin(), leaving_.end());
    const auto note = [&](Call& last, std::size_t place) {
      if (needed.insert(place).second) last.ends.push_back(place);
    };
    for (auto each = calls_.rbegin(); each != calls_.rend(); ++each) {
      for (const std::size_t place : each->outputs) note(*each, place);
      for (const auto& [name, value] : each->node->arguments)
        for_each_reference(value, [&](const GraphReference& to) {
          if (to.kind == "value") note(*each, places_.at({to.kind, to.name}));
        });
    }
  }

  /// Declares the parameters and statistics that the run reads, in the order of their first use.
  void declare(const GraphRun& run) {
    std::vector<std::string> constants;
    std::map<std::string, bool> exact;
    const auto each = [&](const auto& visit) {
      for (std::size_t i = run.first; i < run.last; ++i)
        for (const auto& [argument, value] : file_->nodes[i].arguments)
          for_each_reference(value, [&](const GraphReference& to) { visit(file_->nodes[i], to); });
    };
    each([&](const GraphNode& node, const GraphReference& to) {
      const bool norm = node.name == "aten::batch_norm";
      if (to.kind != "parameter") return;
      const auto [found, fresh] = exact.emplace(to.name, norm);
      found->second = found->second && norm;
    });
    // A name that begins with a dot is a full name (parameter_name()).
    for (const std::string kind : {"parameter", "buffer", "constant"})
      each([&](const GraphNode&, const GraphReference& to) {
        if (to.kind != kind || places_.contains({kind, to.name})) return;
        place(kind, to.name);
        if (kind == "parameter")
          parameters_.push_back({.name = "." + to.name,
                                 .shape = file_->parameters.at(to.name),
                                 .exact = exact.at(to.name)});
        else if (kind == "buffer")
          buffers_.push_back({"." + to.name, file_->buffers.at(to.name),
                              to.name.ends_with("running_var") ? 1.0 : 0.0});
        else
          constants_.push_back(file_->constants.at(to.name));
      });
  }

  Call call(const GraphNode& node) {
    Call made{.node = &node,
              .handle = {},
              .arguments = {},
              .outputs = {},
              .ends = {},
              .dropout = nullptr};
    made.handle = c10::Dispatcher::singleton().findSchema({node.name, node.overload});
    PIPEWRIGHT_CHECK(made.handle.has_value(), node.name);
    const auto placed = [&](const GraphReference& to) {
      const auto found = places_.find({to.kind, to.name});
      PIPEWRIGHT_CHECK(found != places_.end(), to.kind, " ", to.name);
      return found->second;
    };
    made.arguments = matched_arguments(node, made.handle->schema(), placed);
    for (const GraphOutput& output : node.outputs)
      made.outputs.push_back(place("value", output.name));
    check(made);
    return made;
  }

  const MatchedArgument* argument_of(const Call& of, const std::string& name) const {
    const auto index = of.handle->schema().argumentIndexWithName(name);
    return index ? &of.arguments[static_cast<std::size_t>(*index)] : nullptr;
  }

  void check(Call& made) {
    const std::string& name = made.node->name;
    const auto refuse = [&](const std::string& message) {
      throw Error(ErrorKind::Data, message, made.node->where);
    };
    if (is_dropout(name)) {
      const double p = argument_of(made, "p")->constant.toDouble();
      if (!(p >= 0 && p <= 1) || made.outputs.size() != 1)
        refuse(concat("the probability of dropping is ", p, "; expected 0 to 1"));
      made.dropout = name == "aten::feature_dropout" ? channel_dropout(p) : dropout(p);
    }
    for (const char* random : {"dropout_p", "dropout"})
      if (const MatchedArgument* found = argument_of(made, random))
        if (found->constant.isDouble() && found->constant.toDouble() != 0)
          refuse(concat("draws random numbers inside the operator (", random, " is ",
                        found->constant.toDouble(),
                        "), which no seed of ours reaches; expected 0, set in the module"));
    if (name == "aten::batch_norm") {
      for (const char* each : {"weight", "bias", "running_mean", "running_var"})
        if (argument_of(made, each)->source != MatchedArgument::Source::Frame)
          refuse(concat("the batch norm has no ", each,
                        "; expected affine and track_running_stats to be True"));
    }
  }

  Frame filled(const Tensors& inputs, std::span<const at::Tensor> parameters,
               std::span<at::Tensor> buffers) const {
    Frame frame;
    frame.tensors.resize(places_.size());
    std::size_t next = 0;
    PIPEWRIGHT_CHECK(inputs.size() == entering_, "layer ", name(), " got ", inputs.size());
    for (const at::Tensor& input : inputs) frame.tensors[next++] = clones_ ? input.clone() : input;
    frame.batch = inputs[0].size(0);
    frame.device = inputs[0].device();
    frame.type = activation_type(inputs, parameters);
    for (const at::Tensor& each : parameters) frame.tensors[next++] = each;
    for (const at::Tensor& each : buffers) frame.tensors[next++] = each;
    for (const at::Tensor& each : constants_)
      frame.tensors[next++] =
          each.to(frame.device, each.is_floating_point() ? frame.type : each.scalar_type());
    return frame;
  }

  at::ScalarType activation_type(const Tensors& inputs,
                                 std::span<const at::Tensor> parameters) const {
    for (const at::Tensor& input : inputs)
      if (input.is_floating_point()) return input.scalar_type();
    for (std::size_t i = 0; i < parameters.size(); ++i)
      if (!parameters_[i].exact) return parameters[i].scalar_type();
    return parameters.empty() ? at::kFloat : parameters[0].scalar_type();
  }

  static c10::IValue valued(const MatchedArgument& from, const Frame& frame, const Pass& pass) {
    using Source = MatchedArgument::Source;
    switch (from.source) {
      case Source::Constant: return from.constant;
      case Source::Frame: return frame.tensors[from.place];
      case Source::Size: return frame.of(from.size);
      case Source::Switch: return from.constant.toBool() && pass.training;
      case Source::Type: return static_cast<std::int64_t>(frame.type);
      case Source::Device: return frame.device;
      case Source::Sizes: {
        std::vector<std::int64_t> sizes;
        for (const MatchedArgument& item : from.items)
          sizes.push_back(valued(item, frame, pass).toInt());
        return sizes;
      }
      case Source::Tensors: break;
    }
    c10::List<at::Tensor> tensors;
    c10::List<std::optional<at::Tensor>> optionals;
    for (const MatchedArgument& item : from.items) {
      c10::IValue value = valued(item, frame, pass);
      if (!from.optional)
        tensors.push_back(value.toTensor());
      else
        optionals.push_back(value.isNone() ? std::nullopt : std::optional(value.toTensor()));
    }
    return from.optional ? c10::IValue(optionals) : c10::IValue(tensors);
  }

  void run(const Call& each, Frame& frame, const Pass& pass) const {
    try {
      if (each.dropout)
        drop(each, frame, pass);
      else if (each.node->name == "aten::batch_norm")
        frame.tensors[each.outputs.at(0)] = normalised(each, frame, pass);
      else if (frame.device.is_meta())
        on_meta(each, frame, pass);
      else
        call_operator(each, frame, pass);
    } catch (const c10::OutOfMemoryError&) {
      throw;
    } catch (const c10::Error& error) {
      const std::string what = error.what_without_backtrace();
      throw Error(ErrorKind::Data, what.substr(0, what.find('\n')), each.node->where);
    }
  }

  void drop(const Call& each, Frame& frame, const Pass& pass) const {
    const at::Tensor input = valued(each.arguments[0], frame, pass).toTensor();
    const MatchedArgument* train = argument_of(each, "train");
    Pass here = pass;
    here.training = valued(*train, frame, pass).toBool();
    const bool in_place = each.node->name.ends_with('_');
    at::Tensor& output = frame.tensors[each.outputs[0]];
    if (in_place && here.training)
      output = input.mul_(each.dropout->forward(at::ones_like(input.detach()), {}, {}, here));
    else
      output = each.dropout->forward(input, {}, {}, here);
  }

  /// Batch norm as our own layer computes it: recomputed forwards leave the statistics alone, and
  /// deferred ones are gathered.
  at::Tensor normalised(const Call& each, const Frame& frame, const Pass& pass) const {
    const auto tensor = [&](const char* name) {
      return valued(*argument_of(each, name), frame, pass).toTensor();
    };
    const at::Tensor input = tensor("input"), weight = tensor("weight"), bias = tensor("bias");
    std::array<at::Tensor, 2> running{tensor("running_mean"), tensor("running_var")};
    const bool training = valued(*argument_of(each, "training"), frame, pass).toBool();
    const double momentum = argument_of(each, "momentum")->constant.toDouble();
    const double eps = argument_of(each, "eps")->constant.toDouble();
    if (training && input.numel() <= weight.numel())
      throw Error(ErrorKind::Experiment,
                  concat("batch-norm of layer '", name(),
                         "' has one value per channel to normalise; it needs two or more samples "
                         "per micro-batch (loader.batch_size, pipeline.microbatches, "
                         "pipeline.replicas), or larger images"));
    if (input.is_meta())
      return made_on_meta({input, weight, bias}, at::empty_like(input),
                          {input, at::empty({2, weight.numel()}, weight.options())});
    const auto norm = [&](const at::Tensor& mean, const at::Tensor& variance, double part) {
      return at::batch_norm(input, weight, bias, mean, variance, training, part, eps,
                            /*cudnn_enabled=*/true);
    };
    if (!training || (!pass.recomputing && pass.deferred == nullptr))
      return norm(running[0], running[1], momentum);
    if (pass.recomputing) return norm({}, {}, momentum);
    const at::Tensor mean = at::zeros_like(running[0]), variance = at::zeros_like(running[1]);
    at::Tensor output = norm(mean, variance, 1);
    pass.deferred->add(pass, running, momentum, input.numel() / weight.numel(), mean, variance);
    return output;
  }

  void call_operator(const Call& each, Frame& frame, const Pass& pass) const {
    c10::Stack stack;
    for (const MatchedArgument& from : each.arguments) stack.push_back(valued(from, frame, pass));
    each.handle->callBoxed(&stack);
    std::vector<at::Tensor> made;
    for (const c10::IValue& value : stack) {
      if (value.isTensor())
        made.push_back(value.toTensor());
      else if (value.isTensorList())
        for (const at::Tensor& item : value.toTensorVector()) made.push_back(item);
    }
    if (made.size() != each.outputs.size())
      throw Error(ErrorKind::Data,
                  concat("returns ", counted(made.size(), "tensor"), "; the file says ",
                         each.outputs.size()),
                  each.node->where);
    for (std::size_t i = 0; i < made.size(); ++i) frame.tensors[each.outputs[i]] = made[i];
  }

  /// On the meta device outputs have the shapes that the file says, because LibTorch has many
  /// operators there in Python only. What a backward would keep is at most inputs and outputs.
  void on_meta(const Call& each, Frame& frame, const Pass& pass) const {
    std::vector<at::Tensor> inputs;
    for (const MatchedArgument& from : each.arguments) {
      if (from.source == MatchedArgument::Source::Frame)
        inputs.push_back(frame.tensors[from.place]);
      for (const MatchedArgument& item : from.items)
        if (item.source == MatchedArgument::Source::Frame)
          inputs.push_back(frame.tensors[item.place]);
    }
    std::erase_if(inputs,
                  [](const at::Tensor& each_input) { return !each_input.is_floating_point(); });
    for (std::size_t i = 0; i < each.outputs.size(); ++i) {
      const GraphOutput& output = each.node->outputs[i];
      std::vector<std::int64_t> shape;
      for (const GraphSize& size : output.shape)
        shape.push_back(std::max<std::int64_t>(0, frame.of(size)));
      const bool floats = at::isFloatingType(output.type);
      const at::Tensor empty =
          at::empty(shape, at::TensorOptions(floats ? frame.type : output.type).device(at::kMeta));
      std::vector<at::Tensor> kept = inputs;
      kept.push_back(empty);
      count(each, empty, frame, pass);
      frame.tensors[each.outputs[i]] =
          floats && !inputs.empty() ? made_on_meta(inputs, empty, kept) : empty;
    }
  }

  /// Counts the multiplications of products; other operators count none.
  void count(const Call& each, const at::Tensor& output, const Frame& frame,
             const Pass& pass) const {
    const std::string& name = each.node->name;
    const auto argument = [&](const char* key) -> const MatchedArgument& {
      return *argument_of(each, key);
    };
    double terms = 0;
    if (name == "aten::linear")
      terms = static_cast<double>(valued(argument("input"), frame, pass).toTensor().size(-1));
    if (name == "aten::conv1d" || name == "aten::conv2d" || name == "aten::conv3d") {
      const at::Tensor weight = valued(argument("weight"), frame, pass).toTensor();
      terms = static_cast<double>(weight.numel()) / static_cast<double>(weight.size(0));
    }
    if (name == "aten::matmul" || name == "aten::mm" || name == "aten::bmm")
      terms = static_cast<double>(valued(argument("self"), frame, pass).toTensor().size(-1));
    if (terms > 0) count_multiply_adds(static_cast<double>(output.numel()) * terms);
  }

  std::shared_ptr<const GraphFile> file_;
  std::size_t entering_;
  std::map<Key, std::size_t> places_;
  std::vector<ParameterSpec> parameters_;
  std::vector<BufferSpec> buffers_;
  std::vector<at::Tensor> constants_;
  std::vector<Call> calls_;
  std::vector<std::size_t> leaving_;
  bool clones_ = false;  ///< an operator may write into the model's input, which is the loader's
};

}  // namespace

LayerPtr graph_layer(std::shared_ptr<const GraphFile> file, const GraphRun& run) {
  auto layer = std::make_shared<GraphLayer>(std::move(file), run);
  layer->set_name(run.name);
  return layer;
}

}  // namespace pipewright
