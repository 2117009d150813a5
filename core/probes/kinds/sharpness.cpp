// SPDX-License-Identifier: Apache-2.0
// sharpness: the largest eigenvalue of the Hessian of the mean loss of some training samples, for
// each stage with respect to its own parameters and for the whole model; for an optimizer that
// divides steps by P (Adam, AdamW, RMSprop) also that of P^(−1/2) H P^(−1/2) (Cohen et al., 2022):
//   largest, preconditioned.
// It is measured where the pipeline is drained, after each `every` mini-batches or at the next such
// place, by process 0, which makes a copy of the model, a graph that can be differentiated twice,
// and as many products of the Hessian with a vector as Lanczos' method needs for `tolerance`.
#include "core/probes/lanczos.h"
#include "core/probes/probe.h"
#include "core/probes/whole_model.h"
#include "core/stage/torch.h"

namespace pipewright {
namespace {

class Sharpness final : public Probe {
 public:
  explicit Sharpness(Options& options)
      : Probe(options),
        samples_(options.integer("samples", 128,
                                 "Training samples whose mean loss is measured, the first ones.",
                                 {1, 1e6})),
        limits_{.tolerance = options.number("tolerance", 1e-3,
                                            "Relative error of an eigenvalue at which its search "
                                            "ends.",
                                            {1e-12, 0.5}),
                .products = static_cast<int>(options.integer(
                    "products", 100,
                    "Most products of the Hessian with a vector for one eigenvalue.", {1, 1e5}))} {}

  std::vector<Quantity> quantities() const override {
    return {{"largest",
             "largest eigenvalue of the Hessian of a stage's weights; without a stage, of all"},
            {"preconditioned",
             "the same of P^-1/2 H P^-1/2, with what the optimizer divides steps by as P"}};
  }
  std::unique_ptr<StageProbe> at(const ProbedStage&) const override { return nullptr; }
  std::int64_t drained_samples() const override { return samples_; }

  void drained(const DrainedModel& model, const StageFinding& found) const override {
    const WholeModel whole(model);
    const int stages = static_cast<int>(model.layers_per_stage.size());
    for (int stage = 0; stage < stages; ++stage) measure(whole, stage, model.seed, found);
    measure(whole, kWholeModel, model.seed, found);
  }

  void try_on(const DrainedModel& model) const override {
    const WholeModel whole(model);
    static_cast<void>(whole.product(
        kWholeModel, at::ones({whole.size(kWholeModel)}, whole.options().requires_grad(false))));
  }

 private:
  void measure(const WholeModel& whole, int stage, std::uint64_t seed,
               const StageFinding& found) const {
    const at::TensorOptions options = whole.options().requires_grad(false);
    const std::int64_t size = whole.size(stage);
    if (size == 0) return;
    const auto plain = [&](const at::Tensor& v) { return whole.product(stage, v); };
    found(stage, "largest", largest_eigenvalue(plain, size, options, seed, limits_).value);
    const at::Tensor divisor = whole.preconditioner(stage);
    if (!divisor.defined()) return;
    const at::Tensor root = divisor.rsqrt();
    const auto scaled = [&](const at::Tensor& v) { return root * whole.product(stage, root * v); };
    found(stage, "preconditioned", largest_eigenvalue(scaled, size, options, seed, limits_).value);
  }

  std::int64_t samples_;
  LanczosLimits limits_;
};

}  // namespace

PIPEWRIGHT_PROBE(sharpness, Sharpness,
                 "Largest eigenvalue of the Hessian, per stage and whole, where the pipeline is "
                 "drained.")

}  // namespace pipewright
