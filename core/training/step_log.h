// SPDX-License-Identifier: Apache-2.0
/// The rows of steps.csv in a row log: the losses of every mini-batch.
#pragma once

#include <string>
#include <vector>

#include "core/records/row_log.h"

namespace pipewright {

/// The header "epoch,minibatch,loss,loss_2"; columns of auxiliary losses are named after their
/// stage.
std::string steps_header(const std::vector<int>& auxiliary);

RowLog begin_steps(const std::filesystem::path& folder, std::int64_t minibatches,
                   const std::vector<int>& auxiliary);

/// Continues after a part that check_row_log() has accepted. If the columns differ, it creates a
/// new file with the old rows, whose auxiliary losses are left empty, because they belong to other
/// stages.
RowLog go_on_with_steps(const std::filesystem::path& folder, const RowLogPart& part,
                        std::int64_t minibatches, const std::vector<int>& auxiliary);

/// The rows, with 17 significant digits, of the mini-batches from number `first` on: losses[m][0]
/// is a mini-batch's loss, the others are auxiliary losses; NaN becomes an empty field.
std::string step_rows(const std::vector<std::vector<double>>& losses, std::int64_t first,
                      std::int64_t minibatches_per_epoch);

}  // namespace pipewright
