/// Tasks of GLUE (Wang et al., "GLUE: A Multi-Task Benchmark and Analysis Platform for Natural
/// Language Understanding", 2019) in their tab-separated files, read as RoBERTa reads them. Quotes
/// are characters like any other.
///
/// Training is on train.tsv, testing on dev.tsv: the labels of GLUE's test sets are not public.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "datasets/texts/labelled_texts.h"

namespace pipewright {

struct GlueTask {
  std::string name;    ///< as GLUE's page and folders have it
  std::string header;  ///< the first line, or empty if there is none
  std::size_t columns;
  std::size_t first;                  ///< column of the sentence, or of the pair's first
  std::optional<std::size_t> second;  ///< column of the pair's second
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
