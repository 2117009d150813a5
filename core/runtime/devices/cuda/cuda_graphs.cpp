// SPDX-License-Identifier: Apache-2.0
// The module libpipewright_graphs.so: CUDA graphs. It alone includes CUDA's headers, and is loaded
// behind LibTorch's CUDA half.
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/runtime/devices/graph_recorder.h"

namespace pipewright {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;
using c10::MempoolId_t;

/// What is in use of some pools. LibTorch's allocator tells it from any thread, for ever.
class PoolCount {
 public:
  static PoolCount& instance() {
    static auto* const count = new PoolCount;
    return *count;
  }

  void add(const MempoolId_t& pool) {
    const Lock lock(mutex_);
    pools_[pool];
  }
  void remove(const MempoolId_t& pool) {
    const Lock lock(mutex_);
    pools_.erase(pool);
  }
  std::vector<std::uintptr_t> in_use(const MempoolId_t& pool) const {
    const Lock lock(mutex_);
    std::vector<std::uintptr_t> all;
    for (const auto& [number, address] : pools_.at(pool).by_number) all.push_back(address);
    return all;
  }

 private:
  using Entry = allocator::TraceEntry;
  struct Pool {
    std::map<std::int64_t, std::uintptr_t> by_number;  ///< numbered as allocated
    std::map<std::uintptr_t, std::int64_t> numbers;
  };

  PoolCount() {
    allocator::attachAllocatorTraceTracker([this](const Entry& entry) { note(entry); });
  }
  void note(const Entry& entry) {
    const Lock lock(mutex_);
    const auto found = pools_.find(entry.mempool_);
    if (found == pools_.end()) return;
    Pool& pool = found->second;
    if (entry.action_ == Entry::ALLOC) {
      pool.numbers[entry.addr_] = next_;
      pool.by_number[next_++] = entry.addr_;
    } else if (entry.action_ == Entry::FREE_COMPLETED) {
      const auto freed = pool.numbers.find(entry.addr_);
      if (freed == pool.numbers.end()) return;
      pool.by_number.erase(freed->second);
      pool.numbers.erase(freed);
    }
  }

  mutable Mutex mutex_;
  std::map<MempoolId_t, Pool> pools_ PIPEWRIGHT_GUARDED_BY(mutex_);
  std::int64_t next_ PIPEWRIGHT_GUARDED_BY(mutex_) = 0;
};

class CudaGraphs final : public GraphRecorder {
 public:
  explicit CudaGraphs(c10::DeviceIndex device) : device_(device) {}
  CudaGraphs(const CudaGraphs&) = delete;
  ~CudaGraphs() override {
    graphs_.clear();
    held_.clear();
    for (const auto& [number, pool] : pools_) {
      PoolCount::instance().remove(pool);
      allocator::releasePool(device_, pool);
    }
  }

  void begin_pool(int pool) override {
    current_ = pool_of(pool);
    const cudaStream_t own = c10::cuda::getCurrentCUDAStream(device_).stream();
    allocator::beginAllocateToPool(device_, *current_,
                                   [own](cudaStream_t stream) { return stream == own; });
  }
  void end_pool() override {
    allocator::endAllocateToPool(device_, *current_);
    allocator::releasePool(device_, *current_);  // as often as it has begun
    current_.reset();
  }
  void begin(int pool) override {
    recorded_ = std::make_unique<at::cuda::CUDAGraph>();
    recorded_pool_ = pool_of(pool);
    recorded_->capture_begin(recorded_pool_, cudaStreamCaptureModeThreadLocal);
  }
  int end() override {
    std::unique_ptr<at::cuda::CUDAGraph> graph = std::move(recorded_);
    try {
      graph->capture_end();
    } catch (...) {
      forget_capture();
      throw;
    }
    graphs_.push_back(std::move(graph));
    return static_cast<int>(graphs_.size()) - 1;
  }
  void launch(int graph) override { graphs_[static_cast<std::size_t>(graph)]->replay(); }
  /// LibTorch gives up the page-locked memory of a pool with the pool's last graph, and refuses to
  /// record into that pool again, so one graph of each pool stays.
  void clear() override {
    for (std::unique_ptr<at::cuda::CUDAGraph>& graph : graphs_)
      held_.try_emplace(graph->pool(), std::move(graph));
    graphs_.clear();
  }
  std::vector<std::uintptr_t> in_use(int pool) const override {
    const auto own = pools_.find(pool);
    if (own == pools_.end()) return {};
    return PoolCount::instance().in_use(own->second);
  }

 private:
  /// Does what capture_end() does not once something has made the capture invalid. If it failed
  /// later, the pool's recording is over already, which the allocator says with an error.
  void forget_capture() const {
    cudaGraph_t broken = nullptr;
    static_cast<void>(
        cudaStreamEndCapture(c10::cuda::getCurrentCUDAStream(device_).stream(), &broken));
    static_cast<void>(cudaGetLastError());
    try {
      allocator::endAllocateToPool(device_, recorded_pool_);
      allocator::releasePool(device_, recorded_pool_);
    } catch (const c10::Error&) {  // the caller's says more
    }
  }
  /// The allocator counts who uses a pool, and keeps its memory as long as there is one.
  MempoolId_t pool_of(int number) {
    const auto known = pools_.find(number);
    if (known != pools_.end()) return known->second;
    if (pools_.empty()) allocator::emptyCache();  // pools cannot take what it holds
    const MempoolId_t pool = at::cuda::graph_pool_handle();
    PoolCount::instance().add(pool);
    allocator::createOrIncrefPool(device_, pool);
    return pools_.emplace(number, pool).first->second;
  }

  c10::DeviceIndex device_;
  std::map<int, MempoolId_t> pools_;
  std::optional<MempoolId_t> current_;  ///< between begin_pool() and end_pool()
  MempoolId_t recorded_pool_{};
  std::unique_ptr<at::cuda::CUDAGraph> recorded_;  ///< between begin() and end()
  std::vector<std::unique_ptr<at::cuda::CUDAGraph>> graphs_;
  std::map<MempoolId_t, std::unique_ptr<at::cuda::CUDAGraph>> held_;  ///< forgotten, by pool
};

}  // namespace
}  // namespace pipewright

extern "C" pipewright::GraphRecorder* pipewright_cuda_graphs(int device) {
  return new pipewright::CudaGraphs(static_cast<c10::DeviceIndex>(device));
}
