/// The versions of one stage replica's parameters.
///
/// A version is one flat tensor. The layers compute with leaves that view one *live* storage, and
/// install() makes that storage point at a version's memory: no copy. Autograd remembers tensors
/// over the same storage, so whatever is installed when a backward runs is what every layer type's
/// backward sees (a Linear's saved transpose, a convolution's saved parameter alike), and
/// installing the forward's version again is weight stashing.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <utility>
#include <vector>

#include "core/schedule/versions.h"
#include "core/stage/optimizer.h"

namespace pipewright {

/// Offsets for parameters of these names and shapes, each start a multiple of 64 bytes.
FlatLayout flat_layout(const std::vector<std::pair<std::string, std::vector<std::int64_t>>>& shapes,
                       std::int64_t bytes_per_element);

/// Not for use from several threads at once.
class WeightStore {
 public:
  WeightStore(const FlatLayout& layout, const at::TensorOptions& options);
  WeightStore(const WeightStore&) = delete;
  WeightStore& operator=(const WeightStore&) = delete;

  /// One per parameter, in the layout's order, requiring grad; valid as long as the store.
  std::span<const at::Tensor> leaves() const { return leaves_; }
  /// Makes the leaves read this version's memory. It must exist.
  void install(const WeightKey& key);
  /// The flat tensor of that version.
  const at::Tensor& version(const WeightKey& key) const;
  const at::Tensor& latest() const { return version({latest_, 0, 0}); }
  int latest_number() const { return latest_; }

  /// Memory for a new prediction; the caller fills it.
  at::Tensor& add_prediction(const WeightKey& key);
  /// Memory of the version after the latest: the latest's own if `in_place`. The caller fills it;
  /// latest_number() grows by 1.
  struct Advance {
    at::Tensor from, to;
  };
  Advance advance(bool in_place);
  void free(const WeightKey& key);

  /// A new schedule begins: only the latest version is left; it is version 0 from now on.
  void rewind();

  int copies() const { return static_cast<int>(versions_.size()); }
  int most_copies() const { return most_copies_; }

 private:
  struct Version {
    WeightKey key;
    at::Tensor flat;
  };
  std::size_t find(const WeightKey& key) const;
  at::Tensor take_memory();
  void add(const WeightKey& key, at::Tensor flat);

  std::vector<Version> versions_;  ///< few: at most what versions.h counts
  std::vector<at::Tensor> spare_;  ///< memory of freed versions
  at::Tensor live_;
  std::vector<at::Tensor> leaves_;
  const void* installed_ = nullptr;
  int latest_ = 0;
  int most_copies_ = 1;
};

}  // namespace pipewright
