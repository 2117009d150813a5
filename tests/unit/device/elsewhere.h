/// Experiments on other devices than the CPU, compared with the CPU and among themselves.
#pragma once

#include <string>
#include <vector>

#include "tests/unit/runtime/laboratory.h"
#include "tests/unit/schemes/scheme_cases.h"

namespace pipewright::test {

/// Worker w on devices[w mod count].
Plan& plan_on(Laboratory& laboratory, const std::vector<at::Device>& devices);

/// A scheme on four stages or, where it has one stage, two replicas; in float64.
std::string once(const SchemeCase& scheme);

/// One epoch there gives the same bits in serial and in threads, whether each worker has a stream
/// or all share one, and the CPU's numbers but for rounding.
void expect_equal_elsewhere(const std::string& changes, const std::vector<at::Device>& devices);

/// What other orders of summation may change in a few float64 updates of a small model: a dot
/// product of n ≤ 1200 terms errs by at most n · 2^-53 ≈ 1.3e-13 of its terms' size, in some ten
/// layers, forwards and backwards, and six updates.
inline constexpr double kOtherOrder = 1e-10;

}  // namespace pipewright::test
