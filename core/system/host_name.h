// SPDX-License-Identifier: Apache-2.0
/// The name of the machine that this process runs on.
#pragma once

#include <string>

namespace pipewright {

/// The host name of gethostname(2). Any thread may call it.
std::string host_name();

}  // namespace pipewright
