// SPDX-License-Identifier: Apache-2.0
// Says of every skip why it is one, and makes it a failure where $PIPEWRIGHT_MAY_LACK is set and
// does not list what is lacking.
#include "tests/unit/skips.h"

#include <cstdio>
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

/// Prints the lines that ../entry.py looks for.
class Skips final : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo& test) override {
    if (!test.result()->Skipped()) return;
    const char* allowed = std::getenv("PIPEWRIGHT_MAY_LACK");
    for (int part = 0; part < test.result()->total_part_count(); ++part) {
      const testing::TestPartResult& result = test.result()->GetTestPartResult(part);
      if (!result.skipped()) continue;
      if (allowed != nullptr && !lists(allowed, result.message()))
        ADD_FAILURE() << "skipped, though PIPEWRIGHT_MAY_LACK is '" << allowed << "'";
      std::printf("SKIPPED: %s.%s: %s\n", test.test_suite_name(), test.name(), result.message());
    }
  }
};

/// Before main, which is GoogleTest's.
[[maybe_unused]] const bool listening = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new Skips);
  return true;
}();

}  // namespace
}  // namespace pipewright::test
