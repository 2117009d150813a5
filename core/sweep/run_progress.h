// SPDX-License-Identifier: Apache-2.0
/// How far a run has come, from what it has printed into its log.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace pipewright {

/// The share of its mini-batches that a run has trained, from 0 to 1, by the last line of the log
/// about an epoch ("epoch 2/5  loss …"), an evaluation ("mini-batch 25/880  test loss …") or
/// mini-batches ("120/880 mini-batches, …"); 0 if there is no such line.
double trained_share(std::string_view log);

/// Reads the share from a log file, behind its first `start` bytes; 0 if it cannot be read.
double trained_share(const std::filesystem::path& log, std::uintmax_t start);

}  // namespace pipewright
