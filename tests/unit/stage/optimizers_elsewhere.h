/// The registered optimizers as other devices run them: the same rules, over whole tensors.
#pragma once

#include <memory>
#include <string>

#include "core/stage/optimizer.h"

namespace pipewright::test {

/// `name` with options as in "{momentum: 0.9}". Fails the test on any problem.
std::unique_ptr<Optimizer> make_optimizer(const std::string& name, const std::string& options);
/// The same mathematics on the path that tensors of another device than the CPU take.
std::unique_ptr<Optimizer> make_optimizer_elsewhere(const std::string& name,
                                                    const std::string& options);

}  // namespace pipewright::test
