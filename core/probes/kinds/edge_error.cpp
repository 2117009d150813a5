// SPDX-License-Identifier: Apache-2.0
// edge_error: what a codec loses on an edge: |x − y| / |x| of all values x of a message that a
// stage receives and y of their decoded form, of activations (edge before the stage) and of
// gradients (edge behind it). The original tensors of the messages that are measured cross the edge
// as well; they are not counted as traffic.
#include <cmath>

#include "core/probes/measures.h"
#include "core/probes/probe.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

class EdgeAtStage final : public StageProbe {
 public:
  void compared(const Action& pass, const Tensors& sent, const Tensors& arrived,
                const Finding& found) override {
    const at::NoGradGuard no_grad;
    double error = 0, whole = 0;
    for (std::size_t i = 0; i < sent.size(); ++i) {
      const at::Tensor original = sent[i].to(at::kDouble);
      error += squares_of(original - arrived[i]);
      whole += squares_of(original);
    }
    if (whole > 0)
      found(pass.kind == ActionKind::Forward ? "activation" : "gradient", std::sqrt(error / whole));
  }
};

class EdgeError final : public Probe {
 public:
  using Probe::Probe;
  bool compares() const override { return true; }
  std::string refusal(const ProbedTraining& training) const override {
    if (training.compresses) return {};
    return "needs a codec on an edge; pipeline.compression is none";
  }
  std::vector<Quantity> quantities() const override {
    return {{"activation, gradient",
             "length of what the codec loses of a message that the stage receives / length of the "
             "message"}};
  }
  std::unique_ptr<StageProbe> at(const ProbedStage&) const override {
    return std::make_unique<EdgeAtStage>();
  }
};

}  // namespace

PIPEWRIGHT_PROBE(edge_error, EdgeError, "What codecs lose of activations and gradients, per edge.")

}  // namespace pipewright
