// SPDX-License-Identifier: Apache-2.0
/// A stand-in for a device that records graphs: it records the operators that fake devices are
/// asked for, with the addresses of their tensors, and computes them again with whatever lies
/// there. While it records they are computed, too, since kernels of the CPU look at their inputs;
/// behind the recording all memory is as it was before.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/runtime/devices/graph_recorder.h"

namespace pipewright::test {

/// Memory that is kept and given to a later tensor of its size.
class FakePool {
 public:
  at::DataPtr allocate(std::size_t bytes);
  /// Addresses in the order of allocation.
  std::vector<std::uintptr_t> in_use() const;

 private:
  struct Block {
    FakePool* pool = nullptr;
    std::unique_ptr<char[]> memory;
    std::uintptr_t address = 0;
    std::size_t bytes = 0;
    std::int64_t number = 0;
  };
  static void give_back(void* context);

  /// By size and address: what is in use decides where the next tensor lies, not its history.
  std::map<std::pair<std::size_t, std::uintptr_t>, std::unique_ptr<Block>> free_;
  std::map<std::int64_t, std::uintptr_t> used_;
  std::int64_t next_ = 0;
};

/// One at a time.
class FakeGraphs final : public GraphRecorder {
 public:
  ~FakeGraphs() override;

  void begin_pool(int pool) override;
  void end_pool() override;
  void begin(int pool) override;
  int end() override;
  void launch(int graph) override;
  void clear() override { graphs_.clear(); }
  std::vector<std::uintptr_t> in_use(int pool) const override;

  /// The pool that fake devices allocate from; null: none.
  static FakePool* pool();
  /// The recorder that is recording; null: none.
  static FakeGraphs* recording();
  /// Throws if one is recording, as a GPU does where the host is needed.
  static void refuse(const char* what);
  /// Before a kernel of the graph writes a tensor: what lies there is there again behind end().
  void keep(const at::Tensor& tensor);
  void add(std::function<void()> kernel) { graphs_.back().push_back(std::move(kernel)); }

  std::int64_t launches() const { return launches_; }

 private:
  std::map<int, FakePool*> pools_;  ///< never deleted: tensors may outlive the recorder
  std::vector<std::vector<std::function<void()>>> graphs_;
  std::vector<std::pair<char*, std::vector<char>>> kept_;
  std::int64_t launches_ = 0;
  std::size_t next_ = 0;
};

}  // namespace pipewright::test
