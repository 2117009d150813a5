// SPDX-License-Identifier: Apache-2.0
/// The device that a profile was measured on, and whether a description of hardware means the same.
#pragma once

#include <c10/core/Device.h>

#include <string>

#include "core/cost/profile.h"

namespace pipewright {

/// The processor's name in the operating system, such as "AMD EPYC 9654 96-Core Processor", or
/// "unknown".
std::string processor_name();

/// The name of the device's model: the processor's, or of CUDA devices the one that their driver
/// tells; "" if it is not known.
std::string device_model(at::Device device);

/// The device of a profile in words: "cpu (AMD EPYC 9654 96-Core Processor)".
std::string device_in_words(const Profile& profile);

/// Whether the profile may be of the device that a description of hardware names: one of the two
/// names contains the other, apart from case, spaces and punctuation, or the description names
/// none.
bool may_be_of(const Profile& profile, const std::string& device_name);

}  // namespace pipewright
