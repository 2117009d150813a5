// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/device/fake_graphs.h"

#include <cstring>
#include <mutex>
#include <utility>

#include "core/base/error.h"
#include "core/tensors/torch.h"

namespace pipewright::test {
namespace {

std::mutex pool_mutex;  // autograd frees in threads of its own
FakePool* current_pool = nullptr;
FakeGraphs* current_recording = nullptr;

}  // namespace

at::DataPtr FakePool::allocate(std::size_t bytes) {
  constexpr std::size_t kAligned = 64;
  const std::lock_guard lock(pool_mutex);
  const auto found = free_.lower_bound({bytes, 0});
  std::unique_ptr<Block> block;
  if (found == free_.end() || found->first.first != bytes) {
    block = std::make_unique<Block>(Block{.pool = this, .bytes = bytes});
    block->memory = std::make_unique<char[]>(bytes + kAligned);
    block->address = (reinterpret_cast<std::uintptr_t>(block->memory.get()) + kAligned - 1) /
                     kAligned * kAligned;
  } else {
    block = std::move(found->second);
    free_.erase(found);
  }
  block->number = next_++;
  used_[block->number] = block->address;
  return {reinterpret_cast<void*>(block->address), block.release(), &give_back, at::kCPU};
}

void FakePool::give_back(void* context) {
  const std::lock_guard lock(pool_mutex);
  std::unique_ptr<Block> block(static_cast<Block*>(context));
  FakePool& pool = *block->pool;
  pool.used_.erase(block->number);
  const std::pair place(block->bytes, block->address);
  pool.free_[place] = std::move(block);
}

std::vector<std::uintptr_t> FakePool::in_use() const {
  const std::lock_guard lock(pool_mutex);
  std::vector<std::uintptr_t> all;
  for (const auto& [number, address] : used_) all.push_back(address);
  return all;
}

FakePool* FakeGraphs::pool() {
  return current_pool;
}
FakeGraphs* FakeGraphs::recording() {
  return current_recording;
}
void FakeGraphs::refuse(const char* what) {
  PIPEWRIGHT_CHECK(current_recording == nullptr, what, " while a graph is recorded");
}

FakeGraphs::~FakeGraphs() {
  PIPEWRIGHT_CHECK(current_pool == nullptr && current_recording == nullptr,
                   "the recorder goes while it records");
}

void FakeGraphs::begin_pool(int pool) {
  PIPEWRIGHT_CHECK(current_pool == nullptr, "there is a pool already");
  FakePool*& own = pools_[pool];
  if (own == nullptr) own = new FakePool;
  current_pool = own;
}

std::vector<std::uintptr_t> FakeGraphs::in_use(int pool) const {
  const auto own = pools_.find(pool);
  return own == pools_.end() ? std::vector<std::uintptr_t>() : own->second->in_use();
}

void FakeGraphs::end_pool() {
  PIPEWRIGHT_CHECK(current_pool != nullptr && current_recording == nullptr, "there is no pool");
  current_pool = nullptr;
}

void FakeGraphs::begin(int pool) {
  begin_pool(pool);
  graphs_.emplace_back();
  current_recording = this;
}

int FakeGraphs::end() {
  PIPEWRIGHT_CHECK(current_recording == this, "nothing is recorded");
  current_recording = nullptr;
  for (; !kept_.empty(); kept_.pop_back())
    std::memcpy(kept_.back().first, kept_.back().second.data(), kept_.back().second.size());
  end_pool();
  next_ = 0;
  return static_cast<int>(graphs_.size()) - 1;
}

void FakeGraphs::keep(const at::Tensor& tensor) {
  char* const memory = static_cast<char*>(tensor.storage().mutable_data());
  kept_.emplace_back(memory, std::vector<char>(memory, memory + tensor.storage().nbytes()));
}

/// Each right after its recording, and then all in their order.
void FakeGraphs::launch(int graph) {
  const auto number = static_cast<std::size_t>(graph);
  const bool fresh = number + 1 == graphs_.size() && next_ == 0;
  PIPEWRIGHT_CHECK(fresh || number == next_, "graph ", graph, " is launched out of turn");
  next_ = fresh ? 0 : (next_ + 1) % graphs_.size();
  ++launches_;
  const at::AutoDispatchBelowAutograd below;
  for (const auto& kernel : graphs_[number]) kernel();
}

}  // namespace pipewright::test
