// SPDX-License-Identifier: Apache-2.0
/// Experiments on devices other than the CPU, compared with the CPU and with each other.
#pragma once

#include <string>
#include <vector>

#include "tests/unit/runtime/laboratory.h"
#include "tests/unit/schemes/scheme_cases.h"
#include "tests/unit/tolerances.h"

namespace pipewright::test {

/// The laboratory's plan with worker w on devices[w mod count].
Plan& plan_on(Laboratory& laboratory, const std::vector<at::Device>& devices);

/// Changes for a scheme on four stages or, if it has only one, two replicas, in float64. A scheme
/// whose replicas share workers has two of four stages.
std::string once(const SchemeCase& scheme);

/// Expects that one epoch on these devices gives the same bits in `serial` and `threads`, with a
/// stream per worker and with one for all, and the CPU's numbers up to rounding.
void expect_equal_elsewhere(const std::string& changes, const std::vector<at::Device>& devices);

/// Expects the same bits in `serial` and `threads` only, of numbers that are finite.
void expect_equal_ways(const std::string& changes, const std::vector<at::Device>& devices);

}  // namespace pipewright::test
