// SPDX-License-Identifier: Apache-2.0
/// How far a run has come, from what it has printed into its log.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace pipewright {

/// The share of its mini-batches that a run has trained, from 0 to 1: as the last line says that
/// tells of an epoch ("epoch 2/5  loss …") or of mini-batches ("120/880 mini-batches, …"); 0 if
/// there is none.
double trained_share(std::string_view log);

/// As above, of the end of a log file behind its first `start` bytes; 0 if it cannot be read.
double trained_share(const std::filesystem::path& log, std::uintmax_t start);

}  // namespace pipewright
