// Changes the targets' seeds at random, always in the same way, and has them read:
//   fuzz_codecs [rounds [target]]
// A failure prints the round and the bytes; sanitizers do the rest.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include "tests/fuzz/target.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace pipewright::fuzz {
namespace {

constexpr std::size_t kMostBytes = 1 << 16;

class Mutation {
 public:
  explicit Mutation(std::uint64_t seed) : random_(seed) {}

  Bytes changed(const Bytes& seed, const std::vector<Bytes>& others) {
    Bytes bytes = seed;
    for (std::size_t changes = 1 + below(4); changes > 0; --changes) change(bytes, others);
    bytes.resize(std::min(bytes.size(), kMostBytes));
    return bytes;
  }
  std::size_t below(std::size_t n) { return n == 0 ? 0 : random_() % n; }

 private:
  /// Half of the time near the beginning, where headers are.
  std::size_t place(const Bytes& bytes) {
    return below(below(2) == 0 ? std::min<std::size_t>(bytes.size(), 64) : bytes.size());
  }

  void change(Bytes& bytes, const std::vector<Bytes>& others) {
    static constexpr std::int64_t kOdd[]{0,
                                         1,
                                         -1,
                                         127,
                                         255,
                                         65535,
                                         0x7fffffff,
                                         0x7fffffffffffffff,
                                         -0x7fffffffffffffff - 1,
                                         std::int64_t{1} << 38,
                                         8,
                                         16};
    const std::size_t at = place(bytes);
    switch (below(7)) {
      case 0:
        if (!bytes.empty()) bytes[at] = static_cast<std::byte>(random_());
        break;
      case 1:
        if (!bytes.empty()) bytes[at] ^= std::byte{1} << below(8);
        break;
      case 2: bytes.resize(below(bytes.size() + 1)); break;
      case 3: bytes.resize(bytes.size() + below(40), static_cast<std::byte>(random_())); break;
      case 4:
        if (bytes.size() >= 8)
          std::memcpy(bytes.data() + std::min(at / 8 * 8, bytes.size() - 8),
                      &kOdd[below(std::size(kOdd))], 8);
        break;
      case 5:
        if (!bytes.empty())
          bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                      bytes.begin() +
                          static_cast<std::ptrdiff_t>(std::min(bytes.size(), at + 1 + below(16))));
        break;
      default: {
        const Bytes& other = others[below(others.size())];
        const std::size_t n = std::min(
            {bytes.size() - std::min(at, bytes.size()), other.size(), std::size_t{1} + below(64)});
        std::copy_n(other.begin(), n, bytes.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
  }

  std::mt19937_64 random_;
};

/// What is being read, for when that ends the program.
struct Reading {
  const Target* target = nullptr;
  long round = 0;
  const Bytes* bytes = nullptr;
} reading;

void write_down() {
  if (reading.bytes == nullptr) return;
  std::fprintf(stderr, "%s, round %ld, %zu bytes:", reading.target->name, reading.round,
               reading.bytes->size());
  for (std::size_t i = 0; i < std::min<std::size_t>(reading.bytes->size(), 256); ++i)
    std::fprintf(stderr, " %02x", std::to_integer<unsigned>((*reading.bytes)[i]));
  std::fprintf(stderr, "\n");
}

bool run(const Target& target, long rounds) {
  const std::vector<Bytes> seeds = target.seeds();
  for (const Bytes& seed : seeds)
    if (!takes(target, seed)) {
      std::fprintf(stderr, "%s does not take its own seed\n", target.name);
      return false;
    }
  Mutation mutation(1);
  long taken = 0;
  for (long round = 0; round < rounds; ++round) {
    const Bytes bytes = mutation.changed(seeds[mutation.below(seeds.size())], seeds);
    reading = {&target, round, &bytes};
    taken += takes(target, bytes);
    if (round % 16 == 0) {
      Bytes marked{static_cast<std::byte>(&target - targets().data())};
      marked.insert(marked.end(), bytes.begin(), bytes.end());
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(marked.data()), marked.size());
    }
    reading = {};
  }
  std::printf("%s: %ld rounds, %ld taken\n", target.name, rounds, taken);
  return taken > 0 && taken < rounds;
}

}  // namespace
}  // namespace pipewright::fuzz

int main(int count, char** arguments) {
  using namespace pipewright::fuzz;
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_set_death_callback(write_down);
#endif
  std::signal(SIGABRT, [](int) { write_down(); });
  const long rounds = count > 1 ? std::atol(arguments[1]) : 20'000;
  const std::string only = count > 2 ? arguments[2] : "";
  bool good = true;
  for (const Target& target : targets())
    if (only.empty() || only == target.name) good &= run(target, rounds);
  return good ? 0 : 1;
}
