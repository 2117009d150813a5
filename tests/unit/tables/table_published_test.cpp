// SPDX-License-Identifier: Apache-2.0
#include "core/tables/published.h"
#include "core/tables/table.h"
#include "tests/unit/config/error_text.h"
#include "tests/unit/records/run_folders.h"

namespace pipewright {
namespace {

class Published : public RunFolders {
 protected:
  Published() {
    put("numbers.csv",
        "model,scheme,stages,value\n"
        "VGG-16,dp,1,91.10\n"
        "VGG-16,pipedream,4,88.91\n"
        "\"ResNet-50, wide\",pipedream,4,89.22\n");
  }

  TableSpec spec(const std::string& match, const std::string& more = "") const {
    const std::string text =
        "table:\n  rows: model.name\n  published: {file: numbers.csv, match: " + match + more +
        "}\n";
    return read_table_spec(parse_yaml(text, (root_ / "t.yaml").string()));
  }

  RunRecord vgg() const {
    return run("a", "pipedream", "done", "{model: {name: vgg16}, pipeline: {stages: 4}}",
               accuracies({"0.9"}));
  }
};

TEST_F(Published, NumberStandsBesideTheCellWhoseRunsItMatches) {
  const Table table =
      make_table(spec("{model: model.name, scheme: label, stages: pipeline.stages}"), {vgg()});
  EXPECT_EQ(table.cells[0][0].published->text, "88.91");
  EXPECT_NE(print_table(table, TableFormat::Markdown).find("90.00 (1); 88.91 published, +1.09 "),
            std::string::npos);
}

TEST_F(Published, ATextAfterAnEqualsSignIsMatchedAsItIs) {
  const Table table = make_table(spec("{model: =VGG-16, scheme: =dp}"), {vgg()});
  EXPECT_EQ(table.cells[0][0].published->text, "91.10");
}

TEST_F(Published, AnErrorIsShownAsWhatIsRight) {
  put("numbers.csv", "model,value,deviation\nVGG-16,22.02,0.11\n");
  const Table table =
      make_table(spec("{model: model.name}", ", error: true, std: deviation"), {vgg()});
  EXPECT_NE(
      print_table(table, TableFormat::Markdown).find("90.00 (1); 77.98 ± 0.11 published, +12.02 "),
      std::string::npos)
      << print_table(table, TableFormat::Markdown);
}

TEST_F(Published, AWordIsShownWithoutADifference) {
  put("numbers.csv", "model,value\nVGG-16,OOM\n");
  const Table table = make_table(spec("{model: model.name}"), {vgg()});
  EXPECT_NE(print_table(table, TableFormat::Markdown).find("90.00 (1); OOM published |"),
            std::string::npos);
}

TEST_F(Published, CellsWhoseRecipesDifferAreMarked) {
  RunRecord other = vgg();
  other.label = "dp";
  other.config = parse_yaml("{model: {name: vgg16}, pipeline: {stages: 1}}", "");
  TableSpec wanted = spec("{model: model.name, scheme: label, stages: pipeline.stages}",
                          ", differs: {all: one seed, dp: twice the batch, gpipe: nothing}");
  wanted.columns = {{"label", {}}};
  const Table table = make_table(wanted, {vgg(), other});
  EXPECT_EQ(table.notes, (std::vector<std::string>{"one seed", "twice the batch"}));
  const std::string text = print_table(table, TableFormat::Markdown);
  EXPECT_NE(text.find("88.91 published, +1.09 [1] |"), std::string::npos) << text;
  EXPECT_NE(text.find("91.10 published, −1.10 [1] [2] |"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("published:\n[1] one seed\n[2] twice the batch\n")) << text;
}

TEST_F(Published, NothingStandsBesideACellThatNoRowMatches) {
  RunRecord other = vgg();
  other.label = "spectrain";
  const Table table = make_table(spec("{model: model.name, scheme: label}"), {other});
  EXPECT_FALSE(table.cells[0][0].published.has_value());
}

TEST_F(Published, AMatchOfDifferentNumbersIsAnErrorThatNamesTheOtherColumns) {
  const std::string text = error_text([&] { make_table(spec("{scheme: label}"), {vgg()}); });
  EXPECT_NE(text.find("t.yaml:3:"), std::string::npos) << text;
  EXPECT_NE(
      text.find("the rows of numbers.csv with scheme pipedream have 2 different values; match "
                "another column too, of model, scheme, stages, value"),
      std::string::npos)
      << text;
}

TEST_F(Published, AColumnTheFileDoesNotHaveIsAnErrorWithASuggestion) {
  const std::string text = error_text([&] { make_table(spec("{shceme: label}"), {vgg()}); });
  EXPECT_NE(
      text.find("table.published: numbers.csv has no column 'shceme'; did you mean 'scheme'?"),
      std::string::npos)
      << text;
}

TEST_F(Published, FileThatIsNotThereIsNamed) {
  TableSpec wanted = spec("{scheme: label}");
  wanted.published->file = root_ / "none.csv";
  try {
    make_table(wanted, {vgg()});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Data);
    EXPECT_NE(std::string(error.what()).find("none.csv"), std::string::npos);
  }
}

TEST_F(Published, SectionWithoutFileOrMatchIsAnError) {
  const std::string text =
      error_text([] { read_table_spec(parse_yaml("table: {published: {value: v}}", "t.yaml")); });
  EXPECT_NE(text.find("table.published.file is missing"), std::string::npos) << text;
  EXPECT_NE(text.find("table.published.match is missing"), std::string::npos) << text;
}

TEST_F(Published, QuotedFieldsMayHoldCommasQuotesAndLines) {
  const PublishedNumbers numbers =
      read_published(put("quoted.csv", "a,b\r\n\"x, \"\"y\"\"\nz\",1\r\n"));
  EXPECT_EQ(numbers.rows, (std::vector<std::vector<std::string>>{{"x, \"y\"\nz", "1"}}));
}

TEST_F(Published, RecordOfAnotherLengthIsDamage) {
  const std::filesystem::path file = put("short.csv", "a,b\n1,2\n3\n");
  try {
    read_published(file);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Data);
    EXPECT_EQ(error.message(), "has 1 field, but the header has 2");
    EXPECT_TRUE(error.where().ends_with("short.csv:3:1")) << error.where();
  }
}

}  // namespace
}  // namespace pipewright
