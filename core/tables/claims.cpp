// SPDX-License-Identifier: Apache-2.0
#include "core/tables/claims.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/tables/read_section.h"
#include "core/tables/run_keys.h"
#include "core/tables/table_spec.h"

namespace pipewright {
namespace {

constexpr const char* kExample = "[{scheme.name: pipedream}, {scheme.name: gpipe}]";
constexpr std::array kConditions{"less",     "close",  "diverges",
                                 "finishes", "learns", "learns_nothing"};

/// One group: a mapping of keys to values. Records a problem and returns an empty one if it is
/// something else.
ClaimGroup read_group(const Value& given, const std::string& option, Problems& problems) {
  ClaimGroup group{.option = option, .place = given.place};
  const auto refuse = [&](const Place& place, const std::string& message) {
    problems.add(place, concat(option, message));
  };
  if (!given.is(Value::Kind::Mapping) || given.fields.empty()) {
    refuse(given.place, concat(" is ", given.shown(),
                               "; expected keys and values that runs have, such as {scheme.name: "
                               "pipedream, pipeline.stages: 8}"));
    return group;
  }
  for (const auto& [key, value] : given.fields) {
    if (value.is(Value::Kind::Mapping) || value.is(Value::Kind::Null))
      refuse(value.place, concat(".", key, " is ", value.shown(),
                                 "; expected a value, and dotted keys such as scheme.name"));
    group.values.emplace_back(TableKey{key, value.key_place()}, value_text(value));
  }
  return group;
}

/// A group, or a list of them that counts as their mean.
ClaimGroup read_group_or_mean(const Value& given, const std::string& option, Problems& problems) {
  if (!given.is(Value::Kind::Sequence) || given.items.size() < 2)
    return read_group(given, option, problems);
  ClaimGroup mean{.option = option, .place = given.place};
  for (std::size_t i = 0; i < given.items.size(); ++i)
    mean.parts.push_back(read_group(given.items[i], concat(option, "[", i, "]"), problems));
  return mean;
}

/// A list of at least `fewest` groups; nothing if the option is absent.
std::vector<ClaimGroup> read_groups(Options& options, const std::string& claim, const char* name,
                                    std::size_t fewest, const char* help, Problems& problems) {
  // Conditions on how the runs of a single group end have no means.
  const auto read = fewest > 1 ? read_group_or_mean : read_group;
  const Value given = options.any(name, Value::sequence(), help);
  if (!options.given(name)) return {};
  if (!given.is(Value::Kind::Sequence) || given.items.size() < fewest) {
    options.problem(
        name, concat("is ", given.shown(), "; expected a list of at least ",
                     counted(fewest, "group"), " of runs, such as ", std::string_view(kExample)));
    return {};
  }
  std::vector<ClaimGroup> groups;
  for (std::size_t i = 0; i < given.items.size(); ++i)
    groups.push_back(
        read(given.items[i], concat(claim, ".", std::string_view(name), "[", i, "]"), problems));
  return groups;
}

/// Shares such as accuracies are at most 1; `within: 2` would hold whatever the runs are.
void check_units(const Claim& claim, const std::string& metric, Options& options) {
  if (!is_share(metric)) return;
  for (const auto& [name, number] : {std::pair{"within", claim.within}, {"floor", claim.floor}})
    if (number >= 1)
      options.problem(name, concat("is ", number, ", and ", metric,
                                   " is at most 1; two points are 0.02, and 30 % are 0.3"));
}

Claim read_claim(Options& options, const std::string& name, Problems& problems) {
  Claim claim{.option = name};
  claim.say = options.required_text("say", "The claim in one sentence, as it is printed.");
  claim.metric.name = options.text("metric", "", "What is compared; default: table.metric.");
  claim.metric.place = options.where("metric");
  claim.less = read_groups(options, name, "less", 2,
                           "Groups of runs, each a mapping of keys to values. The metric's mean "
                           "over the runs of each is less than over those of the next. Groups may "
                           "differ within themselves in train.seed only. A list of groups counts "
                           "as their mean, seed by seed.",
                           problems);
  claim.close =
      read_groups(options, name, "close", 2,
                  "Groups of runs, any two of whose means differ by less than `within`.", problems);
  claim.within = options.number("within", 0,
                                "With close: the difference that does not matter, in the metric's "
                                "own unit; of accuracies 0.01 is one point.",
                                kNotNegative);
  claim.diverges = read_groups(options, name, "diverges", 1,
                               "Groups of runs all of which end because a loss or a weight is not "
                               "finite (exit code 6).",
                               problems);
  claim.finishes = read_groups(options, name, "finishes", 1,
                               "Groups of runs all of which are trained to their end.", problems);
  claim.learns = read_groups(options, name, "learns", 1,
                             "Groups of runs all of which are trained to their end and learn: the "
                             "metric is as good as `floor` or better.",
                             problems);
  claim.learns_nothing =
      read_groups(options, name, "learns_nothing", 1,
                  "Groups of runs none of which learns: each diverges, or its metric is worse than "
                  "`floor`.",
                  problems);
  claim.floor = options.number("floor", 0,
                               "With learns and learns_nothing: the metric from which on a run has "
                               "learned, in its own unit; of accuracies 0.3 is 30 %.",
                               kNotNegative);
  const auto given = [&](const char* option) { return options.given(option); };
  if (std::ranges::none_of(kConditions, given))
    options.problem("less", concat("is missing, and so are close, diverges, finishes, learns and "
                                   "learns_nothing; a claim needs a condition, such as less: ",
                                   std::string_view(kExample)));
  if (given("close") && claim.within <= 0)
    options.problem("within",
                    "is missing; close needs the difference that does not matter, such "
                    "as 0.01");
  if (given("within") && !given("close")) options.problem("within", "needs close");
  const bool learning = given("learns") || given("learns_nothing");
  if (learning && !given("floor"))
    options.problem("floor",
                    "is missing; learns and learns_nothing need the metric from which on a run has "
                    "learned, such as 0.3");
  if (given("floor") && !learning) options.problem("floor", "needs learns or learns_nothing");
  return claim;
}

/// Records a problem if no run has the group's value of a key.
void check_value(const TableKey& key, const std::string& text, const ClaimGroup& group,
                 const std::vector<RunRecord>& runs, Problems& problems) {
  std::vector<std::string> known;
  for (const RunRecord& run : runs) {
    const std::string other = key_text(run, key.name);
    if (other == text) return;
    if (other != "–" && !other.empty() && std::ranges::count(known, other) == 0)
      known.push_back(other);
  }
  if (known.empty()) return;
  problems.add(key.place,
               concat(group.option, ": no run has ", key.name, " ", text, suggestion(text, known)));
}

}  // namespace

std::string ClaimGroup::name() const {
  std::vector<std::string> words;
  for (const ClaimGroup& part : parts) words.push_back(part.name());
  if (!words.empty()) return concat("the mean of ", join(words, " and "));
  for (const auto& [key, text] : values) words.push_back(named_value(key.name, text));
  return join(words, ", ");
}

std::vector<const ClaimGroup*> ClaimGroup::single() const {
  if (parts.empty()) return {this};
  std::vector<const ClaimGroup*> all;
  for (const ClaimGroup& part : parts) all.push_back(&part);
  return all;
}

bool ClaimGroup::has(const RunRecord& run) const {
  return std::ranges::all_of(
      values, [&](const auto& pair) { return key_text(run, pair.first.name) == pair.second; });
}

std::vector<const ClaimGroup*> Claim::groups() const {
  std::vector<const ClaimGroup*> all;
  for (const auto* of_condition : {&less, &close, &diverges, &finishes, &learns, &learns_nothing})
    for (const ClaimGroup& group : *of_condition)
      for (const ClaimGroup* part : group.single()) all.push_back(part);
  return all;
}

std::vector<Claim> read_claims(const Value& document) {
  const Value* given = document.find("claims");
  if (given == nullptr || given->is(Value::Kind::Null)) return {};
  Problems problems;
  std::vector<Claim> claims;
  if (!given->is(Value::Kind::Sequence))
    problems.add(given->place, concat("claims is ", given->shown(),
                                      "; expected a list of mappings such as {say: …, less: ",
                                      std::string_view(kExample), "}"));
  const Value* const of_table = document.find_path("table.metric");
  const std::string metric = of_table == nullptr ? default_metric(document) : of_table->text;
  for (std::size_t i = 0; i < given->items.size(); ++i) {
    const std::string name = concat("claims[", i, "]");
    Options options(&given->items[i], name, problems);
    claims.push_back(read_claim(options, name, problems));
    const std::string& own = claims.back().metric.name;
    check_units(claims.back(), own.empty() ? metric : own, options);
    options.finish();
  }
  problems.throw_if_any();
  return claims;
}

void check_claims(const std::vector<Claim>& claims, const std::vector<RunRecord>& runs,
                  Problems& problems) {
  const auto labelled = [](const RunRecord& run) { return !run.label.empty(); };
  const bool labels = std::ranges::any_of(runs, labelled);
  for (const Claim& claim : claims)
    for (const ClaimGroup* group : claim.groups())
      for (const auto& [key, text] : group->values) {
        check_key(key, group->option.c_str(), runs, problems);
        const bool judged = key.name == "label" ? labels : key.name != "train.seed";
        if (judged) check_value(key, text, *group, runs, problems);
      }
}

std::vector<OptionInfo> claim_options() {
  Problems unheard;
  const auto read = [&](Options& options) { return read_claim(options, "claims", unheard); };
  return options_read_by(read, "claims", "{say: x}");
}

}  // namespace pipewright
