// SPDX-License-Identifier: Apache-2.0
// Which values are better is known of every metric that tables show, as tests/invariance lists
// them.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "core/base/text.h"
#include "core/records/run_record.h"
#include "core/system/file.h"
#include "tests/unit/source_dir.h"

namespace pipewright::test {
namespace {

const std::map<std::string, Better> kKnown{{"epoch", Better::NotJudged},
                                           {"train_loss", Better::Smaller},
                                           {"test_loss", Better::Smaller},
                                           {"test_accuracy", Better::Larger},
                                           {"test_top5", Better::Larger},
                                           {"test_matthews", Better::Larger},
                                           {"test_bleu", Better::Larger},
                                           {"test_perplexity", Better::Smaller},
                                           {"test_mae", Better::Smaller},
                                           {"lr", Better::NotJudged},
                                           {"seconds", Better::Smaller},
                                           {"samples_per_second", Better::Larger},
                                           {"sent_ratio", Better::Smaller},
                                           {"sent_mib", Better::Smaller},
                                           {"required_mib_per_s", Better::Smaller},
                                           {"codec_share", Better::Smaller},
                                           {"reduced_ratio", Better::Smaller},
                                           {"reduced_mib", Better::Smaller},
                                           {"modelled_samples_per_second", Better::Larger},
                                           {"modelled_speedup", Better::Larger},
                                           {"modelled_bubble", Better::Smaller},
                                           {"modelled_required_mib_per_s", Better::Smaller},
                                           {"modelled_link_mib_per_s", Better::NotJudged},
                                           {"modelled_state_gib", Better::Smaller},
                                           {"modelled_worker_state_gib", Better::Smaller},
                                           {"modelled_activation_gib", Better::Smaller},
                                           {"modelled_memory_gib", Better::Smaller},
                                           {"modelled_worker_memory_gib", Better::Smaller},
                                           {"modelled_parameters", Better::NotJudged},
                                           {"modelled_hours", Better::Smaller}};

/// The metric that a row of the table of quantities is about; "" if it is about none.
std::string metric_in(const std::string& row) {
  const std::string quantity = row.substr(0, row.find(','));
  for (const char* before : {"epochs.csv ", "--hardware ", "results.sqlite results.", "probe "})
    if (quantity.starts_with(before))
      return concat(before == std::string("probe ") ? "probe." : "",
                    quantity.substr(std::string(before).size()));
  return {};
}

TEST(BetterValues, AreKnownOfEveryMetricThatTablesShow) {
  std::size_t probes = 0, others = 0;
  for (const std::string& row :
       split(read_file(source_dir() / "tests/invariance/quantities.csv"), '\n')) {
    const std::string metric = metric_in(row);
    if (metric.starts_with("probe.")) {
      EXPECT_EQ(better_values(metric), Better::NotJudged) << metric;
      ++probes;
    }
    // The other columns of the view `results` say which run it is.
    const bool is_metric =
        metric.find('.') == std::string::npos && metric.find('_') < metric.size();
    if (metric.starts_with("probe.") || !is_metric) continue;
    const auto known = kKnown.find(metric);
    ASSERT_NE(known, kKnown.end()) << metric << " has no row in this test";
    EXPECT_EQ(better_values(metric), known->second) << metric;
    ++others;
  }
  EXPECT_GT(probes, 20u);
  EXPECT_GT(others, 25u);
  for (const auto& [metric, better] : kKnown) EXPECT_EQ(better_values(metric), better) << metric;
}

TEST(BetterValues, OfAMetricThatIsNotJudgedTheBestIsTheLast) {
  RunRecord run;
  run.state = "done";
  run.columns = {"lr", "test_loss", "test_accuracy"};
  run.epochs = {{0.1, 2, 0.5}, {0.3, 1, 0.75}, {0.2, 3, 0.25}};
  EXPECT_EQ(metric_of(run, "lr", "best"), 0.2);
  EXPECT_EQ(metric_of(run, "test_loss", "best"), 1);
  EXPECT_EQ(metric_of(run, "test_accuracy", "best"), 0.75);
}

}  // namespace
}  // namespace pipewright::test
