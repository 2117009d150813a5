// SPDX-License-Identifier: Apache-2.0
#include "core/tables/families.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/printed.h"
#include "core/base/wording.h"
#include "core/config/json.h"
#include "core/statistics/tests.h"
#include "core/tables/verdicts.h"

namespace pipewright {
namespace {

constexpr double kFamilyLevel = 0.05;

const std::vector<Value>& items_at(const Value& mapping, std::string_view key) {
  const Value* found = mapping.find(key);
  if (found == nullptr || !found->is(Value::Kind::Sequence))
    throw Error(ErrorKind::Data, concat("has no list '", std::string(key),
                                        "'; expected what `table --format json` prints"));
  return found->items;
}

bool compares_means(const Value& test) {
  const std::string kind = text_at(test, "kind");
  return kind == "less" || kind == "close";
}

/// Whether a comparison that the t test has decided is held back by its exact p.
bool fails_by_signs(const Value& test) {
  return number_at(test, "p_sign_flips") > kFamilyLevel;  // false of none
}

/// The decision on a comparison with that corrected p.
Outcome outcome_of(const Value& test, double adjusted) {
  if (adjusted > kFamilyLevel) return Outcome::NotShown;
  const bool ratio = test.find("ratio") != nullptr;
  const double effect = ratio ? std::log(number_at(test, "effect")) : number_at(test, "effect");
  const double within = ratio ? std::log1p(number_at(test, "within")) : number_at(test, "within");
  if (text_at(test, "kind") == "close")
    return std::abs(effect) > within ? Outcome::NotHeld : Outcome::Held;
  if (effect < 0) return Outcome::NotHeld;
  return fails_by_signs(test) ? Outcome::NotShown : Outcome::Held;
}

/// The least exact p that so many pairs can have: all differences have one sign, in one way or the
/// other.
double least_p_by_signs(std::int64_t pairs) {
  return std::min(1.0, std::exp2(static_cast<double>(1 - pairs)));
}

/// "by signs 0.062, and with 5 pairs that differ it cannot be less than 0.062; 6 are the least": of
/// a `less` that the t test shows and that its exact p could not show whatever the runs had been,
/// because so few pairs have a difference. "" of all others.
std::string why_not_by_signs(const Value& test, double adjusted) {
  const Value *wins = test.find("wins"), *losses = test.find("losses");
  const bool by_signs = adjusted <= kFamilyLevel && text_at(test, "kind") == "less" &&
                        outcome_of(test, adjusted) == Outcome::NotShown;
  if (!by_signs || wins == nullptr || losses == nullptr) return {};
  const std::int64_t pairs = wins->integer + losses->integer;
  if (least_p_by_signs(pairs) <= kFamilyLevel) return {};
  std::int64_t fewest = pairs;
  while (least_p_by_signs(fewest) > kFamilyLevel) ++fewest;
  return concat("by signs ", printed("%.2g", number_at(test, "p_sign_flips")), ", and with ",
                counted(pairs, "pair"), " that differ", pairs == 1 ? "s" : "",
                " it cannot be less than ", printed("%.2g", least_p_by_signs(pairs)), "; ", fewest,
                " are the least");
}

/// Whether the comparison's sentence says its corrected p.
bool is_corrected(const Value& test, std::size_t comparisons) {
  const Value* const why = test.find("why");
  const double p = number_at(test, "p");
  return why != nullptr && why->is(Value::Kind::Text) && comparisons > 1 && p > 0 &&
         p <= kFamilyLevel;
}

/// Adds a reason to the sentence of a comparison, if it has one.
void add_reason(Value& test, const std::string& reason) {
  if (reason.empty()) return;
  Value& why = test.at_or_add("why");
  why = Value::of(why.is(Value::Kind::Text) ? concat(why.text, "; ", reason) : reason);
}

/// The claims of a table that are of the family.
std::vector<Value> members_of(const Value& table, const std::vector<std::string>& ids,
                              std::vector<std::string>& found) {
  std::vector<Value> members;
  for (const Value& claim : items_at(table, "claims")) {
    const std::string say = text_at(claim, "say");
    const auto names = [&](const std::string& id) { return say.starts_with(id + ":"); };
    const auto id = std::ranges::find_if(ids, names);
    if (!ids.empty() && id == ids.end()) continue;
    if (id != ids.end()) found.push_back(*id);
    Value member = Value::mapping();
    member.at_or_add("say") = Value::of(say);
    member.at_or_add("tests") = Value::sequence(items_at(claim, "tests"));
    members.push_back(std::move(member));
  }
  return members;
}

}  // namespace

Value decided_together(const std::vector<Value>& tables, const std::vector<std::string>& ids) {
  Value claims = Value::sequence();
  std::vector<std::string> found;
  for (std::size_t number = 0; number < tables.size(); ++number)
    for (Value& member : members_of(tables[number], ids, found)) {
      member.at_or_add("table") = Value::of(static_cast<std::int64_t>(number));
      claims.items.push_back(std::move(member));
    }
  for (const std::string& id : ids)
    if (std::ranges::count(found, id) == 0)
      throw Error(ErrorKind::Experiment, concat("no claim of the tables begins with '", id, ":'"));
  std::vector<Value*> tests;
  std::vector<double> ps;
  for (Value& claim : claims.items)
    for (Value& test : claim.find("tests")->items)
      if (compares_means(test)) {
        const double p = number_at(test, "p");
        tests.push_back(&test);
        ps.push_back(std::isnan(p) ? 1 : p);
      }
  const std::vector<double> adjusted = holm_adjusted(ps);
  for (std::size_t i = 0; i < tests.size(); ++i) {
    tests[i]->at_or_add("p_holm") = Value::of(adjusted[i]);
    tests[i]->at_or_add("verdict") = Value::of(words_of(outcome_of(*tests[i], adjusted[i])));
    if (is_corrected(*tests[i], tests.size())) {
      Value& why = tests[i]->at_or_add("why");
      why = Value::of(with_holm(why.text, adjusted[i]));
    }
    add_reason(*tests[i], why_not_by_signs(*tests[i], adjusted[i]));
  }
  Value decided = Value::mapping();
  decided.at_or_add("comparisons") = Value::of(static_cast<std::int64_t>(tests.size()));
  decided.at_or_add("claims") = std::move(claims);
  return decided;
}

}  // namespace pipewright
