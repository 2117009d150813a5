// SPDX-License-Identifier: Apache-2.0
/// The rows of probes.csv in a row log.
#pragma once

#include <string>
#include <vector>

#include "core/probes/probes.h"
#include "core/records/row_log.h"

namespace pipewright {

RowLog begin_probes(const std::filesystem::path& folder, std::int64_t minibatches);

/// Rows "epoch,minibatch,stage,probe,quantity,value": the mini-batch counts from 0 within the
/// epoch, the stage is empty for the whole model, the value has 17 significant digits.
std::string probe_rows(const std::vector<ProbeRow>& rows, const std::vector<NamedProbe>& probes,
                       std::int64_t minibatches_per_epoch);

/// The rows as text, to bring them to another process, and back. Throws Error{Worker}.
std::string packed(const std::vector<ProbeRow>& rows);
std::vector<ProbeRow> unpacked(const std::string& bytes);

}  // namespace pipewright
