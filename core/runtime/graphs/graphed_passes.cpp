// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/graphs/graphed_passes.h"

#include <exception>
#include <utility>

#include "core/base/error.h"
#include "core/tensors/torch.h"
#include "core/tensors/upload.h"

namespace pipewright {
namespace {

/// The same memory, which the view does not keep.
at::Tensor view_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  return at::for_blob(tensor.mutable_data_ptr(), tensor.sizes())
      .strides(tensor.strides())
      .target_device(tensor.device())
      .options(tensor.options())
      .make_tensor();
}

}  // namespace

void GraphedPasses::begin_round(std::int64_t left, const GraphRounds::Addresses& weights) {
  PIPEWRIGHT_CHECK(!open_, "a graph goes on beyond its round");
  // An update that is still to end has its sums in a pool, which no round may take now.
  if (!aside_.empty() && !launches()) left = 0;
  take_turn();
  GraphRounds::Addresses alive{static_cast<std::uintptr_t>(pools_[turn_])};
  for (const int pool : pools_) {
    const GraphRounds::Addresses own = recorder_.in_use(pool);
    alive.insert(alive.end(), own.begin(), own.end());
  }
  alive.insert(alive.end(), weights.begin(), weights.end());
  const RoundKind before = rounds_.kind(), kind = rounds_.begin(left, std::move(alive));
  const bool first = rounds_.phase() == 0;
  if (kind == RoundKind::Recorded && first) {
    graphs_.clear();
    to_update_.clear();
    recorder_.clear();
  }
  if (kind == RoundKind::Launched && first) {
    PIPEWRIGHT_CHECK(before == RoundKind::Recorded || next_graph_ == graphs_.size(),
                     "a round has launched ", next_graph_, " of ", graphs_.size(), " graphs");
    next_graph_ = next_update_ = 0;
  }
}

/// Finds an empty pool for the round, the first after that of the round before. Launched rounds
/// leave the pools as they are. A layer may have put something into one for good.
void GraphedPasses::take_turn() {
  const std::size_t count = pools_.size();
  for (std::size_t i = 1; i <= count; ++i)
    if (const std::size_t next = (turn_ + i) % count; recorder_.in_use(pools_[next]).empty()) {
      turn_ = next;
      return;
    }
  turn_ = count;
  pools_.push_back(static_cast<int>(count));
}

void GraphedPasses::begin() {
  if (std::exchange(open_, true)) return;
  uploads_ = uploads_by_thread();
  if (rounds_.kind() == RoundKind::Pooled) recorder_.begin_pool(pools_[turn_]);
  if (rounds_.kind() == RoundKind::Recorded) recorder_.begin(pools_[turn_]);
}

/// A pass gets a copy, which lies in the pool as long as the pass needs it, while the next sample
/// is already copied to the place that the graph reads.
at::Tensor GraphedPasses::given(const at::Tensor& sample) {
  if (!sample.defined() || rounds_.kind() == RoundKind::Plain) return sample;
  if (launches()) {
    const at::Tensor& read = graphs_[next_graph_].samples[given_++];
    PIPEWRIGHT_CHECK(read.sizes() == sample.sizes(), "a sample of another size than the graph's");
    read.copy_(sample, /*non_blocking=*/true);
    return {};
  }
  if (rounds_.kind() == RoundKind::Recorded) samples_.push_back(sample);
  return sample.clone();
}

std::vector<GraphedPasses::Loss> GraphedPasses::end() {
  if (!std::exchange(open_, false)) return {};
  std::vector<Loss> losses = std::exchange(losses_, {});
  if (rounds_.kind() == RoundKind::Pooled) {
    recorder_.end_pool();
    if (uploads_by_thread() != uploads_)
      rounds_.refuse(
          "a pass copies numbers from the host each time (a layer with dropout or with "
          "constants)");
  }
  if (rounds_.kind() == RoundKind::Recorded) {
    Graph graph{recorder_.end(), std::exchange(samples_, {}), {}};
    for (const Loss& loss : losses) graph.losses.push_back(view_of(loss.value));
    recorder_.launch(graph.number);
    graphs_.push_back(std::move(graph));
  }
  if (launches()) {
    const Graph& graph = graphs_[next_graph_++];
    PIPEWRIGHT_CHECK(given_ == graph.samples.size() && losses.size() == graph.losses.size(),
                     "a graph with other passes than those of its round");
    given_ = 0;
    recorder_.launch(graph.number);
    for (std::size_t i = 0; i < losses.size(); ++i) losses[i].value = graph.losses[i];
  }
  return losses;
}

void GraphedPasses::begin_update(std::size_t index, WeightGradients& sums) {
  if (rounds_.kind() == RoundKind::Recorded) {
    to_update_.push_back(sums.added());
    for (at::Tensor& sum : to_update_.back().sums) sum = view_of(sum);
  }
  if (launches()) aside_[index] = sums.exchange(to_update_[next_update_++]);
}

void GraphedPasses::end_update(std::size_t index, WeightGradients& sums) {
  const auto own = aside_.find(index);
  if (own == aside_.end()) return;
  sums.exchange(std::move(own->second));
  aside_.erase(own);
}

void GraphedPasses::abandon() noexcept {
  if (!std::exchange(open_, false)) return;
  try {
    if (rounds_.kind() == RoundKind::Pooled) recorder_.end_pool();
    if (rounds_.kind() == RoundKind::Recorded) static_cast<void>(recorder_.end());
  } catch (const std::exception&) {  // the exception in flight says more
  }
}

}  // namespace pipewright
