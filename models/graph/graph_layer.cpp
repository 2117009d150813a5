// SPDX-License-Identifier: Apache-2.0
#include "models/graph/graph_layer.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "core/base/error_at.h"
#include "core/base/mutex.h"
#include "core/nn/composite.h"
#include "core/nn/deferred_statistics.h"
#include "core/nn/meta/meta_kernels.h"
#include "core/nn/meta/on_meta.h"
#include "core/tensors/torch.h"
#include "core/tensors/upload.h"
#include "models/graph/graph_call.h"
#include "models/graph/graph_drops.h"
#include "models/graph/graph_meta.h"
#include "models/graph/graph_operators.h"
#include "models/graph/graph_schema.h"

namespace pipewright {
namespace {

bool is_norm(const GraphNode& node) {
  return node.name == kBatchNormOperator || node.name == "aten::layer_norm";
}

class GraphLayer final : public BoundaryLayer {
 public:
  GraphLayer(std::shared_ptr<const GraphFile> file, const GraphRun& run)
      : file_(std::move(file)), entering_(run.enters.size()) {
    for (const std::size_t i : run.again) nodes_.push_back(&file_->nodes[i]);
    for (std::size_t i = run.first; i < run.last; ++i) nodes_.push_back(&file_->nodes[i]);
    for (const std::string& name : run.enters) place("value", name);
    declare();
    for (const GraphNode* node : nodes_) calls_.push_back(call(*node));
    for (const std::string& name : run.leaves) leaving_.push_back(places_.at({"value", name}));
    find_ends();
    clones_ = run.first == 0 && std::ranges::any_of(nodes_, [](const GraphNode* node) {
                return !operator_use(*node).writes.empty();
              });
  }

  void set_name(std::string name) override {
    for (const GraphCall& each : calls_) name_drops(each, name);
    Layer::set_name(std::move(name));
  }

  std::vector<ParameterSpec> parameters() const override { return parameters_; }
  std::vector<BufferSpec> buffers() const override { return buffers_; }

  Tensors forward_all(const Tensors& inputs, std::span<const at::Tensor> parameters,
                      std::span<at::Tensor> buffers, const Pass& pass) const override {
    const auto behind = inputs.begin() + static_cast<std::ptrdiff_t>(entering_);
    const Tensors own(inputs.begin(), behind);
    const at::ScalarType format = activation_type(own, pass);
    verify(own, parameters, buffers, format);
    GraphFrame frame = filled(own, parameters, buffers, format);
    for (const GraphCall& each : calls_) {
      at_node(each, [&] { run(each, frame, pass); });
      for (const std::size_t place : each.ends) frame.tensors[place].reset();
    }
    Tensors outputs;
    for (const std::size_t place : leaving_) outputs.push_back(frame.tensors[place]);
    outputs.append(behind, inputs.end());  // weights that an earlier layer lends to a later one
    return outputs;
  }

 private:
  using Key = std::pair<std::string, std::string>;  // kind and name of a reference

  std::size_t place(const std::string& kind, const std::string& name) {
    return places_.emplace(Key{kind, name}, places_.size()).first->second;
  }

