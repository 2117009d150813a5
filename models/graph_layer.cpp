// SPDX-License-Identifier: Apache-2.0
#include "models/graph_layer.h"

#include <ATen/ScalarOps.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <limits>
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
#include "models/graph_operators.h"

namespace pipewright {
namespace {

/// Where an argument of an operator comes from when the layer runs.
struct Slot {
  enum class Source : std::uint8_t { Constant, Frame, Tensors, Size, Sizes, Switch, Type, Device };
  Source source = Source::Constant;
  c10::IValue constant;
  std::size_t place = 0;    ///< in the frame
  GraphSize size{};         ///< factor × batch + constant
  std::vector<Slot> items;  ///< of a list of tensors or of sizes
  bool optional = false;    ///< the list has optional tensors
};

/// A node whose arguments are matched with its operator's schema.
struct Call {
  const GraphNode* node = nullptr;
  std::optional<c10::OperatorHandle> handle;  ///< none: a dropout
  std::vector<Slot> slots;                    ///< one for each argument of the schema
  std::vector<std::size_t> outputs;           ///< places in the frame
  LayerPtr dropout;
};

constexpr std::array<std::pair<std::string_view, at::ScalarType>, 7> kNamedTypes{{
    {"float64", at::kDouble},
    {"float32", at::kFloat},
    {"float16", at::kHalf},
    {"bfloat16", at::kBFloat16},
    {"int64", at::kLong},
    {"int32", at::kInt},
    {"bool", at::kBool},
}};

constexpr std::array<std::pair<std::string_view, at::MemoryFormat>, 3> kNamedFormats{{
    {"contiguous_format", at::MemoryFormat::Contiguous},
    {"preserve_format", at::MemoryFormat::Preserve},
    {"channels_last", at::MemoryFormat::ChannelsLast},
}};

/// Matches arguments with a schema. `place` gives the frame's place of a reference.
template <class Place>
class Matching {
 public:
  Matching(const GraphNode& node, const Place& place) : node_(node), place_(place) {}

  std::vector<Slot> slots(const c10::FunctionSchema& schema) const {
    for (const auto& [name, value] : node_.arguments)
      if (!schema.argumentIndexWithName(name))
        misfit(schema, concat("there is no argument '", name, "'"));
    std::vector<Slot> all;
    for (const c10::Argument& argument : schema.arguments()) {
      const auto given = std::ranges::find(node_.arguments, argument.name(),
                                           [](const auto& field) { return field.first; });
      if (argument.name() == "device") {
        all.push_back({.source = Slot::Source::Device});
      } else if (given == node_.arguments.end()) {
        if (!argument.default_value())
          misfit(schema, concat("the argument '", argument.name(), "' is missing"));
        all.push_back({.constant = *argument.default_value()});
      } else if (auto slot = matched(argument, given->second)) {
        all.push_back(std::move(*slot));
      } else {
        misfit(schema, concat("the argument '", argument.name(), "' is ", given->second.described(),
                              "; expected ", argument.type()->str()));
      }
    }
    return all;
  }

 private:
  using Kind = Value::Kind;
  using Found = std::optional<Slot>;

  [[noreturn]] void misfit(const c10::FunctionSchema& schema, const std::string& what) const {
    std::ostringstream ours;
    ours << schema;
    throw Error(ErrorKind::Data,
                concat(what, "; this LibTorch has ", ours.str(), ", the file ", node_.schema),
                node_.where);
  }

  Found matched(const c10::Argument& argument, const Value& value) const {
    if ((argument.name() == "training" || argument.name() == "train") && value.is(Kind::Flag))
      return Slot{.source = Slot::Source::Switch, .constant = value.flag};
    return of_type(*argument.type(), value);
  }

  Found of_type(const c10::Type& type, const Value& value) const {
    switch (type.kind()) {
      case c10::TypeKind::OptionalType:
        if (value.is(Kind::Null)) return Slot{};
        return of_type(*type.castRaw<c10::OptionalType>()->getElementType(), value);
      case c10::TypeKind::ListType:
        return list(*type.castRaw<c10::ListType>()->getElementType(), value);
      case c10::TypeKind::TensorType: return tensor(value);
      case c10::TypeKind::NumberType: return number(value);
      case c10::TypeKind::FloatType:
        if (const Found found = number(value); found && found->source == Slot::Source::Constant)
          return Slot{.constant = found->constant.toScalar().toDouble()};
        return {};
      case c10::TypeKind::IntType: return integer(value);
      case c10::TypeKind::BoolType:
        if (value.is(Kind::Flag)) return Slot{.constant = value.flag};
        return {};
      case c10::TypeKind::StringType:
        if (value.is(Kind::Text)) return Slot{.constant = value.text};
        return {};
      default: return {};
    }
  }

