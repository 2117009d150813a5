// SPDX-License-Identifier: Apache-2.0
// Makes a skip a failure where $PIPEWRIGHT_MAY_LACK is set and does not list what is lacking.
#include "tests/unit/skips.h"

#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>

namespace pipewright::test {
namespace {

/// Whether the blank-separated words hold the one that the reason names: "lacks WORD: …".
bool lists(const std::string& words, std::string_view reason) {
  std::istringstream in(words);
  for (std::string word; in >> word;)
    if (reason.starts_with("lacks " + word + ": ")) return true;
  return false;
}

/// Hears of the end of a test before GoogleTest's own printer does, so a skip that it makes a
/// failure is never printed as skipped: ctest would believe that print rather than the exit code.
class ForbiddenSkips final : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo& test) override {
    const char* allowed = std::getenv("PIPEWRIGHT_MAY_LACK");
    if (allowed == nullptr || !test.result()->Skipped()) return;
    for (int part = 0; part < test.result()->total_part_count(); ++part) {
      const testing::TestPartResult& result = test.result()->GetTestPartResult(part);
      if (result.skipped() && !lists(allowed, result.message()))
        ADD_FAILURE() << "skipped, though PIPEWRIGHT_MAY_LACK is '" << allowed << "'";
    }
  }
};

/// Before main, which is GoogleTest's.
[[maybe_unused]] const bool listening = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new ForbiddenSkips);
  return true;
}();

}  // namespace
}  // namespace pipewright::test
