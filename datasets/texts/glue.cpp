// SPDX-License-Identifier: Apache-2.0
#include "datasets/texts/glue.h"

#include <algorithm>

#include "core/base/error_at.h"
#include "core/base/wording.h"
#include "datasets/texts/roberta_tokens.h"
#include "datasets/texts/text_file.h"

namespace pipewright {
namespace {

/// The file of one split; every line is checked.
class GlueFile {
 public:
  GlueFile(const GlueTask& task, std::filesystem::path path)
      : task_(task),
        path_(std::move(path)),
        text_(read_text(path_, "part of " + task.name +
                                   " (train.tsv, dev.tsv), available from the GLUE benchmark's "
                                   "page (gluebenchmark.com); set dataset.root to their folder")),
        lines_(lines_of(text_)) {}

  LabelledTexts tokenised(const RobertaTokens& tokens, std::size_t limit) const {
    LabelledTexts texts;
    for (std::size_t i = first_line(); i < lines_.size(); ++i) {
      const std::vector<std::string> columns = split(lines_[i], '\t');
      if (columns.size() != task_.columns)
        throw_bad_line(path_, i + 1,
                       concat("has ", counted(columns.size(), "column"),
                              " between tabs, but must have ", task_.columns));
      const std::string& first = columns[task_.first];
      texts.append(task_.second ? tokens.pair(first, columns[*task_.second], limit)
                                : tokens.single(first, limit),
                   label(columns[task_.label], i + 1));
    }
    if (texts.size() == 0) throw data_error(path_, "has no sentences");
    return texts;
  }

 private:
  std::size_t first_line() const {
    if (task_.header.empty()) return 0;
    if (lines_[0] != task_.header)
      throw_bad_line(path_, 1,
                     concat("is not the header of ", task_.name, ": '", task_.header,
                            "' with tabs between the names"));
    return 1;
  }

  std::uint8_t label(const std::string& text, std::size_t line) const {
    const auto found = std::ranges::find(task_.labels, text);
    if (found == task_.labels.end())
      throw_bad_line(path_, line,
                     concat("has label '", text, "', must be one of ", join(task_.labels, ", ")));
    return static_cast<std::uint8_t>(found - task_.labels.begin());
  }

  const GlueTask& task_;
  std::filesystem::path path_;
  std::string text_;
  std::vector<std::string_view> lines_;
};

}  // namespace

GlueDataset::GlueDataset(Options& options, GlueTask task)
    : task_(std::move(task)),
      root_(options.path("root", "~/data/glue_data/" + task_.name,
                         "Folder of train.tsv and dev.tsv, plain or gzipped (.gz).")),
      bpe_(options.path("bpe", "~/data/gpt2_bpe",
                        "Folder of RoBERTa's byte-level BPE: encoder.json, vocab.bpe, dict.txt.")) {
  look_ = {.classes = static_cast<std::int64_t>(task_.labels.size()),
           .padding = RobertaTokens::kPadding};
  look_.tokens = options.integer("tokens", 128,
                                 "Tokens of each sample, marks included: longer ones are cut, "
                                 "shorter ones padded.",
                                 Range{8, 1 << 20});
}

void GlueDataset::open(const DatasetRequest&) {
  const GlueFile train(task_, root_ / "train.tsv"), test(task_, root_ / "dev.tsv");
  const RobertaTokens tokens(bpe_);
  const auto limit = static_cast<std::size_t>(look_.tokens);
  train_ = train.tokenised(tokens, limit);
  test_ = test.tokenised(tokens, limit);
  look_.vocabulary = tokens.size();
}

}  // namespace pipewright
