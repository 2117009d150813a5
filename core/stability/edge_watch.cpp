// SPDX-License-Identifier: Apache-2.0
#include "core/stability/edge_watch.h"

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/base/printed.h"

namespace pipewright {

EdgeWatch::EdgeWatch(StabilityReport report, std::int64_t minibatches_per_epoch)
    : report_(std::move(report)), minibatches_per_epoch_(minibatches_per_epoch) {}

double EdgeWatch::ratio(int stage, const Standing& standing) const {
  return standing.lr * standing.curvature / report_.stages[as_size(stage)].edge;
}

std::string EdgeWatch::text_of(int stage, const Standing& standing) const {
  StabilityReport report = report_;
  report.lr = standing.lr;
  return standing_text(report, stage, standing.curvature);
}

void EdgeWatch::measured(int stage, double curvature, double lr, std::int64_t minibatches) {
  Standing& standing = stages_[stage];
  standing.curvature = curvature;
  standing.lr = lr;
  standing.minibatches = minibatches;
  if (!(ratio(stage, standing) > 1))
    standing.past_since.reset();
  else if (!standing.past_since)
    standing.past_since = minibatches;
}

std::string EdgeWatch::warning() {
  for (auto& [stage, standing] : stages_) {
    const bool long_past = standing.past_since &&
                           standing.minibatches - *standing.past_since >= minibatches_per_epoch_;
    if (!long_past || standing.told) continue;
    standing.told = true;
    const StageStability& own = report_.stages[as_size(stage)];
    return concat("warning: stage ", stage,
                  " has exceeded its stability limit for one epoch: lr × ",
                  report_.dynamics.rule.preconditioned ? "preconditioned " : "",
                  "sharpness = ", rounded_text(standing.lr * standing.curvature), ", limit ",
                  rounded_text(own.edge), " (", circumstances(report_, own),
                  "). Values near the limit are normal; staying "
                  "above it often leads to divergence");
  }
  return {};
}

std::string EdgeWatch::farthest() const {
  int found = -1;
  double most = 1;
  for (const auto& [stage, standing] : stages_)
    if (const double past = ratio(stage, standing); past > most) {
      most = past;
      found = stage;
    }
  return found < 0 ? std::string() : text_of(found, stages_.at(found));
}

}  // namespace pipewright
