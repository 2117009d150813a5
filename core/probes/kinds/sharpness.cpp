// SPDX-License-Identifier: Apache-2.0
// sharpness: the largest eigenvalue of the Hessian of the mean loss of some training samples, for
// each stage with respect to its own parameters and for the whole model; for an optimizer that
// divides steps by P (Adam, AdamW, RMSprop) also that of P^(−1/2) H P^(−1/2) (Cohen et al., 2022):
//   largest, preconditioned.
// It is that of the weights which the update of a measured mini-batch has made at every stage, also
// where the pipeline is full and the stages make them at different times. Each stage copies its own
// then. Where the pipeline is drained next, process 0 gathers the copies, and makes for each of
// these mini-batches a graph that can be differentiated twice, and as many products of the Hessian
// with a vector as Lanczos' method needs for `tolerance`. Until then the copies are kept on the
// host: a model for each mini-batch that is measured between two drained places.
#include "core/probes/lanczos.h"
#include "core/probes/probe.h"
#include "core/probes/whole_model.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

class Sharpness final : public Probe {
 public:
  explicit Sharpness(Options& options)
      : Probe(options),
        samples_(options.integer("samples", 128,
                                 "Training samples whose mean loss is measured, the first ones.",
                                 {1, 1e6})),
        limits_{.tolerance = options.number(
                    "tolerance", 1e-3, "Relative error of an eigenvalue at which its search ends.",
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
  std::int64_t whole_samples() const override { return samples_; }

  // Parameters, their gradients, two vectors of Lanczos' method, and a product with the parts that
  // it is put together of; of a divided Hessian also P^(−1/2), what it was made of, and its product
  // with the vector.
  int whole_copies(bool divided) const override { return divided ? 9 : 6; }

  std::string effort(int stages) const override {
    return concat(samples_, " samples and at most ", limits_.products,
                  " products of the Hessian with a vector for each of ", stages + 1,
                  " eigenvalues, twice as many eigenvalues with an optimizer that divides steps");
  }

  void measure_whole(const ModelInstant& model, const StageFinding& found) const override {
    const WholeModel whole(model);
    const int stages = static_cast<int>(model.layers_per_stage.size());
    for (int stage = 0; stage < stages; ++stage) measure(whole, stage, model.seed, found);
    measure(whole, kWholeModel, model.seed, found);
  }

  void try_on(const ModelInstant& model) const override {
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
                 "Largest eigenvalue of the Hessian, per stage and whole, with the weights that "
                 "the mini-batch's updates have made.")

}  // namespace pipewright
