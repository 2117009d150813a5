// SPDX-License-Identifier: Apache-2.0
/// The program is linked twice from the same objects: `pipewright` without LibTorch, which starts
/// in a hundredth of a second, and `with_libtorch/pipewright`, which takes its place when LibTorch
/// is needed. In the first one cmake/without_libtorch.py has defined every function of LibTorch as
/// a call of need_libtorch().
#pragma once

namespace pipewright {

/// The environment variable that tells with_libtorch/pipewright that it was started by the program
/// without LibTorch. Processes that it starts do not have it.
inline constexpr const char* kStarted = "PIPEWRIGHT_STARTED_WITH_LIBTORCH";

/// The environment variable in which who starts the program says why there is no LibTorch for it,
/// as the Python package does that has the program in it.
inline constexpr const char* kNoLibtorch = "PIPEWRIGHT_NO_LIBTORCH";

/// Without LibTorch: replaces this process by the same command with LibTorch, which begins anew; if
/// that cannot be started, says so and ends the process. So nothing may have been written before.
/// With LibTorch: does nothing.
void need_libtorch();

/// Prepares LibTorch, if this program has it. main() calls it first.
void prepare_libtorch();

}  // namespace pipewright