  Found tensor(const Value& value) const {
    if (const GraphReference to = reference_of(value); !to.kind.empty())
      return Slot{.source = Slot::Source::Frame, .place = place_(to)};
    const Found scalar = number(value);
    if (!scalar || scalar->source != Slot::Source::Constant) return {};
    // PyTorch gives such a number no say in the type of the result.
    return Slot{.constant = at::native::wrapped_scalar_tensor(scalar->constant.toScalar())};
  }

  Found number(const Value& value) const {
    if (value.is(Kind::Integer)) return Slot{.constant = at::Scalar(value.integer)};
    if (value.is(Kind::Number)) return Slot{.constant = at::Scalar(value.number)};
    if (value.is(Kind::Flag)) return Slot{.constant = at::Scalar(value.flag)};
    if (const Value* named = only(value, "number"); named != nullptr) {
      constexpr double infinity = std::numeric_limits<double>::infinity();
      if (named->text == "inf") return Slot{.constant = at::Scalar(infinity)};
      if (named->text == "-inf") return Slot{.constant = at::Scalar(-infinity)};
      return {};
    }
    return size(value);
  }

  Found integer(const Value& value) const {
    if (value.is(Kind::Integer)) return Slot{.constant = value.integer};
    if (const Value* type = only(value, "type"); type != nullptr)
      for (const auto& [name, which] : kNamedTypes)
        if (name == type->text)
          return Slot{
              .source = at::isFloatingType(which) ? Slot::Source::Type : Slot::Source::Constant,
              .constant = static_cast<std::int64_t>(which)};
    if (const Value* format = only(value, "memory_format"); format != nullptr)
      for (const auto& [name, which] : kNamedFormats)
        if (name == format->text) return Slot{.constant = static_cast<std::int64_t>(which)};
    return size(value);
  }

  Found size(const Value& value) const {
    const Value* pair = only(value, "size");
    if (pair == nullptr || pair->items.size() != 2 || !pair->items[0].is(Kind::Integer) ||
        !pair->items[1].is(Kind::Integer))
      return {};
    return Slot{.source = Slot::Source::Size,
                .size = {pair->items[0].integer, pair->items[1].integer}};
  }

  Found list(const c10::Type& element, const Value& value) const {
    if (!value.is(Kind::Sequence)) {  // a number stands for a list of it
      if (element.kind() != c10::TypeKind::IntType || !value.is(Kind::Integer)) return {};
      return Slot{.constant = std::vector<std::int64_t>{value.integer}};
    }
    Slot all;
    for (const Value& item : value.items) {
      Found found = of_type(element, item);
      if (!found) return {};
      all.items.push_back(std::move(*found));
    }
    switch (element.kind()) {
      case c10::TypeKind::OptionalType: all.optional = true; [[fallthrough]];
      case c10::TypeKind::TensorType: all.source = Slot::Source::Tensors; return all;
      case c10::TypeKind::IntType: all.source = Slot::Source::Sizes; return all;
      case c10::TypeKind::FloatType: return constants<double>(all);
      case c10::TypeKind::BoolType: return constants<bool>(all);
      default: return {};
    }
  }

  template <class T>
  static Slot constants(const Slot& all) {
    c10::List<T> values;
    for (const Slot& item : all.items) values.push_back(item.constant.to<T>());
    return {.constant = values};
  }

  static const Value* only(const Value& value, std::string_view key) {
    return value.is(Kind::Mapping) && value.fields.size() == 1 ? value.find(key) : nullptr;
  }

  const GraphNode& node_;
  const Place& place_;
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
    clones_ = run.first == 0;
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
    for (const Call& each : calls_) run(each, frame, pass);
    Tensors outputs;
    for (const std::size_t place : leaving_) outputs.push_back(frame.tensors[place]);
    return outputs;
  }

 private:
  using Key = std::pair<std::string, std::string>;  // kind and name of a reference

