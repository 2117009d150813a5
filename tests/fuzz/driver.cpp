// SPDX-License-Identifier: Apache-2.0
// The main function of a target where the compiler has no libFuzzer; it understands a few of
// libFuzzer's arguments.
//
//   fuzz_yaml -runs=10000 -seed=1 -dict=yaml.dict -artifact_prefix=failures/ corpus/yaml
//   fuzz_yaml failures/yaml-round-17
//
// The first command reads every seed of the folder: those called good-… must be taken, those called
// bad-… refused. Then it changes them, always in the same way, and has them read. An input whose
// outcome is unlike all before it becomes another seed. The second one reads a file and says what
// came of it.
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>

#include "tests/fuzz/mutation.h"
#include "tests/fuzz/target.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

namespace pipewright::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostFound = 512;    // inputs that become seeds
constexpr int kMostSecondsOfAnInput = 60;  // of processor time: more is an endless loop

struct Arguments {
  long runs = kTarget.rounds;
  std::uint64_t seed = 1;
  std::string dictionary, artifacts = "./";
  std::vector<fs::path> paths;
};

struct Seed {
  std::string name, bytes;
};

/// What is being read, for when that ends the program.
struct Reading {
  std::string name;      // of the file, or "round-17"
  std::string artifact;  // where to write it; empty: it is a file already
  const std::string* bytes = nullptr;
} reading;
std::string program;

/// Keeps the input. It runs while the program ends, perhaps within a signal.
void save() {
  if (reading.bytes == nullptr) return;
  std::string path = reading.artifact;
  if (!path.empty()) {
    std::ofstream out(path, std::ios::binary);
    out.write(reading.bytes->data(), static_cast<std::streamsize>(reading.bytes->size()));
    if (!out.flush()) std::fprintf(stderr, "cannot write %s\n", path.c_str());
  } else {
    path = reading.name;
  }
  reading.bytes = nullptr;
  std::fprintf(stderr, "failing input: %s\nreplay it: %s %s\n", path.c_str(), program.c_str(),
               path.c_str());
}

void save_and_end(int number) {
  if (number == SIGPROF)
    std::fprintf(stderr, "an input took more than %d s of the processor\n", kMostSecondsOfAnInput);
  save();
  std::signal(number, SIG_DFL);
  std::raise(number);
}

void watch() {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_set_death_callback(save);
#endif
  std::signal(SIGABRT, save_and_end);
  std::signal(SIGPROF, save_and_end);
}

Outcome read(const std::string& bytes, std::string name, std::string artifact) {
  reading = {std::move(name), std::move(artifact), &bytes};
  const itimerval limit{.it_interval = {}, .it_value = {kMostSecondsOfAnInput, 0}}, none{};
  ::setitimer(ITIMER_PROF, &limit, nullptr);
  Outcome read = outcome(bytes);
  ::setitimer(ITIMER_PROF, &none, nullptr);
  reading = {};
  return read;
}

/// A refusal without what it says of this input, or the magnitude of what was read: inputs of one
/// shape went much the same way.
std::string shape_of(const Outcome& outcome) {
  if (outcome.taken) return concat("taken ", std::bit_width(outcome.text.size()));
  std::string shape;
  bool quoted = false;
  for (const char c : outcome.text) {
    if (c == '\'') quoted = !quoted;
    if (!quoted && std::isdigit(static_cast<unsigned char>(c)) == 0) shape += c;
  }
  return shape;
}

std::string content_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<Seed> seeds_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::ranges::sort(files);
  std::vector<Seed> seeds;
  for (const fs::path& file : files) seeds.push_back({file.string(), content_of(file)});
  return seeds;
}

/// Whether all seeds are read as their names say.
bool replay(const std::vector<Seed>& seeds, std::set<std::string>& shapes) {
  bool right = true;
  for (const Seed& seed : seeds) {
    const Outcome outcome = read(seed.bytes, seed.name, "");
    shapes.insert(shape_of(outcome));
    const std::string name = fs::path(seed.name).filename().string();
    const bool wrong = (name.starts_with("good-") && !outcome.taken) ||
                       (name.starts_with("bad-") && outcome.taken);
    if (wrong)
      std::fprintf(stderr, "%s was %s: %.300s\n", seed.name.c_str(),
                   outcome.taken ? "taken" : "refused", outcome.text.c_str());
    right = right && !wrong;
  }
  return right;
}

