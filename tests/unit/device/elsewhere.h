// SPDX-License-Identifier: Apache-2.0
/// Experiments on devices other than the CPU, compared with the CPU and with each other.
#pragma once

#include <string>
#include <vector>

#include "core/runtime/devices/graph_recorder.h"
#include "core/runtime/interludes.h"
#include "core/runtime/run_request.h"
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

/// What a training ends with.
struct Trained {
  Stages stages;
  RunResult result;
};

/// Trains `epochs` epochs in `serial` at a rate that changes with every mini-batch. `graphs` may be
/// null.
Trained trained(const Plan& plan, GraphRecorder* graphs, int epochs = 1,
                Interludes* interludes = nullptr);
/// Changes for 56 mini-batches.
std::string long_training(const std::string& scheme, const std::string& changes = "",
                          int stages = 4);
/// Expects the same weights, losses and traffic to the bit, and waits for the device.
void expect_equal(const Trained& one, const Trained& other);
/// Trains with graphs and without, and expects the same. Returns what became of the graphs.
GraphsUsed expect_same_with_graphs(const std::string& changes, at::Device device,
                                   GraphRecorder& graphs, int epochs = 1);

}  // namespace pipewright::test
