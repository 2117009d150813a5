// SPDX-License-Identifier: Apache-2.0
#include "core/codecs/loops/rank_selection.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "core/base/as_size.h"
#include "core/base/mutex.h"
#include "core/base/vectorised.h"

namespace pipewright {
namespace {

using Key = std::int32_t;
using Keys = std::vector<Key>;
constexpr Key kLowest = std::numeric_limits<Key>::min(), kHighest = std::numeric_limits<Key>::max();

constexpr std::int64_t kKeysOfABlock = 2048;     // values whose keys stay in the first-level cache
constexpr std::int64_t kRankedAtOnce = 1 << 17;  // values of a piece of parallel work, at least
constexpr std::int64_t kSortAtOnce = 4096;       // up to this many values are sorted instead
constexpr std::int64_t kSample = 1 << 16;
constexpr std::size_t kMostRanks = 64;  // with more ranks, nearly all values would be collected
constexpr double kDeviations = 4;       // of a rank in the sample: fails once in 16,000 times

// ---- loops over a block ----

PIPEWRIGHT_VECTORISED void make_keys(const float* __restrict values, std::int64_t n,
                                     Key* __restrict keys, Extremes& extremes) {
  Key least = extremes.least, most = extremes.most;
  for (std::int64_t i = 0; i < n; ++i) {
    const Key key = key_of(values[i]);
    keys[i] = key;
    least = std::min(least, key);
    most = std::max(most, key);
  }
  extremes = {least, most};
}

/// Counts the keys below the edge, and inverts the marks of the others.
PIPEWRIGHT_VECTORISED std::int64_t count_below(const Key* __restrict keys, std::int64_t n, Key edge,
                                               std::int32_t* __restrict marks) {
  std::int32_t above = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int32_t mark = keys[i] >= edge ? -1 : 0;
    above += mark;
    marks[i] ^= mark;
  }
  return n + above;
}

/// Updates the greatest key below the edge and the least key at or above it. Distances from the
/// edge are unsigned and wrap around, so keys on the other side are farther than all others.
PIPEWRIGHT_VECTORISED void extremes_beside(const Key* keys, std::int64_t n, Key edge,
                                           Key& most_below, Key& least_above) {
  using Distance = std::uint32_t;
  const auto from = static_cast<Distance>(edge);
  Distance up = std::numeric_limits<Distance>::max(), down = up;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto key = static_cast<Distance>(keys[i]);
    up = std::min(up, key - from);
    down = std::min(down, from - 1 - key);
  }
  const auto above = static_cast<Key>(from + up), below = static_cast<Key>(from - 1 - down);
  if (above >= edge) least_above = std::min(least_above, above);
  if (below < edge) most_below = std::max(most_below, below);
}

constexpr std::int64_t kSlack = 16;  // keys that collecting may write beyond its result

std::int64_t collect_one_by_one(const Key* keys, const std::int32_t* marks, std::int64_t n,
                                Key* into) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    into[count] = keys[i];
    count -= marks[i];
  }
  return count;
}

#if defined(__x86_64__) && defined(__GNUC__)
/// Uses AVX-512's compress instruction, which compilers do not generate.
[[gnu::target("avx512f,popcnt")]] std::int64_t collect_by_compressing(const Key* keys,
                                                                      const std::int32_t* marks,
                                                                      std::int64_t n, Key* into) {
  Key* end = into;
  for (std::int64_t i = 0; i < n; i += 16) {
    const auto lanes = static_cast<__mmask16>(n - i >= 16 ? 0xffff : (1 << (n - i)) - 1);
    const __m512i marked = _mm512_maskz_loadu_epi32(lanes, marks + i);
    const __mmask16 wanted = _mm512_test_epi32_mask(marked, marked);
    const __m512i key = _mm512_maskz_loadu_epi32(lanes, keys + i);
    _mm512_storeu_si512(end, _mm512_maskz_compress_epi32(wanted, key));
    end += __builtin_popcount(wanted);
  }
  return end - into;
}
#endif

