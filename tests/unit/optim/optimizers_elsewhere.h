// SPDX-License-Identifier: Apache-2.0
/// The registered optimizers on the code path of other devices: the same rules on whole tensors.
#pragma once

#include <memory>
#include <string>

#include "core/optim/optimizer.h"

namespace pipewright::test {

/// Makes the optimizer `name` with options such as "{momentum: 0.9}". Fails the test on any
/// problem.
std::unique_ptr<Optimizer> make_optimizer(const std::string& name, const std::string& options);
/// The same optimizer on the code path for tensors of devices other than the CPU.
std::unique_ptr<Optimizer> make_optimizer_elsewhere(const std::string& name,
                                                    const std::string& options);

}  // namespace pipewright::test
