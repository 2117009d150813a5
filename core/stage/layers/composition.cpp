/// Composite layers hand each part its run of the parameters and buffers.
#include <set>

#include "core/base/error.h"
#include "core/stage/layers.h"
#include "core/stage/torch.h"

namespace pipewright {
namespace {

/// Layers whose parameters and buffers lie one after another in the composite's.
class Composite : public Layer {
 public:
  std::vector<ParameterSpec> parameters() const override {
    std::vector<ParameterSpec> specs;
    for (const Part& part : parts_)
      for (ParameterSpec& spec : part.layer->parameters()) {
        spec.name = part.prefix + spec.name;
        specs.push_back(std::move(spec));
      }
    return specs;
  }

  std::vector<BufferSpec> buffers() const override {
    std::vector<BufferSpec> specs;
    for (const Part& part : parts_)
      for (BufferSpec& spec : part.layer->buffers()) {
        spec.name = part.prefix + spec.name;
        specs.push_back(std::move(spec));
      }
    return specs;
  }

 protected:
  struct Part {
    LayerPtr layer;
    std::string prefix;  ///< of its parameters' names
    std::size_t first_parameter, parameters, first_buffer, buffers;

    at::Tensor forward(const at::Tensor& x, std::span<const at::Tensor> all_parameters,
                       std::span<at::Tensor> all_buffers, const Pass& pass) const {
      return layer->forward(x, all_parameters.subspan(first_parameter, parameters),
                            all_buffers.subspan(first_buffer, buffers), pass);
    }
  };

  void add(LayerPtr layer, std::string prefix) {
    PIPEWRIGHT_CHECK(layer, "part ", parts_.size(), " of a composite layer is missing");
    const std::size_t parameters = layer->parameters().size(), buffers = layer->buffers().size();
    parts_.push_back(
        {std::move(layer), std::move(prefix), parameters_, parameters, buffers_, buffers});
    parameters_ += parameters;
    buffers_ += buffers;
  }

  void check_names() const {
    std::set<std::string> seen;
    for (const ParameterSpec& spec : parameters())
      PIPEWRIGHT_CHECK(seen.insert(spec.name).second, "two parameters are named '", spec.name, "'");
    for (const BufferSpec& spec : buffers())
      PIPEWRIGHT_CHECK(seen.insert(spec.name).second, "two buffers are named '", spec.name, "'");
  }

  std::vector<Part> parts_;

 private:
  std::size_t parameters_ = 0, buffers_ = 0;
};

class Sequence final : public Composite {
 public:
  explicit Sequence(std::vector<std::pair<std::string, LayerPtr>> children) {
    for (auto& [child_name, layer] : children) {
      add(std::move(layer), child_name.empty() ? "" : child_name + ".");
      names_.push_back(child_name.empty() ? std::to_string(names_.size()) : child_name);
    }
    check_names();
  }

  void set_name(std::string name) override {
    for (std::size_t c = 0; c < parts_.size(); ++c)
      parts_[c].layer->set_name(name + "." + names_[c]);
    Layer::set_name(std::move(name));
  }

  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor> parameters,
                     std::span<at::Tensor> buffers, const Pass& pass) const override {
    at::Tensor x = input;
    for (const Part& part : parts_) x = part.forward(x, parameters, buffers, pass);
    return x;
  }

 private:
  std::vector<std::string> names_;
};

class Residual final : public Composite {
 public:
  Residual(LayerPtr body, LayerPtr shortcut, Activation activation) : activation_(activation) {
    add(std::move(body), "");
    if (shortcut) add(std::move(shortcut), "shortcut.");
    check_names();
  }

  void set_name(std::string name) override {
    parts_[0].layer->set_name(name);
    if (parts_.size() > 1) parts_[1].layer->set_name(name + ".shortcut");
    Layer::set_name(std::move(name));
  }

  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor> parameters,
                     std::span<at::Tensor> buffers, const Pass& pass) const override {
    const at::Tensor body = parts_[0].forward(input, parameters, buffers, pass);
    return activate_in_place(
        activation_,
        at::add(body,
                parts_.size() > 1 ? parts_[1].forward(input, parameters, buffers, pass) : input));
  }

 private:
  Activation activation_;
};

}  // namespace

LayerPtr sequence(std::vector<std::pair<std::string, LayerPtr>> children) {
  return std::make_shared<Sequence>(std::move(children));
}

LayerPtr residual(LayerPtr body, LayerPtr shortcut, Activation activation) {
  return std::make_shared<Residual>(std::move(body), std::move(shortcut), activation);
}

}  // namespace pipewright
