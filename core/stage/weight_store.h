// SPDX-License-Identifier: Apache-2.0
/// The versions of one stage replica's parameters.
///
/// A version is one flat tensor. The layers compute with leaves that are views of one *live*
/// storage, and install() makes that storage point at a version's memory, without a copy. The
/// tensors that autograd saves share that storage (a linear layer's saved transpose as well as a
/// convolution's saved weight), so a backward uses the version that is installed when it runs.
/// Installing the forward's version again before the backward is weight stashing.
///
/// In mixed precision a version has a copy in a narrow format as well, which the layers compute
/// with. It is made when the version is made, installed with it and freed with it; parameters that
/// are exact have no copy.
///
/// Some schedules read versions of the schedule before (Schedule::earlier). Then a store keeps so
/// many when a schedule ends, and the next one finds them under negative numbers.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/optim/optimizer.h"
#include "core/schedule/versions.h"
#include "core/tensors/named_tensors.h"

namespace pipewright {

/// Computes offsets for parameters of these names and shapes; each starts at a multiple of 64
/// bytes.
FlatLayout flat_layout(const NamedShapes& shapes, std::int64_t bytes_per_element);

/// The versions held by one stage replica. Used by one thread at a time.
class WeightStore {
 public:
  /// `narrow` is the format of the copies, if there are any; `earlier` the number of versions that
  /// are kept from schedule to schedule besides the latest.
  WeightStore(const FlatLayout& layout, const at::TensorOptions& options,
              std::optional<at::ScalarType> narrow = {}, int earlier = 0);
  WeightStore(const WeightStore&) = delete;
  WeightStore& operator=(const WeightStore&) = delete;

  /// One leaf per parameter, in the layout's order, each requiring grad; valid as long as the store
  /// lives.
  std::span<const at::Tensor> leaves() const { return leaves_; }
  /// Makes the leaves read this version, which must exist.
  void install(const WeightKey& key);
  /// Memory like a version's that is none, for weights that a single pass reads; zeros at first.
  at::Tensor& scratch();
  /// Makes the leaves read what scratch() holds now.
  void install_scratch();
  /// Makes the leaves read weights that are none of the versions, and which must live until the
  /// next call or install().
  void install_other(const at::Tensor& flat);
  /// The flat tensor of a version, which must exist.
  /// Lets the memory of so many versions take turns, so that each lies again where it lay as many
  /// versions before.
  void take_turns(int versions);
  /// Adds the addresses of all versions, and of memory for more, to `all`.
  void add_addresses(std::vector<std::uintptr_t>& all) const;
  const at::Tensor& version(const WeightKey& key) const;
  const at::Tensor& latest() const { return version({latest_, 0, 0}); }
  int latest_number() const { return latest_; }

  /// Adds memory for a new prediction; the caller fills it.
  at::Tensor& add_prediction(const WeightKey& key);
  /// Adds memory for the next version `to` after the latest `from`; they are the same if
  /// `in_place`. The caller fills it. latest_number() grows by 1.
  struct Advance {
    at::Tensor from, to;
  };
  Advance advance(bool in_place);
  void free(const WeightKey& key);

  bool has_copies() const { return narrow_.has_value(); }
  /// Writes elements of the version's copy, all of them by default. Several threads may write
  /// different elements.
  void copy(const WeightKey& key);
  void copy(const WeightKey& key, std::int64_t begin, std::int64_t end);

  /// Starts a new schedule: the latest version becomes version 0. It is the only one left besides
  /// the earlier ones, which become −1, −2, …; before the first schedule they are made, as copies
  /// of version 0. Makes the narrow copies again, since weights may have been loaded meanwhile.
  void rewind();

  int earlier() const { return earlier_; }
  /// Between schedules: whether the earlier versions are there yet.
  bool has_earlier() const { return earlier_ > 0 && copies() == 1 + earlier_; }
  /// Before the first schedule: adds memory for the earlier versions, which the caller fills.
  void add_earlier();
  /// Between schedules: the version `before` updates before the latest, 1 … earlier(); it must be
  /// there.
  const at::Tensor& earlier_version(int before) const { return version({latest_ - before, 0, 0}); }

  /// Versions and predictions held now, and the high-water mark.
  int copies() const { return static_cast<int>(versions_.size()); }
  int most_copies() const { return most_copies_; }

 private:
  struct Version {
    WeightKey key;
    at::Tensor flat, copy;
  };
  std::size_t find(const WeightKey& key) const;
  Version& add(const WeightKey& key);
  Version memory_for(const WeightKey& key) const;
  void write_copy(const Version& version) const;
  void point_to(const Version& version);

  std::vector<Version> versions_;  ///< few: at most StageVersions::copies
  std::vector<Version> spare_;     ///< memory of freed versions
  std::optional<Version> scratch_;
  at::Tensor other_copy_;  ///< of the weights that install_other() was given
  std::optional<at::ScalarType> narrow_;
  int earlier_;
  at::Tensor live_, live_copy_;
  std::vector<at::Tensor> leaves_;
  const void* installed_ = nullptr;
  int latest_ = 0;
  int most_copies_ = 1;
};

}  // namespace pipewright