/// Whether both happened: inputs were taken, and refused.
bool fuzz(const Arguments& arguments, std::vector<Seed> seeds, std::set<std::string> shapes) {
  Mutation mutation(arguments.seed,
                    arguments.dictionary.empty() ? std::vector<std::string>()
                                                 : read_dictionary(arguments.dictionary),
                    kTarget.most_bytes);
  const std::size_t given = seeds.size();
  long taken = 0;
  for (long round = 0; round < arguments.runs; ++round) {
    // Half of the time one that was given: what was found is mostly refused.
    const Seed& from = seeds[mutation.below(mutation.below(2) == 0 ? given : seeds.size())];
    std::string bytes = mutation.changed(from.bytes, seeds[mutation.below(seeds.size())].bytes);
    if (kTarget.mend != nullptr && mutation.below(4) > 0) kTarget.mend(bytes);
    const std::string name = concat("round-", round);
    const Outcome outcome =
        read(bytes, name, concat(arguments.artifacts, "seed-", arguments.seed, "-", name));
    taken += outcome.taken;
    if (seeds.size() < given + kMostFound && shapes.insert(shape_of(outcome)).second)
      seeds.push_back({name, std::move(bytes)});
  }
  const Usage most = most_used();
  std::printf(
      "%s: seed %llu, %ld rounds, %zu seeds and %zu found, %ld taken, at most %zu bytes of "
      "memory (for an input of %zu)\n",
      fs::path(program).filename().c_str(), static_cast<unsigned long long>(arguments.seed),
      arguments.runs, given, seeds.size() - given, taken, most.memory, most.input);
  return arguments.runs < 1000 || (taken > 0 && taken < arguments.runs);
}

Arguments read_arguments(int count, char** texts) {
  Arguments arguments;
  for (int i = 1; i < count; ++i) {
    const std::string_view text = texts[i];
    const auto value = [&](std::string_view name) {
      return text.starts_with(name) ? std::string(text.substr(name.size())) : std::string();
    };
    if (const std::string runs = value("-runs="); !runs.empty())
      arguments.runs = std::stol(runs);
    else if (const std::string seed = value("-seed="); !seed.empty())
      arguments.seed = std::stoull(seed);
    else if (const std::string file = value("-dict="); !file.empty())
      arguments.dictionary = file;
    else if (const std::string prefix = value("-artifact_prefix="); !prefix.empty())
      arguments.artifacts = prefix;
    else if (text.starts_with('-'))
      throw std::runtime_error(concat("unknown argument ", text));
    else
      arguments.paths.emplace_back(text);
  }
  if (arguments.paths.empty()) throw std::runtime_error("no corpus: give its folder");
  return arguments;
}

bool run(const Arguments& arguments) {
  std::vector<Seed> seeds;
  for (const fs::path& path : arguments.paths) {
    if (fs::is_directory(path)) {
      std::ranges::move(seeds_in(path), std::back_inserter(seeds));
      continue;
    }
    const std::string bytes = content_of(path);
    const Outcome outcome = read(bytes, path.string(), "");
    std::printf("%s: %s: %s\n", path.c_str(), outcome.taken ? "taken" : "refused",
                outcome.text.c_str());
  }
  if (seeds.empty()) return !fs::is_directory(arguments.paths.front());
  std::set<std::string> shapes;
  const bool right = replay(seeds, shapes);
  return fuzz(arguments, std::move(seeds), std::move(shapes)) && right;
}

}  // namespace
}  // namespace pipewright::fuzz

int main(int count, char** arguments) try {
  using namespace pipewright::fuzz;
  program = arguments[0];
  watch();
  return run(read_arguments(count, arguments)) ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s: %s\n", arguments[0], error.what());
  return 2;
}
