// SPDX-License-Identifier: Apache-2.0
/// A scheme of a plugin, whose exceptions are those of the plugin and no bugs of ours.
#pragma once

#include <filesystem>
#include <string>

#include "core/schedule/schedule.h"

namespace pipewright {

/// A constructor that makes the same scheme. Whatever it or the scheme throws, except Error of
/// another kind than Bug and std::bad_alloc, becomes an Error{Schedule} that names the scheme and
/// the plugin's file.
Registry<Scheme>::Make of_plugin(Registry<Scheme>::Make make, std::string name,
                                 std::filesystem::path file);

}  // namespace pipewright
