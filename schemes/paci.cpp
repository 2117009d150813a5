// SPDX-License-Identifier: Apache-2.0
// PACI (2026, arXiv 2606.07881): 1F1B without flush and without stashed weights. Forwards and
// backwards read the newest weights, so one version is kept; M micro-batches are accumulated for an
// update. Micro-batch f is forwarded by stage k, D = N−1−k, after ⌊max(0, f−D)/M⌋ updates and goes
// back after ⌊f/M⌋, so the two differ by at most ⌈D/M⌉ ≤ ⌈(N−1)/M⌉. It is `pipedream` with
// weight_stashing: false.
#include "core/config/options.h"
#include "core/schedule/builders.h"

namespace pipewright {
namespace {

class Paci final : public Scheme {
 public:
  explicit Paci(Options&) {}

  Schedule schedule(const PipelineShape& shape) const override {
    return pipeline_schedule(shape, {.flush = false}, latest_weights, latest_weights);
  }
  bool repeats() const override { return true; }

  std::string remark() const override {
    return "paci: a backward computes with weights that are at most ⌈(N−1)/M⌉ updates newer than "
           "those of its forward, for N stages and M micro-batches; the bound is unverified "
           "against the paper's text";
  }
};

}  // namespace

PIPEWRIGHT_SCHEME(paci, Paci,
                  "PACI: asynchronous 1F1B that keeps one version, micro-batches accumulated "
                  "(2026).")

}  // namespace pipewright
