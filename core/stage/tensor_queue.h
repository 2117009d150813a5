// SPDX-License-Identifier: Apache-2.0
/// A queue of lists of named tensors that a stage keeps for later updates or evaluations, and that
/// checkpoints take along.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "core/tensors/named_tensors.h"

namespace pipewright {

/// Every list has a tensor for each name, and an undefined one where there is none. Used by one
/// thread at a time.
class TensorQueue {
 public:
  using List = std::vector<at::Tensor>;
  struct Item {
    std::string name;
    std::vector<std::int64_t> shape;
  };

  /// `kind` begins all names that state() gives; `longest` is the most places there may be.
  TensorQueue(std::string kind, std::vector<Item> items, const at::TensorOptions& options,
              std::size_t longest)
      : kind_(std::move(kind)), items_(std::move(items)), options_(options), longest_(longest) {}

  std::size_t size() const { return lists_.size(); }
  /// Number of lists, places without a list not counted.
  std::int64_t lists() const;
  /// Adds copies of the tensors; none: a place without a list.
  void push(const std::optional<List>& newest);
  /// Removes and returns the oldest. There must be one.
  std::optional<List> pop();
  /// The oldest, without removing it. There must be one.
  std::optional<List>& oldest() { return lists_.front(); }

  /// With the oldest place first, as number 0:
  ///   "<kind>.lists" I64 [places]: 1, or 0 for a place without a list,
  ///   "<kind>/<name>" [n, shape …]: the n tensors of that name that there are,
  ///   "<kind>.places/<name>" I64 [n]: the numbers of their places.
  NamedTensors state() const;
  /// Takes those tensors of such a state whose names it has. May be called several times, with
  /// parts that have the same places. Throws Error{Data} if they do not fit.
  void restore(const NamedTensors& saved);
  /// A name that some place has no tensor of; "": none.
  std::string missing() const;

 private:
  void restore_places(const at::Tensor& lists);
  void restore_item(std::size_t item, const at::Tensor& places, const at::Tensor& tensors);

  std::string kind_;
  std::vector<Item> items_;
  at::TensorOptions options_;
  std::size_t longest_;
  std::deque<std::optional<List>> lists_;  ///< the oldest first
};

}  // namespace pipewright
