// SPDX-License-Identifier: Apache-2.0
/// GLUE tasks (Wang et al., "GLUE: A Multi-Task Benchmark and Analysis Platform for Natural
/// Language Understanding", 2019), read from their tab-separated files and tokenised for RoBERTa.
/// Quotes are ordinary characters.
///
/// The training samples are train.tsv, the test samples dev.tsv, because the labels of GLUE's test
/// sets are not public.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "datasets/texts/labelled_texts.h"

namespace pipewright {

struct GlueTask {
  std::string name;    ///< as in GLUE's folders
  std::string header;  ///< first line of a file; empty if there is none
  std::size_t columns;
  std::size_t first;                  ///< column of the only or first sentence
  std::optional<std::size_t> second;  ///< column of the second sentence
  std::size_t label;
  std::vector<std::string> labels;  ///< class c is labels[c]
  std::vector<std::string> metrics;
};

/// A data set of one task; its constructor reads the options `root`, `bpe` and `tokens`.
class GlueDataset : public LabelledTextDataset {
 public:
  GlueDataset(Options& options, GlueTask task);
  void open(const DatasetRequest& request) final;
  std::vector<std::string> metrics() const final { return task_.metrics; }

 private:
  GlueTask task_;
  std::filesystem::path root_, bpe_;
};

}  // namespace pipewright