  /// Notes after which call each value is needed no more, so that a forward holds no other tensors
  /// than a module's forward does.
  void find_ends() {
    std::set<std::size_t> needed(leaving_.begin(), leaving_.end());
    const auto note = [&](GraphCall& last, std::size_t place) {
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

  template <class Visit>
  void for_each_own(const Visit& visit) const {
    for (const GraphNode* node : nodes_)
      for (const auto& [argument, value] : node->arguments)
        for_each_reference(value, [&](const GraphReference& to) { visit(*node, to); });
  }

  /// Declares the parameters and statistics that the run reads, in the order of their first use.
  /// Parameters of norms stay wide in mixed precision, because norms compute in the wide format.
  void declare() {
    std::map<std::string, bool> exact;
    for_each_own([&](const GraphNode& node, const GraphReference& to) {
      if (to.kind != "parameter") return;
      const auto [found, fresh] = exact.emplace(to.name, is_norm(node));
      found->second = found->second && is_norm(node);
    });
    // A name that begins with a dot is a full name (parameter_name()).
    for (const std::string kind : {"parameter", "buffer", "constant"})
      for_each_own([&](const GraphNode&, const GraphReference& to) {
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

  GraphCall call(const GraphNode& node) {
    GraphCall made;
    made.node = &node;
    made.kind = kind_of(node);
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
    made.drops = drops_of(made);
    if (made.kind == CallKind::BatchNorm) check_norm(made);
    return made;
  }

  static void check_norm(const GraphCall& norm) {
    if (norm.outputs.size() != 1) throw data_error(norm.node->where, "a batch norm has one output");
    for (const char* each : {"weight", "bias", "running_mean", "running_var"})
      if (norm.argument(each)->source != MatchedArgument::Source::Frame)
        throw data_error(norm.node->where, "the batch norm has no ", each,
                         "; expected affine and track_running_stats to be True");
  }

  GraphFrame filled(const Tensors& inputs, std::span<const at::Tensor> parameters,
                    std::span<const at::Tensor> buffers, at::ScalarType format) const {
    GraphFrame frame;
    frame.tensors.resize(places_.size());
    std::size_t next = 0;
    PIPEWRIGHT_CHECK(inputs.size() == entering_, "layer ", name(), " got ", inputs.size());
    for (const at::Tensor& input : inputs) frame.tensors[next++] = clones_ ? input.clone() : input;
    frame.batch = inputs[0].size(0);
    frame.device = inputs[0].device();
    frame.type = format;
    for (const at::Tensor& each : parameters) frame.tensors[next++] = each;
    for (const at::Tensor& each : buffers) frame.tensors[next++] = each;
    for (const at::Tensor& each : constants_)
      frame.tensors[next++] =
          upload(each.to(each.is_floating_point() ? frame.type : each.scalar_type()), frame.device);
    return frame;
  }

  /// The format of the inputs; of token ids, that of the pass. The parameters may be those of norms
  /// only, which are wide.
  static at::ScalarType activation_type(const Tensors& inputs, const Pass& pass) {
    for (const at::Tensor& input : inputs)
      if (input.is_floating_point()) return input.scalar_type();
    return pass.format;
  }

  /// Computes without memory what the forwards of this batch will compute, once for its size: a
  /// file that was sent takes no memory that it does not declare.
  void verify(const Tensors& inputs, std::span<const at::Tensor> parameters,
              std::span<const at::Tensor> buffers, at::ScalarType format) const {
    const std::int64_t batch = inputs.at(0).size(0);
    const Lock lock(verifying_);
    if (verified_.contains(batch)) return;
    fill_meta_kernels();
    const at::NoGradGuard no_grad;
    const auto on_meta = [](std::span<const at::Tensor> tensors) {
      Tensors all;
      for (const at::Tensor& each : tensors)
        all.push_back(at::empty_like(each, each.options().device(at::kMeta)));
      return all;
    };
    Tensors statistics = on_meta(buffers);
    GraphFrame frame = filled(on_meta(inputs), on_meta(parameters), statistics, format);
    for (const GraphCall& each : calls_) at_node(each, [&] { verify_on_meta(each, frame); });
    verified_.insert(batch);
  }

  void run(const GraphCall& each, GraphFrame& frame, const Pass& pass) const {
    if (each.kind == CallKind::BatchNorm)
      frame.tensors[each.outputs.at(0)] = normalised(each, frame, pass);
    else if (frame.device.is_meta())
      run_on_meta(each, frame, pass);
    else if (!each.drops.empty() && (each.kind == CallKind::Dropout || draws(each, pass)))
      run_dropping(each, frame, pass);
    else
      each.run(frame, pass);
  }

  /// LibTorch's errors get the node's place.
  template <class Run>
  static void at_node(const GraphCall& each, const Run& run) {
    try {
      run();
    } catch (const c10::OutOfMemoryError&) {
      throw;
    } catch (const c10::NotImplementedError&) {
      throw data_error(each.node->where,
                       "does not say the sizes of its results without computing them");
    } catch (const c10::Error& error) {
      const std::string what = error.what_without_backtrace();
      throw data_error(each.node->where, what.substr(0, what.find('\n')));
    }
  }

  /// Batch norm as our own layer computes it: recomputed forwards leave the statistics alone, and
  /// deferred ones are gathered.
  at::Tensor normalised(const GraphCall& each, const GraphFrame& frame, const Pass& pass) const {
    const auto tensor = [&](const char* name) { return each.tensor(name, frame, pass); };
    const at::Tensor input = tensor("input"), weight = tensor("weight"), bias = tensor("bias");
    std::array<at::Tensor, 2> running{tensor("running_mean"), tensor("running_var")};
    const bool training = each.value("training", frame, pass).toBool();
    const double momentum = each.argument("momentum")->constant.toDouble();
    const double eps = each.argument("eps")->constant.toDouble();
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

  std::shared_ptr<const GraphFile> file_;
  std::vector<const GraphNode*> nodes_;
  std::size_t entering_;
  std::map<Key, std::size_t> places_;
  std::vector<ParameterSpec> parameters_;
  std::vector<BufferSpec> buffers_;
  std::vector<at::Tensor> constants_;
  std::vector<GraphCall> calls_;
  std::vector<std::size_t> leaving_;
  mutable Mutex verifying_;
  mutable std::set<std::int64_t> verified_ PIPEWRIGHT_GUARDED_BY(verifying_);  ///< sizes of batches
  bool clones_ = false;  ///< an operator may write into the model's input, which is the loader's
};

}  // namespace

LayerPtr graph_layer(std::shared_ptr<const GraphFile> file, const GraphRun& run) {
  auto layer = std::make_shared<GraphLayer>(std::move(file), run);
  layer->set_name(run.name);
  return layer;
}

}  // namespace pipewright
