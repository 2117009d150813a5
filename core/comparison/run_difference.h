// SPDX-License-Identifier: Apache-2.0
/// Where the files of two runs differ first: in the loss of a mini-batch, and in a tensor.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace pipewright {

/// The rows of two steps.csv, as far as both have them.
struct LossDifference {
  std::size_t rows_a = 0, rows_b = 0;
  std::size_t not_finite_a = 0, not_finite_b = 0;  ///< rows with a loss that is NaN or infinite
  std::size_t differing = 0;                       ///< of the rows that both have
  bool to_the_end = false;  ///< all rows that both have differ from the first one that does
  /// The first row that differs. `epoch` and `minibatch` are as in the file, which counts from 0.
  std::string epoch, minibatch;
  std::string column, a, b;  ///< the first of its columns that differs, and both texts
};

/// Compares the losses of two run folders; nullopt unless both have steps.csv. Columns that one
/// lacks and learning rates are left out. Losses are equal if their texts are, so NaN equals NaN.
/// Throws Error{Data} if a file is no table.
std::optional<LossDifference> loss_difference(const std::filesystem::path& a,
                                              const std::filesystem::path& b);

/// The tensors of two runs at one time.
struct TensorDifference {
  std::string when;           ///< "after 44 mini-batches", "at the end"
  std::size_t tensors = 0;    ///< that both have
  std::size_t differing = 0;  ///< of these
  std::string first;          ///< the first that differs
  /// "by at most 0.0012", "in shape: [4, 2] and [4, 3]", "in type: float32 and bfloat16, …"
  std::string how;
  std::size_t not_finite_a = 0, not_finite_b = 0;  ///< values of these tensors: NaN or infinite
  std::vector<std::string> only_a, only_b;         ///< names that the other run does not have
};

/// Compares checkpoints after equal numbers of mini-batches, the earliest first, then the final
/// weights; empty if the runs have nothing in common. Tensors are equal if their types, shapes and
/// bytes are, so NaN equals a NaN of the same bits. Throws
/// Error{Data} if a file is damaged.
std::vector<TensorDifference> tensor_differences(const std::filesystem::path& a,
                                                 const std::filesystem::path& b);

/// One sentence, with a line break.
std::string loss_difference_text(const LossDifference& difference);
std::string tensor_difference_text(const TensorDifference& difference);

/// The losses as a part of a sentence about two runs: "losses are equal", "losses differ from
/// mini-batch 2 of epoch 0 (counted from 0) on".
std::string losses_in_short(const LossDifference& difference);

}  // namespace pipewright
