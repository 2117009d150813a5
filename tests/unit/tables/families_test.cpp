// SPDX-License-Identifier: Apache-2.0
#include "core/tables/families.h"

#include <gtest/gtest.h>

#include "core/base/wording.h"
#include "core/config/json.h"
#include "tests/unit/config/error_text.h"
#include "tests/unit/tolerances.h"

namespace pipewright {
namespace {

/// A claim with one comparison; p "null" for one that has not been made.
std::string claim(const std::string& say, const std::string& p, const std::string& more) {
  return concat(R"({"say": ")", say, R"(", "tests": [{"verdict": "not shown", "p": )", p, ", ",
                more, "}]}");
}
const std::string kLessThan = R"("kind": "less", "effect": 0.01, "p_sign_flips": 0.002)";

Value table(const std::vector<std::string>& claims) {
  return parse_json(concat(R"({"claims": [)", join(claims, ", "), "]}"), "table.json");
}

double p_of(const Value& decided, int claim) {
  const Value* p = decided.find_path(concat("claims.", claim, ".tests.0.p_holm"));
  return p->is(Value::Kind::Integer) ? static_cast<double>(p->integer) : p->number;
}
std::string verdict_of(const Value& decided, int claim) {
  return decided.find_path(concat("claims.", claim, ".tests.0.verdict"))->text;
}
/// The verdict on one comparison alone, whose corrected p is its own.
std::string alone(const std::string& p, const std::string& more) {
  return verdict_of(decided_together({table({claim("a", p, more)})}, {}), 0);
}

TEST(Families, AreCorrectedOverAllTablesAndWhatHasNotRun) {
  const Value decided = decided_together(
      {table({claim("P1: a", "0.02", kLessThan), claim("S1: b", "0.001", kLessThan)}),
       table({claim("P2: c", "null", kLessThan), claim("P3: d", "0.01", kLessThan)})},
      {"P1", "P2", "P3"});
  EXPECT_EQ(decided.find("comparisons")->integer, 3);
  ASSERT_EQ(decided.find("claims")->items.size(), 3u);
  EXPECT_NEAR(p_of(decided, 0), 0.04, tolerance::kFewOperations);  // 0.02 × 2
  EXPECT_EQ(p_of(decided, 1), 1);
  EXPECT_NEAR(p_of(decided, 2), 0.03, tolerance::kFewOperations);  // 0.01 × 3
  EXPECT_EQ(verdict_of(decided, 0), "held");
  EXPECT_EQ(verdict_of(decided, 1), "not shown");
  EXPECT_EQ(decided.find_path("claims.2.table")->integer, 1);
  EXPECT_EQ(decided.find_path("claims.2.say")->text, "P3: d");
}

/// The sentence of a table has the correction of that table's claims.
TEST(Families, SayTheCorrectedPOfTheFamily) {
  const auto why = [](const std::string& sentence) {
    const std::string more = concat(kLessThan, R"(, "why": ")", sentence, "\"");
    const Value decided =
        decided_together({table({claim("P1: a", "0.01", more), claim("P2: b", "0.02", kLessThan)}),
                          table({claim("P3: c", "0.03", kLessThan)})},
                         {});
    return decided.find_path("claims.0.tests.0.why")->text;
  };
  EXPECT_EQ(why("between 1 and 3, p 0.01, with Holm's correction 0.02"),
            "between 1 and 3, p 0.01, with Holm's correction 0.03");
  EXPECT_EQ(why("between 1 and 3, p 0.01, with Holm's correction 0.02; by signs 0.2"),
            "between 1 and 3, p 0.01, with Holm's correction 0.03; by signs 0.2");
  EXPECT_EQ(why("between 1 and 3, p 0.01"), "between 1 and 3, p 0.01, with Holm's correction 0.03")
      << "the only claim of its table";
}

TEST(Families, HoldALessWhereBothTestsSaySo) {
  EXPECT_EQ(alone("0.05", kLessThan), "held");
  EXPECT_EQ(alone("0.051", kLessThan), "not shown");
  EXPECT_EQ(alone("0.05", R"("kind": "less", "effect": 0.01, "p_sign_flips": 0.0625)"),
            "not shown");
  // Of more than 40 pairs, and where runs are no pairs, there is no such p: the t test decides.
  EXPECT_EQ(alone("0.05", R"("kind": "less", "effect": 0.01, "p_sign_flips": null)"), "held");
  EXPECT_EQ(alone("0.05", R"("kind": "less", "effect": -0.01, "p_sign_flips": 0.0625)"),
            "not held");
}

/// The least p by signs of 5 pairs is 2 / 2⁵; a verdict that more runs alone could change says so.
TEST(Families, SayThatFewPairsCannotShowALessBySigns) {
  const auto why = [](const std::string& p, const std::string& signs, int wins, int ties) {
    const Value decided = decided_together(
        {table({claim("a", p,
                      concat(R"("kind": "less", "effect": 0.01, "why": "x", "p_sign_flips": )",
                             signs, R"(, "wins": )", wins, R"(, "losses": 0, "ties": )", ties))})},
        {});
    return decided.find_path("claims.0.tests.0.why")->text;
  };
  EXPECT_EQ(why("0.01", "0.0625", 5, 0),
            "x; by signs 0.062, and with 5 pairs that differ it cannot be less than 0.062; 6 are "
            "the least");
  EXPECT_EQ(why("0.01", "0.25", 3, 4),
            "x; by signs 0.25, and with 3 pairs that differ it cannot be less than 0.25; 6 are the "
            "least");
  EXPECT_EQ(why("0.01", "0.03125", 6, 0), "x") << "is held";
  EXPECT_EQ(why("0.01", "0.0625", 9, 0), "x") << "so many pairs could have shown it";
  EXPECT_EQ(why("0.06", "0.0625", 5, 0), "x") << "the t test does not show it, either";
}

TEST(Families, DecideACloseByItsOwnTest) {
  EXPECT_EQ(alone("0.05", R"("kind": "close", "effect": -0.004, "within": 0.005)"), "held");
  EXPECT_EQ(alone("0.05", R"("kind": "close", "effect": -0.006, "within": 0.005)"), "not held");
  EXPECT_EQ(alone("0.051", R"("kind": "close", "effect": -0.006, "within": 0.005)"), "not shown");
}

TEST(Families, LeaveHowRunsEndAsItIs) {
  const Value decided = decided_together(
      {table({R"({"say": "a", "tests": [{"kind": "learns", "verdict": "held", "hits": 3}]})",
              claim("b", "0.04", kLessThan)})},
      {});
  EXPECT_EQ(decided.find("comparisons")->integer, 1);
  EXPECT_EQ(verdict_of(decided, 0), "held");
  EXPECT_NEAR(p_of(decided, 1), 0.04, tolerance::kFewOperations);
}

TEST(Families, RefuseWhatIsNoTableAndIdsThatNoClaimHas) {
  EXPECT_THROW(decided_together({Value::mapping()}, {}), Error);
  EXPECT_EQ(error_text([] { decided_together({table({claim("P1: a", "1", kLessThan)})}, {"P"}); }),
            "no claim of the tables begins with 'P:'");
}

}  // namespace
}  // namespace pipewright
