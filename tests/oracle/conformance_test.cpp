// SPDX-License-Identifier: Apache-2.0
/// The program against the oracle: random experiments of every scheme, weights and losses compared.
#include "cases.h"
#include "learning_rate.h"
#include "pairs.h"
#include "program.h"
#include "tolerances.h"
#include "training.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>

namespace oracle {

/// For GoogleTest's listings.
void PrintTo(const Experiment& experiment, std::ostream* stream) {
  *stream << experiment.name;
}

namespace {

bool differ(double a, double b) {
  return !(std::abs(a - b) <= tolerance::kAgreement * std::max(1.0, std::abs(a)));
}

class Scheme : public testing::TestWithParam<Experiment> {
 protected:
  Scheme()
      : folder_(std::filesystem::path(testing::TempDir()) /
                ("pipewright_oracle_" + std::to_string(getpid())) / GetParam().name) {}

  /// Removes what the run left, unless it is needed to understand a failure.
  ~Scheme() override {
    std::error_code ignored;
    if (!HasFailure()) {
      std::filesystem::remove_all(folder_, ignored);
      std::filesystem::remove(folder_.parent_path(), ignored);
    }
  }

  /// First mini-batch at which a loss differs, in words; empty if none does.
  static std::string first_different_loss(const Experiment& experiment, const Result& expected,
                                          const ProgramRun& run);

  /// First parameter, in layer order, that differs at the end, in words; empty if none does.
  static std::string first_different_parameter(const Experiment& experiment, const Result& expected,
                                               const ProgramRun& run);

