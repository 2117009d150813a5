// SPDX-License-Identifier: Apache-2.0
/// The rows of steps.csv in a row log: the losses of every mini-batch, and its learning rate where
/// that changes per step.
#pragma once

#include <string>
#include <vector>

#include "core/records/row_log.h"

namespace pipewright {

/// The columns behind epoch and mini-batch: "loss"; those of auxiliary losses, named after their
/// stage, as "loss_2"; and "lr" of a schedule per step.
std::vector<std::string> step_columns(const std::vector<int>& auxiliary, bool lr_per_step);

RowLog begin_steps(const std::filesystem::path& folder, std::int64_t minibatches,
                   const std::vector<std::string>& columns);

/// Continues after a part that check_row_log() has accepted. If the columns differ, it creates a
/// new file with the old rows. Auxiliary losses of theirs are left empty if they belong to other
/// stages, and so are rates that an earlier program did not write.
RowLog go_on_with_steps(const std::filesystem::path& folder, const RowLogPart& part,
                        std::int64_t minibatches, const std::vector<std::string>& columns);

/// The rows, with 17 significant digits, of the mini-batches from number `first` on, whose numbers
/// are those of the columns; NaN becomes an empty field.
std::string step_rows(const std::vector<std::vector<double>>& numbers, std::int64_t first,
                      std::int64_t minibatches_per_epoch);

}  // namespace pipewright
