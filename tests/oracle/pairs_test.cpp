// SPDX-License-Identifier: Apache-2.0
/// That no option of the program is missing among the pairs, but those of a list that may only
/// shrink; and that the program refuses what is not defined.
#include "pairs.h"

#include "program.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

namespace oracle {
namespace {

class Pairs : public testing::Test {
 protected:
  ~Pairs() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("pipewright_pairs_" + std::to_string(getpid()));
};

/// The first words of the lines of unknown_options.txt.
std::set<std::string> listed() {
  std::ifstream file(std::filesystem::path(PIPEWRIGHT_ORACLE_DIR) / "unknown_options.txt");
  std::set<std::string> all;
  for (std::string line; std::getline(file, line);)
    if (!line.empty() && line.front() != '#') all.insert(line.substr(0, line.find(' ')));
  return all;
}

nlohmann::json json_of(const std::string& text) {
  const nlohmann::json value = nlohmann::json::parse(text, nullptr, false);
  return value.is_discarded() ? nlohmann::json(text) : value;
}

/// Whether some experiment has the part, or the option with another value than its default.
bool has(const OptionValues& values, const std::string& option, const std::string& standard) {
  const auto found = values.find(option);
  if (found == values.end()) return false;
  return standard.empty() || std::ranges::any_of(found->second, [&](const std::string& value) {
           return json_of(value) != json_of(standard);
         });
}

TEST_F(Pairs, HaveEveryOptionOfTheProgramOrItIsListedAsUnknown) {
  const std::set<std::string> unknown = listed();
  const OptionValues values = option_values(cases_of_pairs());
  const std::map<std::string, std::string> options = options_of_program(folder_);
  EXPECT_GT(options.size(), 100U);
  for (const auto& [option, standard] : options) {
    const bool known = has(values, option, standard);
    EXPECT_NE(known, unknown.contains(option))
        << option
        << (known ? " is known now: take it off the list"
                  : " is new: give pairs.cpp a feature with it");
  }
  for (const std::string& option : unknown)
    EXPECT_TRUE(options.contains(option)) << option << " is no option any more";
}

TEST_F(Pairs, MeetInAboutAThousandExperiments) {
  const std::vector<Experiment> experiments = cases_of_pairs();
  EXPECT_GT(experiments.size(), 800U);
  EXPECT_LT(experiments.size(), 1300U);
  for (const Experiment& e : experiments) EXPECT_EQ(undefined_because(e), "") << e.name;
}

/// One of each reason and scheme.
TEST_F(Pairs, AreRefusedWhereTheyAreNotDefined) {
  std::map<std::string, Experiment> some;
  for (const Experiment& e : undefined_pairs())
    some.emplace(undefined_because(e) + " of " + e.scheme.name, e);
  EXPECT_GT(some.size(), 12U);
  for (const auto& [why, experiment] : some) {
    const ProgramRun run = run_program(experiment, folder_ / "run");
    EXPECT_NE(run.exit_code, 0) << why << "\n" << experiment_file(experiment);
    const std::string word = why.substr(0, why.find(" of "));
    EXPECT_NE(run.log.find(word), std::string::npos) << why << ": " << run.log;
    std::filesystem::remove_all(folder_ / "run");
  }
}

}  // namespace
}  // namespace oracle
