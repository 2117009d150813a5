// SPDX-License-Identifier: Apache-2.0
/// Parallel texts in two languages: line n of one file translates line n of the other.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace pipewright {

/// Sentence pairs; the words of a sentence are separated by one blank.
struct ParallelText {
  std::vector<std::string> source, target;  ///< as many sentences each
};

struct ParallelTexts {
  ParallelText train, test;
};

/// Names of the files.
struct ParallelNames {
  std::string source;  ///< ending of the source's files, as "en"
  std::string target;
  std::string test;  ///< without the ending; "": the layout's own name
};

/// How text is divided into words.
enum class WordEnds : std::uint8_t {
  Known,        ///< by layout: OpenNMT's files are tokenised, the others are not
  Blanks,       ///< at blanks: texts are tokenised
  Punctuation,  ///< by punctuation_split()
};

/// Reads training and test texts from `root`. The files are plain or gzipped and in one of three
/// layouts: task1/raw/train.en, train.de and test_2016_flickr (Multi30k); src-train.txt,
/// tgt-train.txt and test (OpenNMT); or train.en, train.de and test. Throws Error{Data} at the file
/// that is missing, damaged, or has another number of lines than its counterpart.
ParallelTexts read_parallel_texts(const std::filesystem::path& root, const ParallelNames& names,
                                  WordEnds word_ends);

}  // namespace pipewright
