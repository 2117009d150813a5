// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/pass_samples.h"

#include "core/base/error.h"

namespace pipewright {

Share PassSamples::share(const Action& action) const {
  return request_.batches.share(action.minibatch, action.replica, action.microbatch);
}

Pass PassSamples::pass(const Action& action, const Share& share) const {
  const int position = request_.first_minibatch + action.minibatch;
  return {.training = shape_.training,
          .seed = request_.seed,
          .epoch = request_.first_epoch + position / request_.minibatches_per_epoch,
          .minibatch = position % request_.minibatches_per_epoch,
          .first_sample = share.first_sample,
          .microbatches = shape_.microbatches,
          .slice = share.slice,
          .slices = share.slices};
}

CodecCall PassSamples::codec_call(const Action& action) const {
  const Share share = this->share(action);
  const Pass now = pass(action, share);
  Samples samples = request_.batches.samples(action.minibatch, share);
  return {.seed = now.seed,
          .training = now.training,
          .backward = action.kind != ActionKind::Forward,
          .epoch = now.epoch,
          .minibatch = now.minibatch,
          .first_sample = now.first_sample,
          .samples = samples.indices,
          .samples_keeper = std::move(samples.keeper)};
}

double PassSamples::loss_factor(const Share& share) const {
  const std::int64_t part = request_.sum_gradients ? share.replica_samples : share.samples;
  return static_cast<double>(part) / static_cast<double>(share.all_samples);
}

int PassSamples::id(const Action& action) const {
  return action.minibatch * shape_.microbatches + action.microbatch;
}

std::string PassSamples::where(const Action& action, int worker) const {
  return concat("worker ", worker, ", stage ", action.stage, ", ",
                action_name(action, shape_.microbatches));
}

}  // namespace pipewright
