// SPDX-License-Identifier: Apache-2.0
// tiers.py measures how long a processor needs to compile this and to run it, which says how fast
// it is.
#include <cstdio>
#include <map>
#include <regex>
#include <string>
#include <vector>

int main() {
  // Words in a tree, as schedules and records have them.
  std::map<std::string, int> words;
  for (unsigned i = 0; i < 6'000'000; ++i) ++words["word " + std::to_string(i * 7919U % 50'021U)];
  const std::regex pattern("word ([0-9]*)7");
  int found = 0;
  for (const auto& [word, count] : words) found += std::regex_match(word, pattern) ? count : 0;
  // Arithmetic over an array, as layers have it.
  std::vector<float> values(1U << 16U, 0.5F);
  for (int round = 0; round < 60'000; ++round)
    for (float& value : values) value = value * 0.999F + 0.001F;
  std::printf("%d %g\n", found, static_cast<double>(values[0]));
}
