// SPDX-License-Identifier: Apache-2.0
/// Prints the tokens of each line of standard input, so that another program can compare them with
/// its own:
///
///   tokenize_probe byte FOLDER             byte-level BPE of encoder.json and vocab.bpe: ids
///   tokenize_probe roberta FOLDER          the same by dict.txt: RoBERTa's ids, without marks
///   tokenize_probe learn MERGES            no tokens, but the merges learnt from all lines
///   tokenize_probe joint CODES             the merges of a file applied: "lo@@ w"
///   tokenize_probe 13a                     words with their punctuation split off
#include <iostream>
#include <sstream>

#include "core/base/error.h"
#include "datasets/texts/byte_bpe.h"
#include "datasets/texts/joint_bpe.h"
#include "datasets/texts/punctuation.h"
#include "datasets/texts/roberta_tokens.h"
#include "datasets/texts/text_file.h"

namespace pipewright {
namespace {

std::vector<std::string> all_lines() {
  std::vector<std::string> lines;
  for (std::string line; std::getline(std::cin, line);) lines.push_back(line);
  return lines;
}

template <class Tokens>
void print(const Tokens& tokens) {
  std::ostringstream line;
  for (const auto& token : tokens) line << token << ' ';
  std::string text = line.str();
  if (!text.empty()) text.pop_back();
  std::cout << text << '\n';
}

int run(const std::vector<std::string>& arguments) {
  const std::string kind = arguments.empty() ? "" : arguments[0];
  const std::string what = arguments.size() > 1 ? arguments[1] : "";
  if (kind == "byte") {
    const ByteBpe bpe(what);
    for (const std::string& line : all_lines()) {
      const auto tokens = bpe.encode(line);
      PIPEWRIGHT_CHECK(bpe.decode(tokens) == line, line);
      print(tokens);
    }
    return 0;
  }
  if (kind == "roberta") {
    const RobertaTokens tokens(what);
    for (const std::string& line : all_lines()) print(tokens.encode(line));
    return 0;
  }
  if (kind == "learn") {
    WordCounts counts;
    for (const std::string& line : all_lines())
      for (const std::string_view word : words_of(line)) counts.add(word);
    for (const auto& [first, second] : learn_merges(counts.in_order(), std::stoll(what)))
      std::cout << first << ' ' << second << '\n';
    return 0;
  }
  if (kind == "joint") {
    const JointBpe bpe(read_merges(what));
    for (const std::string& line : all_lines()) {
      std::vector<std::string> parts;
      for (const std::string_view word : words_of(line))
        for (const std::string& part : bpe.parts(word)) parts.push_back(part);
      print(parts);
    }
    return 0;
  }
  if (kind == "13a") {
    for (const std::string& line : all_lines()) std::cout << punctuation_split(line) << '\n';
    return 0;
  }
  std::cerr << "unknown kind '" << kind << "'; known: byte, roberta, learn, joint, 13a\n";
  return 2;
}

}  // namespace
}  // namespace pipewright

int main(int count, char** arguments) {
  std::ios::sync_with_stdio(false);
  try {
    return pipewright::run({arguments + 1, arguments + count});
  } catch (const pipewright::Error& error) {
    std::cerr << error.what() << '\n';
    return static_cast<int>(error.kind());
  }
}
