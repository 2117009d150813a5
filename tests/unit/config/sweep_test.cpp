// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "core/config/merge.h"
#include "tests/unit/config/error_text.h"

namespace pipewright {
namespace {

std::vector<SweepPoint> expand(const std::string& text) {
  return expand_sweep(parse_yaml(text, "f.yaml"));
}

std::string sweep_refusal(const std::string& text) {
  return error_text([&] { expand(text); });
}

std::vector<std::string> documents(const std::vector<SweepPoint>& points) {
  std::vector<std::string> texts;
  for (const SweepPoint& point : points) texts.push_back(to_json(point.document));
  return texts;
}

using Texts = std::vector<std::string>;

TEST(Sweep, IsOneRunWithoutOne) {
  for (const char* text : {"a: 1\ntable: {rows: a}\n", "a: 1\nsweep:\n",
                           "a: 1\nsweep: {points: [], zip: {}, grid: {}}\n"}) {
    const auto points = expand(text);
    ASSERT_EQ(points.size(), 1U) << text;
    EXPECT_EQ(points[0].label, "run");
    EXPECT_TRUE(points[0].varied.empty());
    EXPECT_EQ(to_json(points[0].document), R"({"a":1})");
  }
}

TEST(Sweep, GridIsACrossProductWithTheLastKeyFastest) {
  EXPECT_EQ(documents(expand("sweep: {grid: {a: [1, 2], b.c: [x, y]}}")),
            (Texts{R"({"a":1,"b":{"c":"x"}})", R"({"a":1,"b":{"c":"y"}})",
                   R"({"a":2,"b":{"c":"x"}})", R"({"a":2,"b":{"c":"y"}})"}));
}

TEST(Sweep, ZipGoesThroughItsListsTogether) {
  EXPECT_EQ(documents(expand("sweep: {zip: {a: [1, 2], b: [x, y]}}")),
            (Texts{R"({"a":1,"b":"x"})", R"({"a":2,"b":"y"})"}));
}

TEST(Sweep, IsPointsTimesZipTimesGrid) {
  const auto points = expand(
      "sweep:\n"
      "  grid: {c: [5, 6]}\n"
      "  zip: {b: [3, 4]}\n"
      "  points: [{a: 1}, {a: 2}]\n");
  ASSERT_EQ(points.size(), 8U);
  EXPECT_EQ(to_json(points[0].document), R"({"a":1,"b":3,"c":5})");
  EXPECT_EQ(to_json(points[1].document), R"({"a":1,"b":3,"c":6})");
  EXPECT_EQ(to_json(points[2].document), R"({"a":1,"b":4,"c":5})");
  EXPECT_EQ(to_json(points[4].document), R"({"a":2,"b":3,"c":5})");
}

TEST(Sweep, PointsFollowTheRuleOfMerging) {
  const auto points = expand(
      "scheme: {name: spectrain, version: 2}\n"
      "pipeline: {stages: 1, threads: 1}\n"
      "sweep:\n"
      "  points:\n"
      "    - {scheme: {name: pipedream}, pipeline.stages: 4}\n"
      "    - {scheme: {version: 1}, pipeline: {stages: 2}}\n");
  EXPECT_EQ(
      documents(points),
      (Texts{
          R"({"scheme":{"name":"pipedream"},"pipeline":{"stages":4,"threads":1}})",
          R"({"scheme":{"name":"spectrain","version":1},"pipeline":{"stages":2,"threads":1}})"}));
}

TEST(Sweep, RecordsWhatVaries) {
  const auto points = expand(
      "sweep:\n"
      "  points: [{label: A, scheme: {name: x, version: 1}}, {label: B, scheme: {name: y}}]\n"
      "  grid: {train.seed: [7]}\n");
  const auto text = [](const SweepPoint& point) {
    std::string out;
    for (const auto& [key, value] : point.varied) out += key + "=" + to_json(value) + " ";
    return out;
  };
  EXPECT_EQ(text(points[0]), R"(label="A" scheme.name="x" scheme.version=1 train.seed=7 )");
  EXPECT_EQ(text(points[1]), R"(label="B" scheme.name="y" train.seed=7 )");
}

TEST(Sweep, WhatIsReplacedDoesNotVary) {
  const auto points = expand(
      "sweep:\n"
      "  points: [{scheme: {name: x, version: 1}}]\n"
      "  grid: {scheme: [{name: y}]}\n");
  ASSERT_EQ(points[0].varied.size(), 2U);
  EXPECT_EQ(points[0].varied[1].first, "scheme.name");
  EXPECT_EQ(points[0].varied[1].second, Value::of("y"));
}

TEST(Sweep, LabelsAreGivenOrMadeOfTheValues) {
  EXPECT_EQ(expand("sweep: {points: [{label: PD4, a: 1}], grid: {b: [2]}}")[0].label, "PD4");
  EXPECT_EQ(expand("sweep: {zip: {label: [x, y], a: [1, 2]}}")[1].label, "y");
  EXPECT_EQ(expand("sweep: {grid: {model.name: [vgg16], lr: [0.01], list: [[4, 4]]}}")[0].label,
            "vgg16-0.01-_4_4_");
  EXPECT_EQ(to_json(expand("sweep: {points: [{label: PD4, a: 1}]}")[0].document), R"({"a":1})");
}

TEST(Sweep, FoldersAreFileNamesWithTheDigest) {
  SweepPoint point{"PD4", {}, parse_yaml("{name: x, a: 1}", "f.yaml")};
  const std::string hash = digest(parse_yaml("{a: 1}", "f.yaml"));
  EXPECT_EQ(hash.size(), 16U);
  EXPECT_EQ(point.folder(), "PD4-" + hash);
  point.label = "../a b/ü: [4, 4]";
  EXPECT_EQ(point.folder(), "_._a_b_4_4_-" + hash);
  point.label = std::string(300, 'x');
  EXPECT_LE(point.folder().size(), 100U);
}

TEST(Sweep, RefusesRunsThatAreTheSame) {
  EXPECT_EQ(sweep_refusal("a: 0\nsweep: {points: [{label: x, a: 1}, {label: y, a: 1}]}"),
            "f.yaml:2:8: runs 1 ('x') and 2 ('y') of the sweep are the same; remove one of them");
}

TEST(Sweep, RefusesListsOfUnequalLengthInZip) {
  EXPECT_EQ(sweep_refusal("sweep: {zip: {a: [1, 2, 3], b: [1, 2]}}"),
            "f.yaml:1:32: sweep.zip.b has 2 values; expected 3, as many as sweep.zip.a");
}

TEST(Sweep, ReportsAllItsFaultsTogether) {
  EXPECT_EQ(sweep_refusal("sweep:\n"
                          "  point: []\n"
                          "  points: [3, {label: 4}, {sweep.grid.a: 1}]\n"
                          "  zip: [a]\n"
                          "  grid: {a: 1, b: [], name: [x]}\n"),
            "f.yaml:2:3: unknown option 'sweep.point'; did you mean 'points'?\n"
            "f.yaml:3:12: sweep.points[0] is 3; expected a mapping such as {pipeline.stages: 4}\n"
            "f.yaml:3:23: sweep.points[1].label is 4; expected a text; write \"4\" in quotes\n"
            "f.yaml:3:28: sweep.points[2]: 'sweep.grid.a' cannot vary within a sweep\n"
            "f.yaml:4:8: sweep.zip is a list; expected a mapping such as {train.seed: [1, 2, 3]}\n"
            "f.yaml:5:13: sweep.grid.a is 1; expected a list of values; write [1]\n"
            "f.yaml:5:19: sweep.grid.b is an empty list; expected a list of values\n"
            "f.yaml:5:23: sweep.grid: 'name' cannot vary within a sweep");
}

TEST(Sweep, RefusesAnArgumentThatEveryRunReplaces) {
  const auto refusal = [](const std::string& sweep, const std::string& key,
                          const std::string& given) {
    Value document = parse_yaml("a: 1\ns: {name: x, v: 1}\nsweep: " + sweep, "f.yaml");
    Problems problems;
    set_path(document, key, parse_scalar(given, "--set " + key), problems);
    problems.throw_if_any();
    return error_text([&] { expand_sweep_alone(document); });
  };
  const auto lost = [](const std::string& key) {
    return concat("--set ", key,
                  ": has no effect, because the sweep gives every run a value of its own; change "
                  "it in the sweep");
  };
  EXPECT_EQ(refusal("{grid: {a: [1, 2]}}", "a", "3"), lost("a"));
  EXPECT_EQ(refusal("{grid: {a: [1, 2]}}", "a", "[]"), lost("a"));
  EXPECT_EQ(refusal("{points: [{s: {name: y}}, {s: {name: z}}]}", "s.v", "3"),
            "--set s.v: has no effect, because the sweep gives every run a section of its own, "
            "without it; write it there");
  EXPECT_EQ(refusal("{points: [{s: {name: y}}, {a: 2}]}", "s.v", "3"), "no error");
  EXPECT_EQ(refusal("{points: [{s.name: y}, {s.name: z}]}", "s", "{name: q, v: 2}"), "no error");
  EXPECT_EQ(refusal("{grid: {a: [1, 2]}}", "b", "3"), "no error");
  EXPECT_EQ(refusal("{grid: {a: [1, 2]}}", "a", "null"), lost("a"));
}

TEST(Sweep, FillsASectionThatAnArgumentEmpties) {
  for (const char* sweep : {"{grid: {s.v: [2, 3]}}", "{points: [{s: {v: 2}}, {s: {v: 3}}]}"}) {
    Value document = parse_yaml(concat("s: {w: 1}\nsweep: ", sweep), "f.yaml");
    Problems problems;
    set_path(document, "s", parse_scalar("null", "--set s"), problems);
    const std::vector<SweepPoint> points = expand_sweep_alone(document);
    ASSERT_EQ(points.size(), 2u);
    EXPECT_EQ(to_json(points[1].document), R"({"s":{"v":3}})");
  }
}

TEST(Sweep, RefusesMoreRunsThanAnyoneCanWant) {
  std::string list = "[0";
  for (int i = 1; i < 1000; ++i) list += concat(", ", i);
  list += "]";
  EXPECT_EQ(sweep_refusal("sweep: {grid: {a: " + list + ", b: " + list + ", c: " + list + "}}"),
            "f.yaml:1:8: the sweep has 1,000,000,000 runs; at most 100,000 are possible");
}

}  // namespace
}  // namespace pipewright
