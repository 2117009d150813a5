#include "core/base/error.h"
#include "core/stage/layers.h"
#include "core/stage/torch.h"

namespace pipewright {
namespace {

/// Training: y = γ (x − mean)/√(var + eps) + β with the micro-batch's mean and biased variance, and
/// running ← (1 − momentum)·running + momentum·(mean, var·n/(n − 1)), n values per channel.
class BatchNorm final : public Layer {
 public:
  BatchNorm(std::int64_t channels, double eps, double momentum, double initial_weight)
      : channels_(channels), eps_(eps), momentum_(momentum), initial_weight_(initial_weight) {
    PIPEWRIGHT_CHECK(channels > 0, "batch-norm of ", channels, " channels");
  }

  std::vector<ParameterSpec> parameters() const override {
    using Kind = Initializer::Kind;
    return {{"weight", {channels_}, {Kind::Constant, initial_weight_}},
            {"bias", {channels_}, {Kind::Constant, 0}}};
  }

  std::vector<BufferSpec> buffers() const override {
    return {{"running_mean", {channels_}, 0}, {"running_var", {channels_}, 1}};
  }

  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor> parameters,
                     std::span<at::Tensor> buffers, const Pass& pass) const override {
    if (pass.training && input.numel() <= channels_)
      throw Error(ErrorKind::Experiment,
                  concat("batch-norm of layer '", name(),
                         "' got one value per channel; it needs "
                         "two or more samples per micro-batch, or larger images"));
    if (input.is_meta()) return at::empty_like(input);  // LibTorch knows it in Python only
    return at::batch_norm(input, parameters[0], parameters[1], buffers[0], buffers[1],
                          pass.training, momentum_, eps_, /*cudnn_enabled=*/true);
  }

 private:
  std::int64_t channels_;
  double eps_, momentum_, initial_weight_;
};

}  // namespace

LayerPtr batch_norm(std::int64_t channels, double eps, double momentum, double initial_weight) {
  return std::make_shared<BatchNorm>(channels, eps, momentum, initial_weight);
}

}  // namespace pipewright
