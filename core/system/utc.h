// SPDX-License-Identifier: Apache-2.0
/// The time of day, for files and messages.
#pragma once

#include <string>

namespace pipewright {

/// The date and time in UTC as strftime(3) writes them, in at most 63 bytes. Any thread may call
/// it.
std::string utc_now(const char* format = "%Y-%m-%dT%H:%M:%SZ");

}  // namespace pipewright
