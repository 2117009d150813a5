// SPDX-License-Identifier: Apache-2.0
#include "core/base/error.h"
#include "core/nn/deferred_statistics.h"
#include "core/nn/layers.h"
#include "core/nn/meta/on_meta.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

/// In training: y = γ (x − mean)/√(var + eps) + β with the micro-batch's mean and biased variance,
/// and running ← (1 − momentum)·running + momentum·(mean, var·n/(n − 1)) for n values per channel.
/// With DeferredStatistics the running statistics are updated once per mini-batch instead.
class BatchNorm final : public Layer {
 public:
  BatchNorm(std::int64_t channels, double eps, double momentum, double initial_weight)
      : channels_(channels), eps_(eps), momentum_(momentum), initial_weight_(initial_weight) {
    PIPEWRIGHT_CHECK(channels > 0, "batch-norm of ", channels, " channels");
  }

  std::vector<ParameterSpec> parameters() const override {
    using Kind = Initializer::Kind;
    return {{.name = "weight",
             .shape = {channels_},
             .init = {Kind::Constant, initial_weight_},
             .exact = true},
            {.name = "bias", .shape = {channels_}, .init = {Kind::Constant, 0}, .exact = true}};
  }

  std::vector<BufferSpec> buffers() const override {
    return {{"running_mean", {channels_}, 0}, {"running_var", {channels_}, 1}};
  }

  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor> parameters,
                     std::span<at::Tensor> buffers, const Pass& pass) const override {
    if (pass.training && input.numel() <= channels_)
      throw Error(ErrorKind::Experiment,
                  concat("batch-norm of layer '", name(),
                         "' has one value per channel to normalise; it needs two or more samples "
                         "per micro-batch (loader.batch_size, pipeline.microbatches, "
                         "pipeline.replicas), or larger images"));
    if (input.is_meta())
      return made_on_meta({input, parameters[0], parameters[1]}, at::empty_like(input),
                          {input, at::empty({2, channels_}, parameters[0].options())});
    if (!pass.training || (!pass.recomputing && pass.deferred == nullptr))
      return normalised(input, parameters, buffers[0], buffers[1], pass.training, momentum_);
    if (pass.recomputing) return normalised(input, parameters, {}, {}, true, momentum_);
    // With momentum 1 the kernel writes the micro-batch's own statistics, which it computes anyway.
    const at::Tensor mean = at::zeros_like(buffers[0]), variance = at::zeros_like(buffers[1]);
    const at::Tensor output = normalised(input, parameters, mean, variance, true, 1);
    pass.deferred->add(pass, buffers, momentum_, input.numel() / channels_, mean, variance);
    return output;
  }

 private:
  at::Tensor normalised(const at::Tensor& input, std::span<const at::Tensor> parameters,
                        const at::Tensor& mean, const at::Tensor& variance, bool training,
                        double momentum) const {
    return at::batch_norm(input, parameters[0], parameters[1], mean, variance, training, momentum,
                          eps_, /*cudnn_enabled=*/true);
  }

  std::int64_t channels_;
  double eps_, momentum_, initial_weight_;
};

}  // namespace

LayerPtr batch_norm(std::int64_t channels, double eps, double momentum, double initial_weight) {
  return std::make_shared<BatchNorm>(channels, eps, momentum, initial_weight);
}

}  // namespace pipewright