/// Copies the marked keys to `into`, which has room for n + kSlack keys. Returns their number.
std::int64_t collect_marked(const Key* keys, const std::int32_t* marks, std::int64_t n, Key* into) {
#if defined(__x86_64__) && defined(__GNUC__)
  static const bool compresses = __builtin_cpu_supports("avx512f");
  if (compresses) return collect_by_compressing(keys, marks, n, into);
#endif
  return collect_one_by_one(keys, marks, n, into);
}

// ---- edges from a sample ----

/// Two indices in the sorted sample between which a rank almost surely lies.
struct Bracket {
  std::int64_t first, last;
};

std::vector<Bracket> brackets(std::int64_t sampled, std::span<const std::int64_t> ranks,
                              std::int64_t n) {
  std::vector<Bracket> all;
  const auto m = static_cast<double>(sampled);
  for (const std::int64_t rank : ranks) {
    if (rank == 0 || rank == n - 1) continue;  // the census finds the least and the greatest
    const double part = (static_cast<double>(rank) + 0.5) / static_cast<double>(n);
    const double spread = 1 + kDeviations * std::sqrt(m * part * (1 - part));
    const auto at = [&](double place) {
      return static_cast<std::int64_t>(std::clamp(std::floor(place), 0.0, m - 1));
    };
    const Bracket bracket{at(m * part - spread), at(m * part + spread)};
    if (!all.empty() && bracket.first <= all.back().last)
      all.back().last = std::max(all.back().last, bracket.last);
    else
      all.push_back(bracket);
  }
  return all;
}

/// −0 counts as 0, so an edge at 0 starts at the key of −0.
Key edge_at(Key key) {
  return key == 0 ? -1 : key;
}
Key edge_after(Key key) {
  return key == kHighest ? key : key + 1;
}

/// Number of times that the sample has this key.
std::ptrdiff_t repeats(const Keys& sample, Key key) {
  const auto [first, last] = std::equal_range(sample.begin(), sample.end(), key);
  return last - first;
}

/// An even number of edges, ascending: keys from edge 2i up to edge 2i + 1 are collected.
Keys edges_of(const Keys& sample, const std::vector<Bracket>& all) {
  const auto often = static_cast<std::ptrdiff_t>(std::max<std::size_t>(sample.size() / 256, 16));
  Keys edges;
  const auto add = [&](Key edge) {
    edges.push_back(edges.empty() ? edge : std::max(edge, edges.back()));
  };
  for (const Bracket& bracket : all) {
    const auto end = sample.begin() + bracket.last + 1;
    auto at = sample.begin() + bracket.first;
    add(edge_at(*at));
    while (at != end) {
      const Key key = *at;
      if (repeats(sample, key) >= often) {
        add(edge_at(key));
        add(edge_after(key));
      }
      at = std::upper_bound(at, end, key);
    }
    add(edge_after(*(end - 1)));
  }
  return edges;
}

// ---- counting and collecting ----

struct Census {
  Extremes extremes{kHighest, kLowest};
  std::vector<std::int64_t> below;  ///< number of keys below each edge
  Keys collected;

  void add(Census& other) {
    extremes = {std::min(extremes.least, other.extremes.least),
                std::max(extremes.most, other.extremes.most)};
    for (std::size_t i = 0; i < below.size(); ++i) below[i] += other.below[i];
    if (collected.empty())
      collected.swap(other.collected);
    else
      collected.insert(collected.end(), other.collected.begin(), other.collected.end());
  }
};

