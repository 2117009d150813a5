/// Texts in two languages: line n of one file translates line n of the other.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace pipewright {

/// Sentences as words with one blank between.
struct ParallelText {
  std::vector<std::string> source, target;  ///< of the same length
};

struct ParallelTexts {
  ParallelText train, test;
};

/// How the files are called.
struct ParallelNames {
  std::string source;  ///< ending, as "en"
  std::string target;
  std::string test;  ///< without the ending; "" = as the layout has it
};

/// Where words end.
enum class WordEnds : std::uint8_t {
  Known,        ///< as the layout has it: OpenNMT's files are tokenised, the others are not
  Blanks,       ///< texts are tokenised
  Punctuation,  ///< punctuation_split()
};

/// Reads training and test texts from `root`, whose files are plain or gzipped and are called
/// task1/raw/train.en, train.de and test_2016_flickr (Multi30k), src-train.txt, tgt-train.txt and
/// test (OpenNMT), or train.en, train.de and test. Throws Error{Data} at the file: missing,
/// damaged, or two that differ in their number of lines.
ParallelTexts read_parallel_texts(const std::filesystem::path& root, const ParallelNames& names,
                                  WordEnds word_ends);

}  // namespace pipewright
