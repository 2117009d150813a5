// SPDX-License-Identifier: Apache-2.0
#include "core/config/options.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace pipewright {
namespace {

/// The options of a document, and what was complained about.
struct Reading {
  explicit Reading(const std::string& text, const std::string& path = "part")
      : document(parse_yaml(text, "dir/f.yaml")), options(&document, path, problems) {}

  std::string complaints() const {
    std::string out;
    for (const Error& error : problems.errors()) out += std::string(error.what()) + "\n";
    return out;
  }

  Value document;
  Problems problems;
  Options options;
};

TEST(Options, ReadsWhatIsGivenAndFallsBackOtherwise) {
  Reading given("{a: true, b: 3, c: 0.5, d: x, e: two, f: 2, g: [1, 2], h: [0.5, 1]}");
  Reading absent("{}");
  for (auto* reading : {&given, &absent}) {
    const bool is_given = reading == &given;
    Options& options = reading->options;
    EXPECT_EQ(options.flag("a", false, ""), is_given);
    EXPECT_EQ(options.integer("b", 7, ""), is_given ? 3 : 7);
    EXPECT_EQ(options.number("c", 0.25, ""), is_given ? 0.5 : 0.25);
    EXPECT_EQ(options.text("d", "y", ""), is_given ? "x" : "y");
    EXPECT_EQ(options.choice("e", {"one", "two"}, "one", ""), is_given ? "two" : "one");
    EXPECT_EQ(options.choice("f", {1, 2}, 1, ""), is_given ? 2 : 1);
    EXPECT_EQ(options.integers("g", {9}, ""),
              is_given ? (std::vector<std::int64_t>{1, 2}) : (std::vector<std::int64_t>{9}));
    EXPECT_EQ(options.numbers("h", {9}, ""),
              is_given ? (std::vector<double>{0.5, 1}) : (std::vector<double>{9}));
    EXPECT_EQ(options.given("a"), is_given);
    options.finish();
    EXPECT_EQ(reading->complaints(), "");
  }
}

TEST(Options, APartThatNobodyKnowsMayBeOneOfAPlugin) {
  const std::vector<std::string> known{"gpipe", "pipedream"};
  const auto complaint = [&](const std::string& name) {
    Reading reading("{name: " + name + ", option: 1}", "scheme");
    EXPECT_EQ(reading.options.part("name", known, "gpipe", ""),
              name == "pipedream" ? "pipedream" : "gpipe");
    reading.options.finish();  // which says nothing of the options of a part that is not known
    return reading.complaints();
  };
  EXPECT_EQ(complaint("half_way"),
            "dir/f.yaml:1:8: scheme.name is 'half_way'; expected gpipe or pipedream; one of a "
            "plugin needs --plugin FILE\n");
  EXPECT_EQ(complaint("pipedrem"),
            "dir/f.yaml:1:8: scheme.name is 'pipedrem'; expected gpipe or pipedream; did you mean "
            "'pipedream'?\n");
  EXPECT_EQ(complaint("3"), "dir/f.yaml:1:8: scheme.name is 3; expected gpipe or pipedream\n");
  EXPECT_EQ(complaint("pipedream"),
            "dir/f.yaml:1:19: unknown option 'scheme.option'; known: name\n");
}

TEST(Options, AnAbsentOrEmptySectionGivesFallbacks) {
  Problems problems;
  Options absent(nullptr, "part", problems);
  EXPECT_EQ(absent.integer("a", 5, ""), 5);
  const Value nothing;
  Options empty(&nothing, "part", problems);
  EXPECT_EQ(empty.integer("a", 5, ""), 5);
  EXPECT_TRUE(problems.empty());
}

TEST(Options, SaysWhatWasFoundWhereAndWhatIsExpected) {
  Reading reading("stages: four\nratio: 2\nrule: [1]\nname: 3\nlist: 4\nflag: 0\nempty:\n");
  Options& options = reading.options;
  EXPECT_EQ(options.integer("stages", 2, "", kPositive), 2);
  EXPECT_EQ(options.number("ratio", 0.5, "", kFraction), 0.5);
  EXPECT_EQ(options.choice("rule", {"a", "b", "c"}, "a", ""), "a");
  EXPECT_EQ(options.text("name", "x", ""), "x");
  EXPECT_EQ(options.integers("list", {1}, ""), std::vector<std::int64_t>{1});
  EXPECT_EQ(options.flag("flag", true, ""), true);
  EXPECT_EQ(options.integer("empty", 1, ""), 1);
  options.finish();
  EXPECT_EQ(reading.complaints(),
            "dir/f.yaml:1:9: part.stages is 'four'; expected a whole number of at least 1\n"
            "dir/f.yaml:2:8: part.ratio is 2; expected a number from 0 to 1\n"
            "dir/f.yaml:3:7: part.rule is a list; expected a, b or c\n"
            "dir/f.yaml:4:7: part.name is 3; expected a text; write \"3\" in quotes\n"
            "dir/f.yaml:5:7: part.list is 4; expected a list of whole numbers; write [4]\n"
            "dir/f.yaml:6:7: part.flag is 0; expected true or false\n"
            "dir/f.yaml:7:1: part.empty is empty; expected a whole number\n");
}

TEST(Options, TakesBothEndsOfARange) {
  Reading reading("{least: 0, most: 1, below: -0.001, above: 1.001}");
  EXPECT_EQ(reading.options.number("least", 0.5, "", kFraction), 0);
  EXPECT_EQ(reading.options.number("most", 0.5, "", kFraction), 1);
  EXPECT_EQ(reading.complaints(), "");
  EXPECT_EQ(reading.options.number("below", 0.5, "", kFraction), 0.5);
  EXPECT_EQ(reading.options.number("above", 0.5, "", kFraction), 0.5);
  EXPECT_EQ(reading.problems.errors().size(), 2U);
}

TEST(Options, QuotedScalarsAreAlwaysText) {
  Reading reading("{a: \"3\", b: \"true\", c: '0.5', d: \"2\"}");
  reading.options.integer("a", 0, "");
  reading.options.flag("b", false, "");
  reading.options.number("c", 0, "");
  reading.options.choice("d", {1, 2}, 1, "");
  EXPECT_EQ(reading.complaints(),
            "dir/f.yaml:1:5: part.a is '3'; expected a whole number; remove the quotes\n"
            "dir/f.yaml:1:13: part.b is 'true'; expected true or false; remove the quotes\n"
            "dir/f.yaml:1:24: part.c is '0.5'; expected a number; remove the quotes\n"
            "dir/f.yaml:1:34: part.d is '2'; expected 1 or 2; remove the quotes\n");
}

TEST(Options, SuggestsTheNearestChoice) {
  Reading reading("execution: thread");
  reading.options.choice("execution", {"serial", "threads", "mpi"}, "serial", "");
  EXPECT_EQ(reading.complaints(),
            "dir/f.yaml:1:12: part.execution is 'thread'; expected serial, threads or mpi; did you "
            "mean 'threads'?\n");
}

TEST(Options, TakesANumberForAnIntegerOnlyIfItIsExactlyOne) {
  Reading reading("{a: 1e3, b: 2.0, c: 2.5, d: 1e19, e: 4.99999999999999999999, f: [1e1], g: 1.0}");
  EXPECT_EQ(reading.options.integer("a", 0, ""), 1000);
  EXPECT_EQ(reading.options.integer("b", 0, ""), 2);
  EXPECT_EQ(reading.options.integers("f", {}, ""), std::vector<std::int64_t>{10});
  EXPECT_EQ(reading.options.choice("g", {1, 2}, 2, ""), 1);
  EXPECT_EQ(reading.complaints(), "");
  for (const char* name : {"c", "d", "e"}) EXPECT_EQ(reading.options.integer(name, -1, ""), -1);
  EXPECT_EQ(reading.problems.errors().size(), 3U);
}

TEST(Options, TakesAnIntegerForANumber) {
  Reading reading("{lr: 1, decays: [1, 0.5]}");
  EXPECT_EQ(reading.options.number("lr", 0, ""), 1.0);
  EXPECT_EQ(reading.options.numbers("decays", {}, ""), (std::vector<double>{1, 0.5}));
  EXPECT_EQ(to_json(reading.options.resolved()), R"({"lr":1.0,"decays":[1.0,0.5]})");
}

TEST(Options, ChecksEachElementOfAList) {
  Reading reading("balance: [4, x, 0, 2.5]");
  EXPECT_EQ(reading.options.integers("balance", {7}, "", kPositive), std::vector<std::int64_t>{7});
  EXPECT_EQ(reading.complaints(),
            "dir/f.yaml:1:14: part.balance[1] is 'x'; expected a whole number of at least 1\n"
            "dir/f.yaml:1:17: part.balance[2] is 0; expected a whole number of at least 1\n"
            "dir/f.yaml:1:20: part.balance[3] is 2.5; expected a whole number of at least 1\n");
}

TEST(Options, UnknownOnesAreProblemsWithTheNearestName) {
  Reading reading("version: 1\nverison: 2\ncompletely_different: 3\nversion.sub: 4\n");
  reading.options.integer("version", 1, "");
  reading.options.text("rule", "x", "");
  reading.options.finish();
  EXPECT_EQ(reading.complaints(),
            "dir/f.yaml:2:1: unknown option 'part.verison'; did you mean 'version'?\n"
            "dir/f.yaml:3:1: unknown option 'part.completely_different'; known: version, rule\n"
            "dir/f.yaml:4:1: unknown option 'part.version.sub'; write 'version: {sub: …}', dotted "
            "keys are for profiles, sweep, table and --set\n");
}

TEST(Options, OfAnUnknownPartAreNotJudged) {
  Reading reading("{name: sgdd, momentum: 2}");
  reading.options.choice("name", {"adam", "sgd"}, "adam", "");
  reading.options.finish();
  EXPECT_EQ(reading.complaints(),
            "dir/f.yaml:1:8: part.name is 'sgdd'; expected adam or sgd; did you mean 'sgd'?\n");
  for (const char* known : {"{name: adam, momentum: 2}", "{momentum: 2}"}) {
    Reading other(known);
    other.options.choice("name", {"adam", "sgd"}, "adam", "");
    other.options.finish();
    EXPECT_NE(other.complaints().find("unknown option 'part.momentum'"), std::string::npos);
  }
}

TEST(Options, RequiredOnesAreMissedAtTheirSection) {
  Reading reading("\n\nscheme: {version: 1}\n", "");
  Options scheme = reading.options.section("scheme", "");
  EXPECT_EQ(scheme.required_text("name", ""), "");
  scheme.integer("version", 1, "");
  scheme.finish();
  Options absent = reading.options.section("model", "");
  absent.required_text("name", "");
  absent.finish();
  reading.options.finish();
  EXPECT_EQ(reading.complaints(),
            "dir/f.yaml:3:1: model.name is missing; expected a text\n"
            "dir/f.yaml:3:9: scheme.name is missing; expected a text\n");
}

TEST(Options, ASectionThatIsNoMappingIsAProblem) {
  Reading reading("{scheme: pipedream, model: [1]}", "");
  reading.options.section("scheme", "").finish();
  reading.options.section("model", "").finish();
  EXPECT_EQ(reading.complaints(),
            "dir/f.yaml:1:10: scheme is 'pipedream'; expected a mapping of options; write {name: "
            "pipedream} if that is its name\n"
            "dir/f.yaml:1:28: model is a list; expected a mapping of options\n");
}

TEST(Options, OnlyASectionWithANameIsAdvisedToHaveOne) {
  Reading reading("{train: {checkpoint: never}, output: none, optimizer: adam}", "");
  Options train = reading.options.section("train", "");
  train.section("checkpoint", "").finish();
  train.finish();
  for (const char* section : {"output", "optimizer"}) reading.options.section(section, "").finish();
  EXPECT_EQ(reading.complaints(),
            "dir/f.yaml:1:22: train.checkpoint is 'never'; expected a mapping of options; write "
            "{every: 0} for none within an epoch\n"
            "dir/f.yaml:1:38: output is 'none'; expected a mapping of options\n"
            "dir/f.yaml:1:55: optimizer is 'adam'; expected a mapping of options; write {name: "
            "adam} if that is its name\n");
}

TEST(Options, AKeyOutsideItsSectionIsSaidToBelongThere) {
  Reading reading("{lr: 1, learning_rate: 1, seed: 1, rates: 1}", "");
  Options optimizer = reading.options.section("optimizer", "");
  optimizer.number("lr", 1, "");
  optimizer.integer("seed", 1, "");
  optimizer.finish();
  Options train = reading.options.section("train", "");
  train.integer("seed", 1, "");
  train.finish();
  reading.options.section("lr_rate", "").finish();
  reading.options.finish();
  EXPECT_EQ(reading.complaints(),
            "dir/f.yaml:1:2: unknown option 'lr'; did you mean 'optimizer.lr'?\n"
            "dir/f.yaml:1:9: unknown option 'learning_rate'; did you mean 'optimizer.lr'?\n"
            "dir/f.yaml:1:27: unknown option 'seed'; did you mean 'optimizer.seed' or "
            "'train.seed'?\n"
            "dir/f.yaml:1:36: unknown option 'rates'; known: optimizer, train, lr_rate\n");
}

TEST(Options, ALearningRateIsOursWithinASectionToo) {
  Reading reading("{learning_rate: 1}", "optimizer");
  reading.options.number("lr", 1, "");
  reading.options.finish();
  EXPECT_EQ(reading.complaints(),
            "dir/f.yaml:1:2: unknown option 'optimizer.learning_rate'; did you mean 'lr'?\n");
}

TEST(Options, AKeyOfASectionIsSaidToBelongToAnotherOne) {
  Reading reading("{train: {lr: 1, num_stages: 2, seed: 3}, pipeline: {wd: 1}}", "");
  Options train = reading.options.section("train", "");
  train.finish([](const std::string& key) {
    return key == "seed" ? std::string("; digits has it") : std::string();
  });
  Options pipeline = reading.options.section("pipeline", "");
  pipeline.integer("stages", 1, "");
  pipeline.finish();
  Options optimizer = reading.options.section("optimizer", "");
  optimizer.number("lr", 1, "");
  optimizer.number("weight_decay", 1, "");
  optimizer.finish();
  EXPECT_EQ(reading.complaints(), "");
  reading.options.finish();
  EXPECT_EQ(reading.complaints(),
            "dir/f.yaml:1:10: unknown option 'train.lr'; did you mean 'optimizer.lr'?\n"
            "dir/f.yaml:1:17: unknown option 'train.num_stages'; did you mean "
            "'pipeline.stages'?\n"
            "dir/f.yaml:1:32: unknown option 'train.seed'; digits has it\n"
            "dir/f.yaml:1:53: unknown option 'pipeline.wd'; did you mean "
            "'optimizer.weight_decay'?\n");
}

TEST(Options, PathsBeginInTheFolderOfTheFileThatNamesThem) {
  ASSERT_EQ(setenv("HOME", "/home/somebody", 1), 0);
  Reading reading("{data: data/x, up: ../y, absolute: /z, home: ~/w, none: \"\"}");
  *reading.document.find("up") = parse_scalar("y", "--set odd/part.up");
  const auto here = std::filesystem::current_path();
  EXPECT_EQ(reading.options.path("data", "", ""), here / "dir/data/x");
  EXPECT_EQ(reading.options.path("up", "", ""), here / "y");
  EXPECT_EQ(reading.options.path("absolute", "", ""), "/z");
  EXPECT_EQ(reading.options.path("home", "", ""), "/home/somebody/w");
  EXPECT_EQ(reading.options.path("none", "fallback", ""), "");
  EXPECT_EQ(reading.options.path("absent", "sub", ""), here / "sub");
  EXPECT_EQ(*reading.options.resolved().find("data"), Value::of((here / "dir/data/x").string()));
  EXPECT_EQ(*reading.options.resolved().find("none"), Value::of(""));
}

TEST(Options, RefusesPathsThatNoRecordCouldHold) {
  const Value document = parse_yaml("{data: x.csv, absolute: /z}", "d\xff/f.yaml");
  Problems problems;
  Options options(&document, "part", problems);
  EXPECT_EQ(options.path("data", "", ""), "");
  EXPECT_EQ(options.path("absolute", "", ""), "/z");
  ASSERT_EQ(problems.errors().size(), 1u);
  const std::string error = problems.errors().front().what();
  EXPECT_NE(error.find("part.data is "), std::string::npos) << error;
  EXPECT_NE(error.find("/d\\xff/x.csv, which is not UTF-8"), std::string::npos) << error;
}

TEST(Options, ResolvesToEveryOptionInTheOrderRead) {
  Reading reading("train: {seed: 1e1}\nrest: [1, {a: b}]\n", "");
  Options train = reading.options.section("train", "");
  train.integer("seed", 1, "");
  Options inner = train.section("checkpoint", "");
  inner.text("unit", "epoch", "");
  inner.finish();
  train.finish();
  reading.options.any("rest", {}, "");
  reading.options.finish();
  EXPECT_EQ(to_json(reading.options.resolved()),
            R"({"train":{"seed":10,"checkpoint":{"unit":"epoch"}},"rest":[1,{"a":"b"}]})");
  EXPECT_EQ(reading.complaints(), "");
}

TEST(Options, DescribeThemselves) {
  Reading reading("{}", "");
  Options part = reading.options.section("part", "A part.");
  part.integer("count", 3, "How many.", {1, 9});
  part.finish();
  const std::vector<OptionInfo>& declared = reading.options.declared();
  ASSERT_EQ(declared.size(), 1U);
  ASSERT_EQ(declared[0].section.size(), 1U);
  const OptionInfo& count = declared[0].section[0];
  EXPECT_EQ(count.name, "count");
  EXPECT_EQ(count.help, "How many.");
  EXPECT_EQ(count.fallback, Value::of(3));
  EXPECT_EQ(count.least, 1);
  EXPECT_EQ(count.most, 9);
}

TEST(Options, NumbersWithCommasAreExplained) {
  Reading reading("lr: 0,1\nepochs: '1,000'\n", "part");
  reading.options.number("lr", 0.5, "", kNotNegative);
  reading.options.integer("epochs", 1, "", {0, 1e6});
  EXPECT_EQ(reading.complaints(),
            "dir/f.yaml:1:5: part.lr is '0,1'; expected a number of at least 0; write 0.1, with a "
            "point\n"
            "dir/f.yaml:2:9: part.epochs is '1,000'; expected a whole number from 0 to 1,000,000; "
            "write 1000, without commas\n");
}

TEST(Options, PartsReportProblemsOfTheirOwnAtTheValue) {
  Reading reading("{a: 3}");
  reading.options.integer("a", 0, "");
  reading.options.problem("a", "is more than there are layers");
  EXPECT_EQ(reading.complaints(), "dir/f.yaml:1:5: part.a is more than there are layers\n");
}

}  // namespace
}  // namespace pipewright