Census census_of_piece(std::span<const float> values, const Keys& edges) {
  alignas(64) std::array<Key, kKeysOfABlock> keys;
  alignas(64) std::array<Key, kKeysOfABlock + kSlack> collected;
  alignas(64) std::array<std::int32_t, kKeysOfABlock> marks;
  Census census{.below = std::vector<std::int64_t>(edges.size()), .collected = {}};
  for (std::int64_t at = 0; at < std::ssize(values); at += kKeysOfABlock) {
    const std::int64_t n = std::min(kKeysOfABlock, std::ssize(values) - at);
    make_keys(values.data() + at, n, keys.data(), census.extremes);
    marks.fill(0);
    for (std::size_t i = 0; i < edges.size(); ++i)
      census.below[i] += count_below(keys.data(), n, edges[i], marks.data());
    const std::int64_t count = collect_marked(keys.data(), marks.data(), n, collected.data());
    census.collected.insert(census.collected.end(), collected.begin(), collected.begin() + count);
  }
  return census;
}

Census census_of(std::span<const float> values, const Keys& edges, const ForPieces& pieces) {
  Census all{.below = std::vector<std::int64_t>(edges.size()), .collected = {}};
  Mutex mutex;
  pieces(std::ssize(values), kRankedAtOnce, [&](std::int64_t begin, std::int64_t end) {
    Census part = census_of_piece(values.subspan(as_size(begin), as_size(end - begin)), edges);
    const Lock lock(mutex);
    all.add(part);
  });
  return all;
}

/// Finds the key at a rank, if the counts determine it.
class Ranking {
 public:
  Ranking(Census& census, const Keys& edges, std::int64_t n)
      : census_(census), edges_(edges), n_(n) {
    sort_keys(census.collected);
  }

  std::optional<Key> at(std::int64_t rank) const {
    if (rank == 0) return census_.extremes.least;
    if (rank == n_ - 1) return census_.extremes.most;
    const auto& below = census_.below;
    const auto edge = std::upper_bound(below.begin(), below.end(), rank) - below.begin();
    const auto cell = static_cast<std::size_t>(edge);  // lies between edges cell − 1 and cell
    if (cell == 0 || cell == below.size()) return {};
    if (cell % 2 == 1) {
      std::int64_t earlier = 0;  // keys collected in earlier cells
      for (std::size_t i = 1; i < cell; i += 2) earlier += below[i] - below[i - 1];
      return census_.collected[as_size(earlier + rank - below[cell - 1])];
    }
    const Key first = edges_[cell - 1], last = edges_[cell] - 1;
    if (first == last || (first == -1 && last == 0)) return first;
    return {};
  }

 private:
  const Census& census_;
  const Keys& edges_;
  std::int64_t n_;
};

std::optional<std::vector<float>> by_sample(std::span<const float> values,
                                            std::span<const std::int64_t> ranks,
                                            const ForPieces& pieces) {
  const std::int64_t n = std::ssize(values);
  const Keys sample = sorted_sample(values, std::min(kSample, n / 16));
  const Keys edges = edges_of(sample, brackets(std::ssize(sample), ranks, n));
  Census census = census_of(values, edges, pieces);
  const Ranking ranking(census, edges, n);
  std::vector<float> found;
  for (const std::int64_t rank : ranks) {
    const std::optional<Key> key = ranking.at(rank);
    if (!key) return {};
    found.push_back(value_of(*key));
  }
  return found;
}

std::vector<float> by_sorting(std::span<const float> values, std::span<const std::int64_t> ranks) {
  Keys keys(values.size());
  std::transform(values.begin(), values.end(), keys.begin(), key_of);
  sort_keys(keys);
  std::vector<float> found;
  for (const std::int64_t rank : ranks) found.push_back(value_of(keys[as_size(rank)]));
  return found;
}

/// One place in each of `most` equal parts.
std::vector<const float*> places_of_sample(std::span<const float> values, std::int64_t most) {
  const std::int64_t n = std::ssize(values), m = std::min(n, most);
  std::vector<const float*> places(as_size(m));
  if (m == 0) return places;
  const std::int64_t part = n / m, rest = n % m;
  std::uint64_t state = kSampleSeed;
  for (std::int64_t i = 0; i < m; ++i) {
    const std::int64_t begin = i * part + std::min(i, rest);
    const auto size = static_cast<std::uint64_t>(part + (i < rest ? 1 : 0));
    state = state * kSampleFactor + kSampleSummand;
    places[as_size(i)] =
        values.data() + begin + static_cast<std::int64_t>(((state >> 40) * size) >> 24);
  }
  return places;
}

}  // namespace

