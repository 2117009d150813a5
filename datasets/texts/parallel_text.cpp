// SPDX-License-Identifier: Apache-2.0
#include "datasets/texts/parallel_text.h"

#include <array>

#include "core/base/error_at.h"
#include "core/base/wording.h"
#include "core/fetch/sources.h"
#include "datasets/texts/punctuation.h"
#include "datasets/texts/text_file.h"

namespace pipewright {
namespace {

constexpr const char* kParallelOrigin =
    "a text of sentence pairs, as of Multi30k (task1/raw; Elliott et al., 2016, repository "
    "multi30k/dataset) or of WMT; set dataset.root to its folder";

struct Layout {
  const char* folder;
  bool sided;  // src-train.txt instead of train.en
  const char* test;
  bool tokenised;
};
constexpr std::array<Layout, 3> kLayouts{{{"task1/raw", false, "test_2016_flickr", false},
                                          {"", true, "test", true},
                                          {"", false, "test", false}}};

class Files {
 public:
  Files(const std::filesystem::path& root, const Layout& layout, const ParallelNames& names)
      : folder_(root / layout.folder), layout_(layout), names_(names) {}

  std::filesystem::path source(const std::string& part) const {
    return folder_ / (layout_.sided ? "src-" + part + ".txt" : part + "." + names_.source);
  }
  std::filesystem::path target(const std::string& part) const {
    return folder_ / (layout_.sided ? "tgt-" + part + ".txt" : part + "." + names_.target);
  }
  const Layout& layout() const { return layout_; }

 private:
  std::filesystem::path folder_;
  const Layout& layout_;
  const ParallelNames& names_;
};

Files found(const std::filesystem::path& root, const ParallelNames& names) {
  std::vector<std::string> looked_for;
  for (const Layout& layout : kLayouts) {
    const Files files(root, layout, names);
    if (text_is_there(files.source("train"))) return files;
    looked_for.push_back(files.source("train").lexically_relative(root).string());
  }
  throw data_error(root, "holds none of ", join(looked_for, ", "),
                   ", plain or gzipped (.gz). Each is ", std::string(kParallelOrigin),
                   fetch_advice("translation"));
}

std::vector<std::string> sentences(const std::filesystem::path& path, WordEnds word_ends) {
  const std::string text = read_text(path, kParallelOrigin);
  std::vector<std::string> all;
  for (const std::string_view line : lines_of(text)) {
    if (word_ends == WordEnds::Punctuation) {
      all.push_back(punctuation_split(line));
    } else {
      const std::vector<std::string_view> words = words_of(line);
      all.push_back(join(std::vector<std::string>(words.begin(), words.end()), " "));
    }
  }
  return all;
}

ParallelText read_pair(const std::filesystem::path& source, const std::filesystem::path& target,
                       WordEnds word_ends) {
  ParallelText text{sentences(source, word_ends), sentences(target, word_ends)};
  if (text.source.size() != text.target.size())
    throw data_error(target, "has ", counted(text.target.size(), "line"), ", but ",
                     source.filename().string(), " has ", text.source.size(),
                     ": line n of one must translate line n of the other");
  return text;
}

}  // namespace

ParallelTexts read_parallel_texts(const std::filesystem::path& root, const ParallelNames& names,
                                  WordEnds word_ends) {
  const Files files = found(root, names);
  if (word_ends == WordEnds::Known)
    word_ends = files.layout().tokenised ? WordEnds::Blanks : WordEnds::Punctuation;
  const std::string test = names.test.empty() ? files.layout().test : names.test;
  return {read_pair(files.source("train"), files.target("train"), word_ends),
          read_pair(files.source(test), files.target(test), word_ends)};
}

}  // namespace pipewright