  std::size_t place(const std::string& kind, const std::string& name) {
    return places_.emplace(Key{kind, name}, places_.size()).first->second;
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
    Call made{.node = &node, .handle = {}, .slots = {}, .outputs = {}, .dropout = nullptr};
    made.handle = c10::Dispatcher::singleton().findSchema({node.name, node.overload});
    PIPEWRIGHT_CHECK(made.handle.has_value(), node.name);
    const auto placed = [&](const GraphReference& to) {
      const auto found = places_.find({to.kind, to.name});
      PIPEWRIGHT_CHECK(found != places_.end(), to.kind, " ", to.name);
      return found->second;
    };
    made.slots = Matching(node, placed).slots(made.handle->schema());
    for (const GraphOutput& output : node.outputs)
      made.outputs.push_back(place("value", output.name));
    check(made);
    return made;
  }

  const Slot* slot(const Call& of, const std::string& argument) const {
    const auto index = of.handle->schema().argumentIndexWithName(argument);
    return index ? &of.slots[static_cast<std::size_t>(*index)] : nullptr;
  }

  void check(Call& made) {
    const std::string& name = made.node->name;
    const auto refuse = [&](const std::string& message) {
      throw Error(ErrorKind::Data, message, made.node->where);
    };
    if (is_dropout(name)) {
      const double p = slot(made, "p")->constant.toDouble();
      if (!(p >= 0 && p <= 1) || made.outputs.size() != 1)
        refuse(concat("the probability of dropping is ", p, "; expected 0 to 1"));
      made.dropout = name == "aten::feature_dropout" ? channel_dropout(p) : dropout(p);
    }
    for (const char* random : {"dropout_p", "dropout"})
      if (const Slot* found = slot(made, random))
        if (found->constant.isDouble() && found->constant.toDouble() != 0)
          refuse(concat("draws random numbers inside the operator (", random, " is ",
                        found->constant.toDouble(),
                        "), which no seed of ours reaches; expected 0, set in the module"));
    if (name == "aten::batch_norm") {
      for (const char* each : {"weight", "bias", "running_mean", "running_var"})
        if (slot(made, each)->source != Slot::Source::Frame)
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

  static c10::IValue valued(const Slot& from, const Frame& frame, const Pass& pass) {
    using Source = Slot::Source;
    switch (from.source) {
      case Source::Constant: return from.constant;
      case Source::Frame: return frame.tensors[from.place];
      case Source::Size: return frame.of(from.size);
      case Source::Switch: return from.constant.toBool() && pass.training;
      case Source::Type: return static_cast<std::int64_t>(frame.type);
      case Source::Device: return frame.device;
      case Source::Sizes: {
        std::vector<std::int64_t> sizes;
        for (const Slot& item : from.items) sizes.push_back(valued(item, frame, pass).toInt());
        return sizes;
      }
      case Source::Tensors: break;
    }
    c10::List<at::Tensor> tensors;
    c10::List<std::optional<at::Tensor>> optionals;
    for (const Slot& item : from.items) {
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
    const at::Tensor input = valued(each.slots[0], frame, pass).toTensor();
    const Slot* train = slot(each, "train");
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
      return valued(*slot(each, name), frame, pass).toTensor();
    };
    const at::Tensor input = tensor("input"), weight = tensor("weight"), bias = tensor("bias");
    std::array<at::Tensor, 2> running{tensor("running_mean"), tensor("running_var")};
    const bool training = valued(*slot(each, "training"), frame, pass).toBool();
    const double momentum = slot(each, "momentum")->constant.toDouble();
    const double eps = slot(each, "eps")->constant.toDouble();
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
    for (const Slot& from : each.slots) stack.push_back(valued(from, frame, pass));
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
    for (const Slot& from : each.slots) {
      if (from.source == Slot::Source::Frame) inputs.push_back(frame.tensors[from.place]);
      for (const Slot& item : from.items)
        if (item.source == Slot::Source::Frame) inputs.push_back(frame.tensors[item.place]);
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
    const auto argument = [&](const char* key) -> const Slot& { return *slot(each, key); };
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
  bool clones_ = false;  ///< the model's input may be written in place
};

}  // namespace

LayerPtr graph_layer(std::shared_ptr<const GraphFile> file, const GraphRun& run) {
  auto layer = std::make_shared<GraphLayer>(std::move(file), run);
  layer->set_name(run.name);
  return layer;
}

}  // namespace pipewright
