// SPDX-License-Identifier: Apache-2.0
#include "core/tables/table.h"
#include "tests/unit/records/run_folders.h"

namespace pipewright {
namespace {

/// Two models by two labels: three runs and one, a failed pair, and one cell nobody asked for.
Table example() {
  Table table;
  table.metric = "test_accuracy";
  table.percent = true;
  table.caption = "test_accuracy.";
  table.row_keys = {"model.name"};
  table.row_names = {{"vgg_16"}, {"a|b, c"}};
  table.column_names = {"PD4", "ST"};
  table.cells.resize(2, std::vector<TableCell>(2));
  table.cells[0][0] = {.values = {0.90, 0.92, 0.94}, .runs = {0, 1, 2}};
  table.cells[0][1] = {.values = {0.8876},
                       .runs = {3, 4},
                       .missing = 1,
                       .published = PublishedNumber{.text = "88.91", .value = 88.91, .notes = {0}}};
  table.cells[1][0] = {.runs = {5, 6}, .failed = 2};
  table.notes = {"half the width"};
  return table;
}

TEST(TableAsMarkdown, IsAlignedForReadingInATerminal) {
  EXPECT_EQ(
      print_table(example(), TableFormat::Markdown),
      "test_accuracy.\n\n"
      "| model.name |              PD4 |                                               ST |\n"
      "|:-----------|-----------------:|-------------------------------------------------:|\n"
      "| vgg_16     | 92.00 ± 2.00 (3) | 88.76 (1), 1 missing; 88.91 published, −0.15 [1] |\n"
      "| a\\|b, c    |         2 failed |                                                – |\n"
      "\nDiffers from what was published:\n"
      "[1] half the width\n");
}

TEST(TableAsMarkdown, HasOtherMetricsBehind) {
  Table table = example(), ratio{.metric = "sent_ratio"};
  ratio.row_keys = table.row_keys;
  ratio.row_names = table.row_names;
  ratio.column_names = {"sent_ratio"};
  ratio.cells = {{{.values = {0.25, 0.27}, .runs = {0, 1}}}, {{.runs = {5}, .failed = 1}}};
  table.beside.push_back(ratio);
  const std::string text = print_table(table, TableFormat::Markdown);
  EXPECT_NE(text.find(" |          sent_ratio |\n"), std::string::npos) << text;
  EXPECT_NE(text.find("0.2600 ± 0.0141 (2) |\n"), std::string::npos) << text;
  EXPECT_NE(print_table(table, TableFormat::Csv).find("vgg_16,sent_ratio,2,0.26,"),
            std::string::npos);
  EXPECT_NE(print_table(table, TableFormat::Latex).find("tabular}{lrrr}"), std::string::npos);
}

TEST(TableAsLatex, UsesBooktabsAndEscapesWhatLatexWouldRead) {
  EXPECT_EQ(print_table(example(), TableFormat::Latex),
            "% needs \\usepackage{booktabs}\n"
            "\\begin{table}\n"
            "  \\centering\n"
            "  \\caption{test\\_accuracy.}\n"
            "  \\begin{tabular}{lrr}\n"
            "    \\toprule\n"
            "    model.name & PD4 & ST \\\\\n"
            "    \\midrule\n"
            "    vgg\\_16 & 92.00 $\\pm$ 2.00 (3) & 88.76 (1), 1 missing; 88.91 published, $-$0.15 "
            "[1] \\\\\n"
            "    a\\textbar{}b, c & 2 failed & -- \\\\\n"
            "    \\bottomrule\n"
            "  \\end{tabular}\n"
            "  \\\\ {\\footnotesize [1] half the width}\n"
            "\\end{table}\n");
}

TEST(TableAsLatex, KeepsTheColumnsOfARowWithoutAName) {
  Table table = example();
  table.row_names[0] = {""};
  EXPECT_NE(print_table(table, TableFormat::Latex).find("     & 92.00"), std::string::npos);
}

TEST(TableAsCsv, HasOneLinePerCellWithTwelveDigits) {
  Table table = example();
  table.cells[0][0].values = {0.5, 0.25};
  EXPECT_EQ(
      print_table(table, TableFormat::Csv),
      "row,column,n,mean,std,failed,missing,published,interrupted,running,unit,difference,differs\n"
      "vgg_16,PD4,2,37.5,17.6776695297,0,0,,0,0,percent,,\n"
      "vgg_16,ST,1,88.76,,0,1,88.91,0,0,percent,-0.15,half the width\n"
      "\"a|b, c\",PD4,0,,,2,0,,0,0,percent,,\n");
}

TEST(TableNumbers, OtherMetricsHaveFourSignificantDigits) {
  Table table = example();
  table.metric = "test_loss";
  table.percent = false;
  table.cells[0][0].values = {0.01234, 0.01236};
  table.cells[0][1].values = {12345.6};
  const std::string text = print_table(table, TableFormat::Markdown);
  EXPECT_NE(text.find(" 0.01235 ± 0.00001 (2) "), std::string::npos) << text;
  EXPECT_NE(text.find(" 12346 (1), 1 missing"), std::string::npos) << text;
}

}  // namespace
}  // namespace pipewright
