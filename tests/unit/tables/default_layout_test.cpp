// SPDX-License-Identifier: Apache-2.0
// What tables and pictures show of a sweep whose file does not say it.
#include "core/tables/default_layout.h"

#include "core/tables/curves.h"
#include "core/tables/table.h"
#include "tests/unit/config/error_text.h"
#include "tests/unit/records/run_folders.h"

namespace pipewright {
namespace {

using KeyNames = std::vector<std::string>;

class DefaultLayouts : public RunFolders {
 protected:
  /// The runs of a grid: every choice of values of the keys, the first varying slowest.
  std::vector<RunRecord> grid(const std::vector<std::pair<std::string, KeyNames>>& keys) {
    std::vector<KeyNames> choices{{}};
    for (const auto& [key, values] : keys) {
      std::vector<KeyNames> more;
      for (const KeyNames& choice : choices)
        for (const std::string& value : values) {
          more.push_back(choice);
          more.back().push_back(value);
        }
      choices = more;
    }
    std::vector<RunRecord> runs;
    for (const KeyNames& choice : choices) {
      std::vector<std::pair<std::string, std::string>> texts;
      for (std::size_t k = 0; k < keys.size(); ++k) texts.emplace_back(keys[k].first, choice[k]);
      runs.push_back(point(texts));
    }
    return runs;
  }

  /// A run with one epoch of accuracy 0.5.
  RunRecord point(const std::vector<std::pair<std::string, std::string>>& keys,
                  const std::string& label = {}) {
    KeyNames varied;
    for (const auto& [key, value] : keys) varied.push_back(concat(key, ": ", value));
    const std::string name = concat("run-", ++count_);
    return run(name, label.empty() ? name : label, "done", "{name: x}", accuracies({"0.5"}),
               concat("{", join(varied, ", "), "}"));
  }

  static TableSpec table_of(const std::string& document = "{}") {
    return read_table_spec(parse_yaml(document, "t.yaml"));
  }
  static PlotSpec plot_of(const std::string& document = "{}") {
    return read_plot_spec(parse_yaml(document, "t.yaml"));
  }

