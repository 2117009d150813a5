// SPDX-License-Identifier: Apache-2.0
#include "core/measuring/modelled.h"

#include <gtest/gtest.h>

#include "core/experiment/reading.h"
#include "core/measuring/hardware_source.h"
#include "tests/unit/runtime/laboratory.h"

namespace pipewright::test {
namespace {

/// Two epochs of 100 samples each, or one of a training that ended within the second.
RunRecord modelled_run(const char* state, int epochs) {
  RunRecord run;
  run.state = state;
  run.config = Laboratory("{}").experiment.resolved;
  run.columns = {"seconds", "samples_per_second"};
  for (int epoch = 0; epoch < epochs; ++epoch) run.epochs.push_back({2, 50});
  return run;
}

/// A training that is cut short is no faster one.
TEST(ModelledHours, AreOfTrainingsThatAreDone) {
  Hardware hardware = ideal_hardware(4);
  hardware.rates = {.flops = 1e12, .bandwidth = 1e12};
  std::vector<RunRecord> runs{modelled_run("done", 2), modelled_run("failed", 1),
                              modelled_run("interrupted", 1), modelled_run("missing", 0)};
  add_modelled(runs, hardware);
  for (const RunRecord& run : runs) {
    const std::map<std::string, double> figures(run.modelled.begin(), run.modelled.end());
    EXPECT_GT(figures.at("modelled_samples_per_second"), 0) << run.state;
    EXPECT_EQ(figures.count("modelled_hours"), run.done() ? 1u : 0u) << run.state;
    if (run.done()) {
      EXPECT_DOUBLE_EQ(figures.at("modelled_hours"),
                       200 / figures.at("modelled_samples_per_second") / 3600);
    }
  }
}

}  // namespace
}  // namespace pipewright::test
