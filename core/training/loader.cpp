// SPDX-License-Identifier: Apache-2.0
#include "core/training/loader.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/base/text.h"
#include "core/nn/memory_format.h"
#include "core/tensors/torch.h"
#include "core/tensors/upload.h"

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

std::vector<std::int64_t> bucketed(std::vector<std::int64_t> order,
                                   const std::vector<std::int64_t>& lengths,
                                   std::int64_t batch_size, std::int64_t shard, std::uint64_t seed,
                                   int epoch) {
  const std::int64_t size = std::ssize(order), run = batch_size * shard;
  const auto longer = [&](std::int64_t a, std::int64_t b) {
    return lengths[static_cast<std::size_t>(a)] > lengths[static_cast<std::size_t>(b)];
  };
  const std::int64_t whole = size / batch_size * batch_size;
  for (std::int64_t begin = 0; begin < whole; begin += run)
    std::stable_sort(order.begin() + begin, order.begin() + std::min(whole, begin + run), longer);
  std::stable_sort(order.begin() + whole, order.end(), longer);
  const RandomStream stream(seed, "bucket", static_cast<std::uint64_t>(epoch));
  for (auto i = static_cast<std::uint64_t>(size / batch_size); i > 1; --i) {
    const auto first = order.begin() + static_cast<std::int64_t>(i - 1) * batch_size;
    const auto other = order.begin() + static_cast<std::int64_t>(stream.below(i, i)) * batch_size;
    if (first != other) std::swap_ranges(first, first + batch_size, other);
  }
  return order;
}

Loader::Loader(Settings settings, int epochs, OrderMaker order)
    : settings_(std::move(settings)), epochs_(epochs), make_order_(std::move(order)) {
  const Order first = order_of(0);
  per_epoch_ = first->minibatches();
  if (per_epoch_ > 0) sizes_ = {first->size_of(0), first->size_of(per_epoch_ - 1)};
}

Loader::Loader(Settings settings, std::vector<EpochOrder> epochs)
    : Loader(std::move(settings), static_cast<int>(epochs.size()),
             [epochs](int epoch) { return epochs[static_cast<std::size_t>(epoch)]; }) {}

Loader::Order Loader::order_of(int epoch) const {
  const Lock lock(orders_mutex_);
  Order& order = orders_[epoch];
  if (!order) order = std::make_shared<EpochOrder>(make_order_(epoch));
  const Order found = order;
  const int kept = per_epoch_ == 0 ? 1 : 2 + settings_.keep / per_epoch_;
  while (std::ssize(orders_) > kept) orders_.erase(orders_.begin());
  return found;
}

/// The number of samples of a mini-batch.
std::int64_t Loader::size_of(int position) const {
  return position % per_epoch_ + 1 < per_epoch_ ? sizes_.front() : sizes_.back();
}

Share Loader::share(int minibatch, int replica, int microbatch) const {
  const int position = position_of(minibatch);
  const std::int64_t all = size_of(position);
  const Slice of_replica = slice_of(all, settings_.replicas, replica);
  const Slice part = microbatch_of(of_replica.size, settings_.microbatches,
                                   microbatch / settings_.slices, settings_.microbatch_sizes);
  return {.first_sample = of_replica.begin + part.begin,
          .samples = part.size,
          .replica_samples = of_replica.size,
          .all_samples = all,
          .slice = microbatch % settings_.slices,
          .slices = settings_.slices};
}

namespace {

/// The share's part of a tensor of the whole mini-batch, [samples, …] or, in slices, [samples,
/// tokens].
at::Tensor part_of(const at::Tensor& all, const Share& share) {
  const at::Tensor samples = all.narrow(0, share.first_sample, share.samples);
  if (share.slices == 1) return samples;
  if (all.dim() != 2 || all.size(1) % share.slices != 0)
    throw Error(ErrorKind::Data,
                concat("pipeline.slices is ", share.slices, ", but the mini-batch has the shape ",
                       shape_text(all.sizes().vec()),
                       "; expected a number of tokens that the slices divide"));
  const std::int64_t tokens = all.size(1) / share.slices;
  return samples.narrow(1, share.slice * tokens, tokens).contiguous();
}

}  // namespace

