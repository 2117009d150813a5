// SPDX-License-Identifier: Apache-2.0
#include "core/nn/layers/earlier_slices.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <utility>

#include "core/base/error.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

constexpr std::int64_t kTokens = -2;  // the dimension of tokens

/// The backward of EarlierSlices::continued(): the end of the gradient is that of the slice itself,
/// the beginning is left for the slices before it.
class Continued final : public torch::autograd::Node {
 public:
  Continued(std::shared_ptr<EarlierSlices::Kept> kept, std::int64_t before, std::int64_t tokens,
            torch::autograd::edge_list next)
      : Node(std::move(next)), kept_(std::move(kept)), before_(before), tokens_(tokens) {}

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    const at::NoGradGuard no_grad;
    at::Tensor all = gradients[0];
    const at::Tensor later = std::exchange(kept_->gradient, at::Tensor());
    if (later.defined()) all = all.defined() ? all + later : later;
    if (!all.defined()) return {at::Tensor()};
    if (before_ > 0) kept_->gradient = all.narrow(kTokens, 0, before_);
    return {all.narrow(kTokens, before_, tokens_)};
  }

  void release_variables() override { kept_.reset(); }
  std::string name() const override { return "Continued"; }

 private:
  std::shared_ptr<EarlierSlices::Kept> kept_;
  std::int64_t before_, tokens_;
};

}  // namespace

at::Tensor EarlierSlices::continued(const std::string& name, const at::Tensor& own,
                                    const Pass& pass) {
  std::shared_ptr<Kept>& kept = kept_[name];
  const std::int64_t tokens = own.size(kTokens), before = pass.slice * tokens;
  if (!kept) {
    PIPEWRIGHT_CHECK(pass.slice == 0, "slice ", pass.slice, " of '", name, "' is the first");
    std::vector<std::int64_t> sizes = own.sizes().vec();
    sizes[sizes.size() - 2] *= pass.slices;
    kept = std::make_shared<Kept>(Kept{.values = at::empty(sizes, own.options()), .gradient = {}});
  }
  {
    const at::NoGradGuard no_grad;
    kept->values.narrow(kTokens, before, tokens).copy_(own);
  }
  // Autograd counts the changes of a tensor whose values a graph has saved. A later slice changes
  // none that this one can see, so the result has a count of its own.
  at::Tensor so_far = kept->values.narrow(kTokens, 0, before + tokens).variable_data();
  if (at::GradMode::is_enabled() && own.requires_grad())
    torch::autograd::set_history(
        so_far, std::make_shared<Continued>(kept, before, tokens,
                                            torch::autograd::collect_next_edges(own)));
  return so_far;
}

}  // namespace pipewright