  std::filesystem::path folder_;
};

std::string Scheme::first_different_loss(const Experiment& experiment, const Result& expected,
                                         const ProgramRun& run) {
  std::ostringstream text;
  text << std::setprecision(17);
  if (run.steps.size() != expected.losses.size()) {
    text << "steps.csv has " << run.steps.size() << " lines, expected " << expected.losses.size();
    return text.str();
  }
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    const auto minibatches = static_cast<std::size_t>(experiment.minibatches());
    const StepLine& line = run.steps[i];
    text << "epoch " << i / minibatches << ", mini-batch " << i % minibatches << " (from 0): ";
    if (static_cast<std::size_t>(line.epoch) != i / minibatches ||
        static_cast<std::size_t>(line.minibatch) != i % minibatches)
      return text.str() + "no such line in steps.csv";
    std::vector<double> numbers = expected.losses[i];  // auxiliary losses follow the loss
    if (experiment.learning_rate.per == "step")
      numbers.push_back(learning_rate(experiment, static_cast<int>(i)));
    if (line.numbers.size() != numbers.size())
      return text.str() + "another number of columns: " + std::to_string(line.numbers.size());
    for (std::size_t column = 0; column < numbers.size(); ++column)
      if (differ(numbers[column], line.numbers[column])) {
        text << "column " << column << " behind epoch and mini-batch is " << line.numbers[column]
             << ", expected " << numbers[column];
        return text.str();
      }
    text.str("");
  }
  return "";
}

std::string Scheme::first_different_parameter(const Experiment& experiment, const Result& expected,
                                              const ProgramRun& run) {
  std::ostringstream text;
  text << std::setprecision(17);
  std::size_t tensors = 0;
  for (int k = 0; k < experiment.stages(); ++k) {
    const std::vector<std::string> names = parameter_names(experiment, k);
    tensors += names.size();
    for (std::size_t i = 0; i < names.size(); ++i) {
      const Matrix& tensor = expected.weights[static_cast<std::size_t>(k)][i];
      const auto found = run.weights.find(names[i]);
      if (found == run.weights.end()) return names[i] + " is missing from final.safetensors";
      if (std::ssize(found->second) != tensor.size()) return names[i] + " has another size";
      for (Eigen::Index j = 0; j < tensor.size(); ++j)
        if (const double actual = found->second[static_cast<std::size_t>(j)];
            differ(tensor.data()[j], actual)) {
          text << names[i] << "[" << j << "] of stage " << k << " is " << actual << ", expected "
               << tensor.data()[j];
          return text.str();
        }
    }
  }
  return tensors == run.weights.size() ? "" : "final.safetensors holds more than the parameters";
}

TEST_P(Scheme, Agrees) {
  const Experiment& experiment = GetParam();
  const ProgramRun run = run_program(experiment, folder_);
  const std::string context = "\n--- " + (folder_ / "experiment.yaml").string() + "\n" +
                              experiment_file(experiment) + "---\n" + run.log;
  ASSERT_EQ(run.exit_code, 0) << context;
  const Result expected = train(experiment, training_data(experiment), initial_weights(experiment));
  EXPECT_EQ(first_different_loss(experiment, expected, run), "") << context;
  EXPECT_EQ(first_different_parameter(experiment, expected, run), "") << context;
}

std::string case_name(const testing::TestParamInfo<Experiment>& info) {
  return info.param.name.substr(info.param.scheme.name.size() + 1);
}

#define PIPEWRIGHT_ORACLE_CASES(scheme, count) \
  INSTANTIATE_TEST_SUITE_P(scheme, Scheme, testing::ValuesIn(cases(#scheme, count)), case_name)

PIPEWRIGHT_ORACLE_CASES(data_parallel, 4);
PIPEWRIGHT_ORACLE_CASES(model_parallel, 4);
PIPEWRIGHT_ORACLE_CASES(gpipe, 6);
PIPEWRIGHT_ORACLE_CASES(one_f_one_b, 6);
PIPEWRIGHT_ORACLE_CASES(pipedream, 12);
PIPEWRIGHT_ORACLE_CASES(pipedream_2bw, 7);
PIPEWRIGHT_ORACLE_CASES(spectrain, 16);
PIPEWRIGHT_ORACLE_CASES(pipeoptim, 16);
PIPEWRIGHT_ORACLE_CASES(xpipe, 8);
PIPEWRIGHT_ORACLE_CASES(interlocking, 12);
PIPEWRIGHT_ORACLE_CASES(delayed_sgd, 6);
PIPEWRIGHT_ORACLE_CASES(interleaved, 5);
PIPEWRIGHT_ORACLE_CASES(zb_h1, 5);
PIPEWRIGHT_ORACLE_CASES(zb_h2, 5);
PIPEWRIGHT_ORACLE_CASES(zb_v, 4);
PIPEWRIGHT_ORACLE_CASES(v_half, 4);
PIPEWRIGHT_ORACLE_CASES(v_min, 4);
PIPEWRIGHT_ORACLE_CASES(hanayo, 4);
PIPEWRIGHT_ORACLE_CASES(seq1f1b, 3);
PIPEWRIGHT_ORACLE_CASES(dualpipe_v, 4);
PIPEWRIGHT_ORACLE_CASES(chimera, 4);
PIPEWRIGHT_ORACLE_CASES(dualpipe, 4);
PIPEWRIGHT_ORACLE_CASES(amdp, 6);
PIPEWRIGHT_ORACLE_CASES(paci, 5);
PIPEWRIGHT_ORACLE_CASES(lwp, 8);
PIPEWRIGHT_ORACLE_CASES(features_replay, 8);
PIPEWRIGHT_ORACLE_CASES(pipemare, 14);

std::string whole_name(const testing::TestParamInfo<Experiment>& info) {
  return info.param.name;
}

#define PIPEWRIGHT_ORACLE_OPTIMIZER(optimizer)                                                   \
  INSTANTIATE_TEST_SUITE_P(optimizer, Scheme, testing::ValuesIn(cases_of_optimizer(#optimizer)), \
                           whole_name)

PIPEWRIGHT_ORACLE_OPTIMIZER(lion);
PIPEWRIGHT_ORACLE_OPTIMIZER(nadamw);
PIPEWRIGHT_ORACLE_OPTIMIZER(adan);
PIPEWRIGHT_ORACLE_OPTIMIZER(muon);
PIPEWRIGHT_ORACLE_OPTIMIZER(soap);
PIPEWRIGHT_ORACLE_OPTIMIZER(spike_compensation);

INSTANTIATE_TEST_SUITE_P(stage_momenta, Scheme, testing::ValuesIn(cases_of_stage_momenta()),
                         whole_name);
INSTANTIATE_TEST_SUITE_P(ftpipe, Scheme, testing::ValuesIn(cases_of_ftpipe(8)), whole_name);

#define PIPEWRIGHT_ORACLE_RULE(rule) \
  INSTANTIATE_TEST_SUITE_P(rule, Scheme, testing::ValuesIn(cases_of_rule(#rule)), whole_name)

PIPEWRIGHT_ORACLE_RULE(clip);
PIPEWRIGHT_ORACLE_RULE(dc_asgd);
PIPEWRIGHT_ORACLE_RULE(gap_aware);
PIPEWRIGHT_ORACLE_RULE(staleness_lr);

INSTANTIATE_TEST_SUITE_P(error_feedback, Scheme, testing::ValuesIn(cases_of_error_feedback()),
                         whole_name);

INSTANTIATE_TEST_SUITE_P(waiting, Scheme, testing::ValuesIn(cases_of_waiting_gradients()),
                         whole_name);

/// The pairs in two parts: every 200th experiment, and the others.
std::vector<Experiment> part_of_pairs(bool sample) {
  std::vector<Experiment> part;
  int number = 0;
  for (const Experiment& e : cases_of_pairs())
    if ((number++ % 200 == 0) == sample) part.push_back(e);
  return part;
}
INSTANTIATE_TEST_SUITE_P(some_pairs, Scheme, testing::ValuesIn(part_of_pairs(true)), whole_name);
INSTANTIATE_TEST_SUITE_P(pairs, Scheme, testing::ValuesIn(part_of_pairs(false)), whole_name);

#define PIPEWRIGHT_ORACLE_DEFECTS(scheme, count)          \
  INSTANTIATE_TEST_SUITE_P(scheme##_with_defects, Scheme, \
                           testing::ValuesIn(cases_with_defects(#scheme, count)), case_name)

PIPEWRIGHT_ORACLE_DEFECTS(pipedream, 8);
PIPEWRIGHT_ORACLE_DEFECTS(spectrain, 6);
PIPEWRIGHT_ORACLE_DEFECTS(pipeoptim, 6);

}  // namespace
}  // namespace oracle
