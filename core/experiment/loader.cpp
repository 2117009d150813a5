#include "core/experiment/loader.h"

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/stage/torch.h"
#include "core/stage/upload.h"

namespace pipewright {

int EpochOrder::minibatches() const {
  const auto samples = static_cast<std::int64_t>(indices.size());
  return static_cast<int>(drop_last ? samples / batch_size
                                    : (samples + batch_size - 1) / batch_size);
}

std::int64_t EpochOrder::size_of(int minibatch) const {
  return std::min(batch_size, static_cast<std::int64_t>(indices.size()) - minibatch * batch_size);
}

std::vector<std::int64_t> epoch_permutation(std::vector<std::int64_t> indices, bool shuffle,
                                            std::uint64_t seed, int epoch) {
  if (!shuffle) return indices;
  const RandomStream stream(seed, "shuffle", static_cast<std::uint64_t>(epoch));
  for (std::size_t i = indices.size(); i > 1; --i)
    std::swap(indices[i - 1], indices[stream.below(i, i)]);
  return indices;
}

Loader::Loader(Settings settings, std::vector<EpochOrder> epochs)
    : settings_(std::move(settings)),
      epochs_(std::move(epochs)),
      per_epoch_(epochs_.empty() ? 0 : epochs_.front().minibatches()) {}

Share Loader::share(int minibatch, int replica, int microbatch) const {
  const int position = position_of(minibatch);
  const EpochOrder& epoch = epochs_[static_cast<std::size_t>(position / per_epoch_)];
  const std::int64_t all = epoch.size_of(position % per_epoch_);
  const Slice of_replica = slice_of(all, settings_.replicas, replica);
  const Slice part = slice_of(of_replica.size, settings_.microbatches, microbatch);
  return {of_replica.begin + part.begin, part.size, of_replica.size, all};
}

Tensors Loader::inputs(int minibatch, const Share& share, at::Device device) {
  Tensors x = whole(position_of(minibatch)).x;
  for (at::Tensor& part : x)
    part = upload(part.narrow(0, share.first_sample, share.samples), device);
  return x;
}

at::Tensor Loader::targets(int minibatch, const Share& share, at::Device device) {
  const at::Tensor y = whole(position_of(minibatch)).y;
  return upload(y.narrow(0, share.first_sample, share.samples), device);
}

Batch Loader::whole(int position) {
  const std::lock_guard lock(mutex_);
  for (const auto& [number, batch] : recent_)
    if (number == position) return batch;
  const int epoch = position / per_epoch_;
  const EpochOrder& order = epochs_[static_cast<std::size_t>(epoch)];
  const int within = position % per_epoch_;
  const std::span<const std::int64_t> indices(order.indices.data() + within * order.batch_size,
                                              static_cast<std::size_t>(order.size_of(within)));
  const RandomStream stream(settings_.seed, "augment",
                            static_cast<std::uint64_t>(settings_.first_epoch + epoch),
                            static_cast<std::uint64_t>(within));
  Batch batch =
      settings_.dataset->batch(settings_.split, indices, settings_.augment ? &stream : nullptr);
  std::vector<std::int64_t> shape{static_cast<std::int64_t>(indices.size())};
  shape.insert(shape.end(), settings_.input_shape.begin(), settings_.input_shape.end());
  for (at::Tensor& x : batch.x)
    if (x.is_floating_point()) {
      x = x.to(settings_.precision).contiguous();
      if (!settings_.input_shape.empty()) x = x.reshape(shape);
    }
  recent_.emplace_back(position, batch);
  if (recent_.size() > static_cast<std::size_t>(settings_.keep)) recent_.pop_front();
  return batch;
}

}  // namespace pipewright
