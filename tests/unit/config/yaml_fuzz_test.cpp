// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "core/base/random.h"
#include "core/config/value.h"

namespace pipewright {
namespace {

const std::vector<std::string> kSeeds = {
    "name: x\nmodel: {name: mlp, widths: [12, 16, 10]}\ntrain:\n  epochs: 3\n  seed: 1e3\n",
    "sweep:\n  points:\n    - {label: A, pipeline.stages: 4}\n    - {label: B}\n  grid: {a.b: "
    "[1]}\n",
    "a: &x {b: [1, 2]}\nc: *x\nd: \"q\\u00e9\\n\"\ne: 'it''s'\n",
    "a: |\n  text\n  more\nb: >-\n  folded\n  text\n? key\n: value\n",
    "{\"a\": [true, null, -1.5e-3], \"b\": {}}\n",
    "- - a\n  - b\n- c: d\n  e: f\n# comment\n"};

const std::vector<std::string> kPieces = {
    "\n",  " ",      "  ",   "\t",   ":",       ": ",  "- ",   "? ",  "[",    "]",    "{",
    "}",   ",",      "&a ",  "*a",   "!",       "!!",  "|",    ">",   "'",    "\"",   "%",
    "@",   "`",      "#",    " #",   "---",     "...", "<<",   "\\",  "~",    "0",    "01",
    "1e9", ".",      "\xff", "\xc3", "é",       "\r",  "\r\n", "yes", "\n  ", "\n- ", "\\x",
    "\\u", "\ufeff", "\x04", "=",    "\n---\n", "a: ", "1_0"};

/// A seed document cut, spliced and sprinkled with what means something to YAML.
std::string mutated(const RandomStream& random, std::uint64_t& counter) {
  const auto below = [&](std::uint64_t n) { return random.below(counter++, n); };
  std::string text = kSeeds[below(kSeeds.size())];
  for (std::uint64_t edits = 1 + below(6); edits > 0; --edits) {
    const std::size_t at = below(text.size() + 1);
    switch (below(5)) {
      case 0: text.insert(at, kPieces[below(kPieces.size())]); break;
      case 1: text.erase(at, below(6)); break;
      case 2: text.insert(at, text.substr(below(text.size() + 1), below(20))); break;
      case 3: text.resize(at); break;
      default:
        if (at < text.size()) text[at] = static_cast<char>(below(256));
    }
  }
  return text;
}

std::string visible(const std::string& text) {
  return to_json(Value::of(text));
}

TEST(StrictYaml, TurnsAnyTextIntoAValueOrAnErrorOfTheExperiment) {
  const RandomStream random(2024, "yaml fuzz");
  std::uint64_t counter = 0;
  int read = 0, refused = 0;
  for (int i = 0; i < 6000; ++i) {
    const std::string text = mutated(random, counter);
    try {
      const Value value = parse_yaml(text, "f.yaml");
      ++read;
      ASSERT_EQ(parse_yaml(to_yaml(value), "f.yaml"), value) << visible(text);
    } catch (const Error& error) {
      ++refused;
      ASSERT_EQ(error.kind(), ErrorKind::Experiment) << visible(text);
      ASSERT_TRUE(std::string(error.what()).starts_with("f.yaml:")) << visible(text);
    } catch (const std::exception& exception) {
      FAIL() << exception.what() << " from " << visible(text);
    }
  }
  EXPECT_GT(read, 500);
  EXPECT_GT(refused, 500);
}

TEST(ParseScalar, TurnsAnyTextIntoAValueOrAnErrorOfTheExperiment) {
  const RandomStream random(2025, "scalar fuzz");
  std::uint64_t counter = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (std::uint64_t n = random.below(counter++, 8); n > 0; --n)
      text += kPieces[random.below(counter++, kPieces.size())];
    try {
      parse_scalar(text, "--set a");
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::Experiment) << visible(text);
      ASSERT_TRUE(std::string(error.what()).starts_with("--set")) << error.what();
    } catch (const std::exception& exception) {
      FAIL() << exception.what() << " from " << visible(text);
    }
  }
}

}  // namespace
}  // namespace pipewright