  int count_ = 0;
};

KeyNames names_of(const std::vector<TableKey>& keys) {
  KeyNames names;
  for (const TableKey& key : keys) names.push_back(key.name);
  return names;
}

constexpr const char* kLabelled = "sweep: {points: [{label: PD}, {label: ST}]}";

TEST_F(DefaultLayouts, SchemesAreRowsStagesColumnsAndFurtherKeysOuterRows) {
  const Table table = make_table(table_of(), grid({{"scheme.name", {"gpipe", "pipedream"}},
                                                   {"pipeline.stages", {"2", "4"}},
                                                   {"optimizer.lr", {"0.1", "0.2"}},
                                                   {"train.seed", {"1", "2", "3"}}}));
  EXPECT_EQ(table.row_keys, (KeyNames{"optimizer.lr", "scheme.name"}));
  EXPECT_EQ(table.row_names,
            (std::vector<KeyNames>{
                {"0.1", "gpipe"}, {"0.1", "pipedream"}, {"0.2", "gpipe"}, {"0.2", "pipedream"}}));
  EXPECT_EQ(table.column_names, (KeyNames{"stages 2", "stages 4"}));
  for (const auto& row : table.cells)
    for (const TableCell& cell : row) EXPECT_EQ(cell.values.size(), 3u) << "its seeds";
  EXPECT_EQ(table.mixed, KeyNames());
}

TEST_F(DefaultLayouts, StagesAreXSchemesLinesAndFurtherKeysPictures) {
  const auto runs = grid({{"scheme.name", {"gpipe", "pipedream"}},
                          {"pipeline.stages", {"2", "4"}},
                          {"optimizer.lr", {"0.1", "0.2"}},
                          {"train.seed", {"1", "2", "3"}}});
  const auto pictures = make_pictures(plot_of(), runs);
  ASSERT_EQ(pictures.size(), 2u);
  EXPECT_EQ(pictures[0].title, "lr 0.1");
  EXPECT_EQ(pictures[1].title, "lr 0.2");
  EXPECT_EQ(pictures[0].x.label, "pipeline.stages");
  ASSERT_EQ(pictures[0].curves.size(), 1u);
  EXPECT_EQ(pictures[0].curves[0].name, "gpipe = pipedream");
  ASSERT_EQ(pictures[0].curves[0].points.size(), 2u);
  EXPECT_EQ(pictures[0].curves[0].points[1].x, 4);
  EXPECT_EQ(pictures[0].curves[0].points[1].runs, 3);
  EXPECT_EQ(mixing_note(plot_of(), runs), "");
}

TEST_F(DefaultLayouts, WithoutStagesLinesOfSchemesGoOverEpochs) {
  const auto runs = grid({{"optimizer.lr", {"0.1", "0.2"}}, {"scheme.name", {"gpipe", "xpipe"}}});
  const PlotSpec plot = laid_out(plot_of(), runs);
  EXPECT_EQ(plot.x.name, "epoch");
  EXPECT_EQ(names_of(plot.lines), KeyNames{"scheme.name"});
  EXPECT_EQ(names_of(plot.pictures), KeyNames{"optimizer.lr"});
  const TableSpec table = laid_out(table_of(), runs);
  EXPECT_EQ(names_of(table.rows), (KeyNames{"optimizer.lr", "scheme.name"}));
  EXPECT_EQ(names_of(table.columns), KeyNames());
}

TEST_F(DefaultLayouts, WithoutSchemesTheFirstKeyThatVariesNamesTheLines) {
  const auto runs = grid({{"optimizer.lr", {"0.1", "0.2"}}, {"loader.batch_size", {"8", "16"}}});
  EXPECT_EQ(names_of(laid_out(plot_of(), runs).lines), KeyNames{"optimizer.lr"});
  EXPECT_EQ(names_of(laid_out(plot_of(), runs).pictures), KeyNames{"loader.batch_size"});
  const auto stages = grid({{"pipeline.stages", {"2", "4"}}});
  EXPECT_EQ(names_of(laid_out(plot_of(), stages).lines), KeyNames{"scheme.name"});
}

TEST_F(DefaultLayouts, WhatASchemeBringsWithItDividesNothing) {
  // Each scheme has its own number of micro-batches, and one has an option of its own.
  const std::vector<RunRecord> runs{
      point({{"scheme.name", "gpipe"}, {"pipeline.microbatches", "4"}}),
      point({{"scheme.name", "spectrain"}, {"scheme.version", "1"}}),
      point({{"scheme.name", "spectrain"}, {"scheme.version", "2"}})};
  const PlotSpec plot = laid_out(plot_of(), runs);
  EXPECT_EQ(names_of(plot.lines), (KeyNames{"scheme.name", "scheme.version"}));
  EXPECT_EQ(plot.pictures.size(), 0u);
  EXPECT_EQ(title_of(runs[0], plot.lines), "gpipe");
  EXPECT_EQ(title_of(runs[1], plot.lines), "spectrain, version 1");
}

TEST_F(DefaultLayouts, LabelsOfTheFileNameWhatIsCompared) {
  const std::vector<RunRecord> runs{
      point({{"scheme.name", "pipedream"}, {"pipeline.stages", "2"}}, "PD"),
      point({{"scheme.name", "pipedream"}, {"pipeline.stages", "4"}}, "PD"),
      point({{"scheme.name", "spectrain"}, {"pipeline.stages", "4"}}, "ST")};
  const Table table = make_table(table_of(kLabelled), runs);
  EXPECT_EQ(table.row_keys, KeyNames{"label"});
  EXPECT_EQ(table.column_names, (KeyNames{"stages 2", "stages 4"}));
  EXPECT_EQ(laid_out(plot_of(kLabelled), runs).x.name, "pipeline.stages");
}

TEST_F(DefaultLayouts, StagesThatTheLabelNamesAreNoColumns) {
  const std::vector<RunRecord> runs{point({{"pipeline.stages", "2"}}, "PD2"),
                                    point({{"pipeline.stages", "4"}}, "PD4")};
  EXPECT_EQ(make_table(table_of(kLabelled), runs).column_names, KeyNames{"test_accuracy"});
  EXPECT_EQ(laid_out(plot_of(kLabelled), runs).x.name, "epoch");
}

TEST_F(DefaultLayouts, WhatTheFileSaysStays) {
  const auto runs = grid({{"scheme.name", {"gpipe", "xpipe"}},
                          {"pipeline.stages", {"2", "4"}},
                          {"optimizer.lr", {"0.1", "0.2"}}});
  const TableSpec table = laid_out(table_of("table: {columns: optimizer.lr}"), runs);
  EXPECT_EQ(names_of(table.columns), KeyNames{"optimizer.lr"});
  EXPECT_EQ(names_of(table.rows), (KeyNames{"scheme.name", "pipeline.stages"}));
  EXPECT_EQ(laid_out(table_of("table: {rows: label}"), runs).columns.size(), 0u);
  EXPECT_EQ(names_of(laid_out(table_of("table: {beside: test_loss}"), runs).rows),
            (KeyNames{"optimizer.lr", "scheme.name", "pipeline.stages"}));
  const PlotSpec x = laid_out(plot_of("plot: {x: optimizer.lr}"), runs);
  EXPECT_EQ(x.x.name, "optimizer.lr");
  EXPECT_EQ(names_of(x.pictures), KeyNames{"pipeline.stages"});
  const PlotSpec pictures = laid_out(plot_of("plot: {pictures: pipeline.stages}"), runs);
  EXPECT_EQ(pictures.x.name, "epoch");
  EXPECT_EQ(names_of(pictures.lines), (KeyNames{"scheme.name", "optimizer.lr"}));
  EXPECT_EQ(laid_out(plot_of("plot: {lines: label}"), runs).x.name, "epoch");
  EXPECT_EQ(laid_out(plot_of("plot: {hardware: x.yaml}"), runs).x.name, "epoch");
}

TEST_F(DefaultLayouts, EvaluationsWithinOneEpochStandOverMinibatches) {
  RunRecord run = point({{"scheme.name", "gpipe"}});
  run.columns = {"epoch", "test_accuracy"};
  run.epochs = {{1, 0.5}};
  EXPECT_EQ(laid_out(plot_of(), {run}).x.name, "epoch");
  run.evaluations = {{"minibatches", {10, 20}}, {"test_accuracy", {0.4, 0.5}}};
  EXPECT_EQ(laid_out(plot_of(), {run}).x.name, "minibatch");
  EXPECT_EQ(laid_out(plot_of("plot: {lines: label}"), {run}).x.name, "minibatch");
  EXPECT_EQ(laid_out(plot_of("plot: {x: epoch}"), {run}).x.name, "epoch");
  EXPECT_EQ(laid_out(plot_of("plot: {hardware: x.yaml}"), {run}).x.name, "epoch");
  EXPECT_EQ(laid_out(plot_of("plot: {y: test_loss}"), {run}).x.name, "epoch");
  RunRecord longer = run;
  longer.epochs = {{1, 0.5}, {2, 0.6}};
  EXPECT_EQ(laid_out(plot_of(), {run, longer}).x.name, "epoch");
}

TEST_F(DefaultLayouts, APictureOfStagesAndSeedsHasALineOfMeans) {
  const auto runs = grid({{"pipeline.stages", {"1", "2"}}, {"train.seed", {"1", "2", "3"}}});
  for (const char* section : {"{}", "{x: pipeline.stages}"})
    EXPECT_EQ(names_of(laid_out(plot_of(section), runs).lines), KeyNames{"scheme.name"}) << section;
  const auto seeds = grid({{"train.seed", {"1", "2", "3"}}});
  EXPECT_EQ(names_of(laid_out(plot_of(), seeds).lines), KeyNames{"scheme.name"});
}

}  // namespace
}  // namespace pipewright