void sort_keys(Keys& keys) {
  if (keys.size() < 512) {
    std::sort(keys.begin(), keys.end());
    return;
  }
  constexpr std::array<int, 3> kShifts{0, 11, 22};
  const auto digit = [](Key key, int shift) {
    return ((static_cast<std::uint32_t>(key) ^ 0x80000000u) >> shift) & 2047u;
  };
  std::array<std::array<std::size_t, 2048>, 3> places{};
  for (const Key key : keys)
    for (std::size_t pass = 0; pass < 3; ++pass) ++places[pass][digit(key, kShifts[pass])];
  Keys other(keys.size());
  for (std::size_t pass = 0; pass < 3; ++pass) {
    auto& place = places[pass];
    if (*std::max_element(place.begin(), place.end()) == keys.size())
      continue;  // all keys have the same digit
    std::exclusive_scan(place.begin(), place.end(), place.begin(), std::size_t{0});
    for (const Key key : keys) other[place[digit(key, kShifts[pass])]++] = key;
    keys.swap(other);
  }
}

Keys sorted_sample(std::span<const float> values, std::int64_t most) {
  const std::vector<const float*> places = places_of_sample(values, most);
  constexpr std::size_t kAhead = 24;  // prefetch distance in samples
  Keys sample(places.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    __builtin_prefetch(places[std::min(i + kAhead, places.size() - 1)]);
    const Key key = key_of(*places[i]);
    sample[i] = key == -1 ? 0 : key;
  }
  sort_keys(sample);
  return sample;
}

std::vector<Extremes> extremes_between(std::span<const float> values, std::span<const Key> edges,
                                       const ForPieces& pieces) {
  std::vector<Extremes> all(edges.size() + 1, Extremes{kHighest, kLowest});
  Mutex mutex;
  const auto widen = [](Extremes& extremes, Key least, Key most) {
    extremes = {std::min(extremes.least, least), std::max(extremes.most, most)};
  };
  pieces(std::ssize(values), kRankedAtOnce, [&](std::int64_t begin, std::int64_t end) {
    alignas(64) std::array<Key, kKeysOfABlock> keys;
    std::vector<Extremes> part(all.size(), Extremes{kHighest, kLowest});
    for (std::int64_t at = begin; at < end; at += kKeysOfABlock) {
      const std::int64_t n = std::min(kKeysOfABlock, end - at);
      Extremes block{kHighest, kLowest};
      make_keys(values.data() + at, n, keys.data(), block);
      widen(part.front(), block.least, kLowest);
      widen(part.back(), kHighest, block.most);
      for (std::size_t i = 0; edges.size() <= 32 && i < edges.size(); ++i)
        extremes_beside(keys.data(), n, edges[i], part[i].most, part[i + 1].least);
      for (std::int64_t i = 0; edges.size() > 32 && i < n; ++i) {
        const Key key = keys[as_size(i)];
        const auto cell = std::upper_bound(edges.begin(), edges.end(), key) - edges.begin();
        widen(part[as_size(cell)], key, key);
      }
    }
    const Lock lock(mutex);
    for (std::size_t i = 0; i < all.size(); ++i) widen(all[i], part[i].least, part[i].most);
  });
  return all;
}

std::vector<float> values_at_ranks(std::span<const float> values,
                                   std::span<const std::int64_t> ranks, const ForPieces& pieces) {
  if (std::ssize(values) > kSortAtOnce && ranks.size() <= kMostRanks)
    if (auto found = by_sample(values, ranks, pieces)) return *found;
  return by_sorting(values, ranks);
}

}  // namespace pipewright