Tensors Loader::inputs(int minibatch, const Share& share, at::Device device) {
  Tensors x = whole(position_of(minibatch)).x;
  for (at::Tensor& part : x) part = upload(part_of(part, share), device);
  return x;
}

at::Tensor Loader::targets(int minibatch, const Share& share, at::Device device) {
  return upload(part_of(whole(position_of(minibatch)).y, share), device);
}

Batch Loader::whole(int position) {
  Lock lock(mutex_);
  go_ahead_of(position);
  if (const auto known = find(position)) {
    lock.unlock();
    return known->get();
  }
  std::promise<Batch> promise = begin(position);
  const std::shared_future<Batch> batch = recent_.back().second;
  lock.unlock();
  assemble(position, std::move(promise));
  return batch.get();
}

std::optional<std::shared_future<Batch>> Loader::find(int position) const {
  for (const auto& [number, batch] : recent_)
    if (number == position) return batch;
  return {};
}

Samples Loader::samples(int minibatch, const Share& share) const {
  const int position = position_of(minibatch);
  const Order order = order_of(position / per_epoch_);
  const std::int64_t first = (position % per_epoch_) * order->batch_size + share.first_sample;
  return {std::span(order->indices)
              .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(share.samples)),
          order};
}

/// Puts a pending mini-batch, which no thread assembles yet, into the cache.
std::promise<Batch> Loader::begin(int position) {
  std::promise<Batch> promise;
  recent_.emplace_back(position, promise.get_future().share());
  if (recent_.size() > static_cast<std::size_t>(settings_.keep + settings_.prefetch))
    recent_.pop_front();
  return promise;
}

void Loader::assemble(int position, std::promise<Batch> promise) const {
  try {
    promise.set_value(assembled(position));
  } catch (...) {
    promise.set_exception(std::current_exception());
  }
}

void Loader::go_ahead_of(int position) {
  if (settings_.prefetch == 0) return;
  const int all = per_epoch_ * epochs_;
  const int wanted = std::min(all, position + 1 + settings_.prefetch);
  next_ = std::max(next_, position + 1);
  if (wanted > wanted_) {  // do not wake threads for nothing: they need cores, too
    wanted_ = wanted;
    wanted_more_.notify_all();
  }
  while (static_cast<int>(threads_.size()) < settings_.prefetch)
    threads_.emplace_back([this](const std::stop_token& stop) { prefetch(stop); });
}

void Loader::prefetch(const std::stop_token& stop) {
  try {
    at::set_num_threads(settings_.threads);
    Lock lock(mutex_);
    while (wanted_more_.wait(lock, stop,
                             [this]() PIPEWRIGHT_REQUIRES(mutex_) { return next_ < wanted_; })) {
      const int position = next_++;
      if (find(position)) continue;
      std::promise<Batch> promise = begin(position);
      lock.unlock();
      assemble(position, std::move(promise));
      lock.lock();
    }
  } catch (const std::exception&) {
    // Memory ran out before a mini-batch was begun. The caller that needs it assembles it itself,
    // or fails with an error of its own.
  }
}

Batch Loader::assembled(int position) const {
  const int epoch = position / per_epoch_;
  const Order order = order_of(epoch);
  const int within = position % per_epoch_;
  const std::span<const std::int64_t> indices(order->indices.data() + within * order->batch_size,
                                              static_cast<std::size_t>(order->size_of(within)));
  const RandomStream stream(settings_.seed, "augment",
                            static_cast<std::uint64_t>(settings_.first_epoch + epoch),
                            static_cast<std::uint64_t>(within));
  Batch batch =
      settings_.dataset->batch(settings_.split, indices, settings_.augment ? &stream : nullptr);
  std::vector<std::int64_t> shape{static_cast<std::int64_t>(indices.size())};
  shape.insert(shape.end(), settings_.input_shape.begin(), settings_.input_shape.end());
  for (at::Tensor& x : batch.x) {
    if (!x.is_floating_point()) continue;
    x = x.to(settings_.precision).contiguous();
    const bool first = &x == batch.x.begin();  // the model's other inputs are as they are
    if (first && !settings_.input_shape.empty()) x = x.reshape(shape);
    x = laid_out(x, settings_.channels_last);
  }
  return batch;
}

}  // namespace pipewright
