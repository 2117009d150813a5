// SPDX-License-Identifier: Apache-2.0
// Megatron-Core's layouts of stages: what they stand for, what is refused where, and the way back.
#include "core/experiment/stage_layout.h"

#include <gtest/gtest.h>

#include <array>
#include <regex>

#include "core/base/error.h"
#include "core/base/random.h"
#include "tests/unit/models/model_fixture.h"

namespace pipewright::test {
namespace {

using Letters = std::vector<std::string>;
using Balance = std::vector<std::int64_t>;

std::vector<LayerPtr> gpt_of(std::int64_t blocks) {
  return make_model("gpt", concat("{width: 8, heads: 2, layers: ", blocks, "}"))->layers();
}

std::string fault_of(const std::string& layout) {
  try {
    parse_stage_layout(layout);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Experiment);
    return error.message();
  }
  return "nothing is refused";
}

std::string misfit_of(const std::string& layout, const std::vector<LayerPtr>& layers) {
  try {
    balance_of_layout(parse_stage_layout(layout), layers);
  } catch (const Error& error) {
    return error.message();
  }
  return "it fits";
}

/// The layout with everything written out, by textual replacement as its authors' program does it.
std::string written_out(std::string layout) {
  std::erase(layout, ',');
  std::erase(layout, ' ');
  for (const char* pattern : {R"(\(([^)]+)\)\*(\d+))", R"((.)\*(\d+))"}) {
    const std::regex repeated(pattern);
    std::string out;
    auto rest = layout.cbegin();
    for (std::smatch match; std::regex_search(rest, layout.cend(), match, repeated);
         rest = match[0].second) {
      out.append(rest, match[0].first);
      for (int i = std::stoi(match[2]); i > 0; --i) out += match[1];
    }
    layout = out.append(rest, layout.cend());
  }
  return layout;
}

std::string joined(const Letters& stages) {
  std::string all;
  for (const std::string& stage : stages) all += (all.empty() ? "" : "|") + stage;
  return all;
}

TEST(StageLayout, StandsForTheLettersOfItsStages) {
  EXPECT_EQ(parse_stage_layout("Et*2|t*3|t*3L"), (Letters{"Ett", "ttt", "tttL"}));
  EXPECT_EQ(parse_stage_layout("Ettt|(tt|)*2L"), (Letters{"Ettt", "tt", "tt", "L"}));
  EXPECT_EQ(parse_stage_layout("E(t|tt)*2,L"), (Letters{"Et", "ttt", "ttL"}));
  EXPECT_EQ(parse_stage_layout(" E t, t * 2 |L "), (Letters{"Ettt", "L"}));
  EXPECT_EQ(parse_stage_layout("Et(|t)*2L"), (Letters{"Et", "t", "tL"}));
  EXPECT_EQ(parse_stage_layout("E(t*2|)*2 t*0 L"), (Letters{"Ett", "tt", "L"}));
  EXPECT_EQ(parse_stage_layout("EtL"), (Letters{"EtL"}));
}

TEST(StageLayout, IsReadAsByReplacementOfItsText) {
  constexpr int kLayouts = 2000;
  const RandomStream dice(1, "stage layouts");
  std::uint64_t thrown = 0;
  const auto below = [&](std::uint64_t count) { return dice.below(thrown++, count); };
  const std::array<std::string, 6> pieces{"t", "t*3", "|t", "t, ", "(t|)*2", "(t*2 |t)*3"};
  for (int i = 0; i < kLayouts; ++i) {
    std::string layout = "E";
    for (std::uint64_t more = below(8); more > 0; --more) layout += pieces[below(pieces.size())];
    layout += below(2) == 0 ? "|L" : "L";
    const std::string expected = written_out(layout);
    if (expected.find("||") != std::string::npos) {
      EXPECT_NE(fault_of(layout).find("has a stage without layers"), std::string::npos) << layout;
    } else {
      EXPECT_EQ(joined(parse_stage_layout(layout)), expected) << layout;
    }
  }
}

TEST(StageLayout, SaysAtWhichCharacterItIsWrong) {
  EXPECT_EQ(fault_of("Et*2|q*3L"), "has a 'q', where E, t, L or | is expected, at character 6");
  EXPECT_EQ(fault_of("Et|\tL"),
            "has another character, where E, t, L or | is expected, at "
            "character 4");
  EXPECT_EQ(fault_of("Et|tmL"),
            "has an 'm', a multi-token prediction, which no model here has, at character 5");
  EXPECT_EQ(fault_of("E(tt|*2L"), "has no ')' for the '(' at character 2");
  EXPECT_EQ(fault_of("Ett)*2L"), "has a ')' without its '(' at character 4");
  EXPECT_EQ(fault_of("E((t|)*2)*2L"), "has a group within a group at character 3");
  EXPECT_EQ(fault_of("E(t|)L"),
            "has no number of repetitions, as in (t|)*2, behind the group at character 2");
  EXPECT_EQ(fault_of("*2Et"), "has a '*' with nothing to repeat at character 1");
  EXPECT_EQ(fault_of("Et*L"), "has no number behind the '*' at character 3");
  EXPECT_EQ(fault_of("Et*-1L"), "has no number behind the '*' at character 3");
  EXPECT_EQ(fault_of("Et*2*3L"), "has a second '*' at character 5");
  EXPECT_EQ(fault_of("t|L"), "does not begin with E at character 1");
  EXPECT_EQ(fault_of("Et|t"), "does not end with L at character 4");
  EXPECT_EQ(fault_of("Et|EtL"), "has a second E at character 4");
  EXPECT_EQ(fault_of("EtL|tL"), "has something behind L at character 5");
  EXPECT_EQ(fault_of("Et||tL"), "has a stage without layers at character 4");
  EXPECT_EQ(fault_of(" ,"), "has no layers at character 1");
}

TEST(StageLayout, RefusesHugeRepetitionsBeforeItTakesMemory) {
  const std::string too_many = "stands for more than 100,000 letters at character ";
  EXPECT_EQ(fault_of("Et*100000L"), too_many + "3");
  EXPECT_EQ(fault_of("Et*99999999999999999999999999999999L"), too_many + "3");
  EXPECT_EQ(fault_of("E(t*50000|)*50000L"), too_many + "12");
  EXPECT_EQ(fault_of("E" + std::string(50, '(')), "has a group within a group at character 3");
}

TEST(StageLayout, BecomesLayersOfTheModelPerStage) {
  EXPECT_EQ(balance_of_layout(parse_stage_layout("Et*2|t*3|t*3L"), gpt_of(8)), (Balance{3, 3, 5}))
      << "the embeddings before, the last norm and the head behind";
  EXPECT_EQ(balance_of_layout(parse_stage_layout("E|t*8|L"), gpt_of(8)), (Balance{1, 8, 2}));
  const auto encoder = make_model("encoder", "{layers: 4}")->layers();
  EXPECT_EQ(balance_of_layout(parse_stage_layout("Et|t*3L"), encoder), (Balance{1, 4}))
      << "it has no embedding";
  EXPECT_EQ(misfit_of("E|t*4L", encoder),
            "pipeline.balance is a layout of stages, of which stage 0 (E) has none of the model's "
            "layers; a stage holds at least one");
  EXPECT_EQ(misfit_of("Et*2|t*4L", gpt_of(8)),
            "pipeline.balance is a layout of 6 blocks (t); the model has 8, h.0 … h.7");
  EXPECT_EQ(misfit_of("Et|tL", make_model("vgg16")->layers()),
            "pipeline.balance is a layout of numbered blocks (t), which this model does not have; "
            "expected a list of layers per stage");
}

TEST(StageLayout, OfABalanceIsShort) {
  EXPECT_EQ(layout_of_balance({3, 3, 5}, gpt_of(8)), "Ett|t*3|t*3L");
  EXPECT_EQ(layout_of_balance({4, 2, 2, 3}, gpt_of(8)), "Et*3|(tt|)*2tL");
  EXPECT_EQ(layout_of_balance({1, 3, 3, 3, 2}, gpt_of(9)), "E|(t*3|)*3L");
  EXPECT_EQ(layout_of_balance({11}, gpt_of(8)), "Et*8L");
  EXPECT_EQ(layout_of_balance({3, 3, 4, 1}, gpt_of(8)), "") << "the head is cut in two";
  EXPECT_EQ(layout_of_balance({2, 3}, make_model("encoder", "{layers: 4}")->layers()), "Ett|ttL");
}

TEST(StageLayout, OfEveryBalanceReadsBackAsIt) {
  constexpr std::int64_t kBlocks = 7;
  const auto layers = gpt_of(kBlocks);
  const std::size_t count = layers.size();
  int written = 0;
  for (std::uint64_t cuts = 0; cuts < std::uint64_t{1} << (count - 1); ++cuts) {
    Balance balance{1};
    for (std::size_t i = 0; i + 1 < count; ++i)
      if ((cuts >> i & 1) == 1)
        balance.push_back(1);
      else
        ++balance.back();
    const std::string layout = layout_of_balance(balance, layers);
    const bool within_the_head = (cuts >> (count - 2) & 1) == 1;  // between the norm and the output
    ASSERT_EQ(layout.empty(), within_the_head) << layout;
    if (layout.empty()) continue;
    EXPECT_EQ(balance_of_layout(parse_stage_layout(layout), layers), balance) << layout;
    EXPECT_EQ(joined(parse_stage_layout(layout)), written_out(layout));
    ++written;
  }
  EXPECT_EQ(written, 1 << (count - 2));
}

}  // namespace
}  // namespace pipewright::test
