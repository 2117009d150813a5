/// What actions of an execution compute with: which samples, of which mini-batch of the training.
#pragma once

#include "core/codecs/codec.h"
#include "core/runtime/program.h"
#include "core/runtime/run_request.h"

namespace pipewright {

/// Any thread.
class Passes {
 public:
  /// Both outlive it.
  Passes(const Program& program, const RunRequest& request)
      : shape_(program.schedule.shape), request_(request) {}

  Share share(const Action& action) const;
  Pass pass(const Action& action, const Share& share) const;
  CodecCall codec_call(const Action& action) const;
  /// Weight of a micro-batch's mean loss in the gradient: by samples of the mini-batch, or, summed
  /// over micro-batches, of the replica's share.
  double loss_factor(const Share& share) const;
  /// Of a forward, among those that a stage keeps.
  int id(const Action& action) const;
  /// "worker 1, stage 1, 1F17", for errors.
  std::string place(const Action& action, int worker) const;

 private:
  const PipelineShape& shape_;
  const RunRequest& request_;
};

}  // namespace pipewright
