// SPDX-License-Identifier: Apache-2.0
/// The Large Movie Review Dataset (Maas et al., "Learning Word Vectors for Sentiment Analysis",
/// 2011) in its authors' layout, {train,test}/{neg,pos}/ID_RATING.txt, tokenised as in the IMDB
/// data set of Keras (ranked_words.h). Longer reviews are truncated at their end; shorter ones are
/// padded at the end.
///
/// Keras' published file ranks words over reviews in an unknown order; here they are ranked over
/// the training reviews, so frequent words have similar but not equal numbers.
#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "core/base/error_at.h"
#include "core/base/utf8.h"
#include "core/fetch/sources.h"
#include "core/tensor_files/pattern.h"
#include "datasets/archives/file_tree.h"
#include "datasets/texts/labelled_texts.h"
#include "datasets/texts/ranked_words.h"

namespace pipewright {
namespace {

constexpr std::array<const char*, 2> kLabels{"neg", "pos"};
constexpr std::uint64_t kLargestReview = 1 << 20, kLargestInAll = std::uint64_t{1} << 28;
constexpr const char* kArchive = "aclImdb_v1.tar.gz";

struct Review {
  std::int64_t id;
  std::uint8_t label;
  std::string text;  // in lower case
};

/// The ID in a name ".../ID_RATING.txt"; −1 if the name has another form.
std::int64_t id_of(std::string_view name) {
  const std::string_view file = name.substr(name.rfind('/') + 1);
  std::int64_t id = -1;
  const auto [end, error] = std::from_chars(file.data(), file.data() + file.size(), id);
  const std::string_view rest(end, static_cast<std::size_t>(file.data() + file.size() - end));
  return error == std::errc() && rest.starts_with('_') && rest.ends_with(".txt") ? id : -1;
}

class Imdb final : public LabelledTextDataset {
 public:
  explicit Imdb(Options& options)
      : root_(options.path("root", "~/data/aclImdb",
                           "Folder of train and test, each with neg and pos, or of the archive "
                           "that they come in (aclImdb_v1.tar.gz); or that file.")) {
    look_ = {.classes = kLabels.size(), .padding = kRankedPadding};
    look_.vocabulary = options.integer(
        "words", 10'000,
        "Size of the vocabulary, marks included: rarer words are one token. It is Keras' "
        "num_words, but words are ranked by the training reviews, in Keras by all 50,000.",
        Range{kFirstRanked, 1 << 30});
    look_.tokens = options.integer(
        "tokens", 200,
        "Tokens of each sample: longer reviews keep their first tokens, shorter ones are padded.",
        Range{1, 1 << 20});
  }

  bool sorted_by_class() const override { return true; }

  void open(const DatasetRequest&) override {
    const FileTree files = all_files();
    const std::vector<Review> train = reviews(files, "train"), test = reviews(files, "test");
    WordCounts counts;
    for (const Review& review : train) count_words(review.text, counts);
    const RankedWords words(counts, look_.vocabulary);
    train_ = tokenised(train, words);
    test_ = tokenised(test, words);
  }

 private:
  /// Reads the folder or archive `root`, or the archive in that folder. Returns no files if there
  /// is nothing; reviews() then reports where to get them.
  FileTree all_files() const {
    std::error_code ignored;
    const std::filesystem::path archive = root_ / kArchive;
    const bool packed = !std::filesystem::exists(root_ / "train", ignored) &&
                        std::filesystem::exists(archive, ignored);
    if (!packed && !std::filesystem::exists(root_, ignored)) return {};
    return read_tree(
        packed ? archive : root_,
        [](const std::string& name) { return is_review(name) ? kLargestReview : 0; },
        kLargestInAll);
  }

  static bool is_review(const std::string& name) {
    for (const char* split : {"train/", "test/"})
      for (const char* label : kLabels)
        if (name.starts_with(std::string(split) + label + "/") && name.ends_with(".txt"))
          return true;
    return false;
  }

  /// The reviews of a split, sorted by label, then by ID.
  std::vector<Review> reviews(const FileTree& files, const std::string& split) const {
    std::vector<Review> all;
    for (std::size_t label = 0; label < kLabels.size(); ++label) {
      const std::string folder = concat(split, "/", std::string(kLabels[label]), "/");
      const std::size_t before = all.size();
      for (auto file = files.lower_bound(folder);
           file != files.end() && file->first.starts_with(folder); ++file)
        all.push_back(review(file->first, file->second, static_cast<std::uint8_t>(label)));
      if (all.size() == before)
        throw data_error(
            root_, "has no reviews in ", folder,
            ". They are part of the Large Movie Review Dataset (aclImdb_v1.tar.gz), available from "
            "its page at Stanford University (ai.stanford.edu/~amaas/data/sentiment). Set "
            "dataset.root to the folder aclImdb or to the archive",
            fetch_advice("imdb"));
      std::sort(all.begin() + static_cast<std::ptrdiff_t>(before), all.end(),
                [](const Review& a, const Review& b) { return a.id < b.id; });
    }
    return all;
  }

  Review review(const std::string& name, const std::string& text, std::uint8_t label) const {
    const auto fail = [&](const std::string& what) {
      throw data_error(root_, "'", name, "' ", what);
    };
    const std::int64_t id = id_of(name);
    if (id < 0) fail("is not named ID_RATING.txt, as reviews are");
    if (valid_utf8(text) < text.size()) fail("is not UTF-8");
    return {id, label, lower_case(text)};
  }

  LabelledTexts tokenised(const std::vector<Review>& reviews, const RankedWords& words) const {
    LabelledTexts texts;
    for (const Review& review : reviews)
      texts.append(words.tokens(review.text, look_.tokens), review.label);
    return texts;
  }

  std::filesystem::path root_;
};

}  // namespace

PIPEWRIGHT_DATASET(imdb, Imdb,
                   "IMDB: is a movie review good or bad? 25,000 + 25,000, tokens as Keras'.")

}  // namespace pipewright
