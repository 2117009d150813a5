// SPDX-License-Identifier: Apache-2.0
/// Maps actions of an execution to the samples they compute on and the mini-batch of the training.
#pragma once

#include "core/codecs/codec.h"
#include "core/runtime/program.h"
#include "core/runtime/run_request.h"

namespace pipewright {

/// Thread-safe.
class PassSamples {
 public:
  /// Both arguments must outlive it.
  PassSamples(const Program& program, const RunRequest& request)
      : shape_(program.schedule.shape), request_(request) {}

  Share share(const Action& action) const;
  Pass pass(const Action& action, const Share& share) const;
  CodecCall codec_call(const Action& action) const;
  /// Weight of a pass's mean loss in the gradient: its fraction of the mini-batch's samples, or
  /// with `sum_gradients` the replica's fraction.
  double loss_factor(const Share& share) const;
  /// Number under which a stage keeps the forward of this mini-batch and micro-batch.
  int id(const Action& action) const;
  /// Where an action runs, for errors: "worker 1, stage 1, 1F17".
  std::string where(const Action& action, int worker) const;

 private:
  const PipelineShape& shape_;
  const RunRequest& request_;
};

}  // namespace pipewright
