// SPDX-License-Identifier: Apache-2.0
// What codecs cost, as ratios in one process: blocks are taken in turn, the fastest counts, in
// processor time of all threads; one works. The tensor is that of MobileNetV2's first cut, 32
// images: 12.8 million float32 values. `copy` is at::Tensor::copy_ into memory that is there.
//
// `sorting` is sort quantization as its first implementation did it: a sort that keeps the order,
// quantising, and scattering back; decoding sorts the codes to find the groups.
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "core/base/error.h"
#include "core/codecs/edge_coding.h"
#include "core/config/value.h"
#include "core/runtime/devices/allocation.h"
#include "core/tensors/torch.h"
#include "tests/bench/processor_time.h"

namespace pipewright::bench {
namespace {

constexpr std::int64_t kImages = 32;
constexpr int kRounds = 15, kSortingRounds = 3;

constexpr std::pair<const char*, const char*> kRivals[] = {
    {"fp16", "{}"},
    {"bf16", "{}"},
    {"uniform", "{bits: 8}"},
    {"uniform", "{bits: 4}"},
    {"uniform", "{bits: 8, per: channel}"},
    {"uniform", "{bits: 4, per: group}"},
    {"uniform", "{bits: 8, rounding: stochastic}"},
    {"fp8", "{}"},
    {"fp8", "{per: block}"},
    {"mx", "{element: fp8_e4m3}"},
    {"mx", "{element: fp6_e2m3}"},
    {"mx", "{element: fp4_e2m1}"},
    {"top_k", "{fraction: 0.21875}"},
    {"top_k", "{fraction: 0.09375}"},
    {"sign", "{}"}};

at::Tensor values(bool rectified) {
  at::manual_seed(1);
  const at::Tensor x = at::randn({kImages, 32, 112, 112});
  return rectified ? (2 * x).clamp(0, 6) : x;
}

std::unique_ptr<Codec> codec(const std::string& name, const std::string& options) {
  Problems problems;
  const Value value = parse_yaml(options, "bench");
  Options read(&value, "codec", problems);
  auto made = Registry<Codec>::instance().find(name)->make(read);
  PIPEWRIGHT_CHECK(problems.empty(), "options ", options);
  return made;
}

// ---- sort quantization by sorting ----

struct Sorted {
  at::Tensor table;  ///< [groups, 2]
  at::Tensor codes;  ///< int8 or int16
};

Sorted encode_by_sorting(const at::Tensor& x, int bits, int split) {
  const auto [sorted, order] = x.reshape({-1}).sort();
  const std::vector<at::Tensor> groups = at::tensor_split(sorted, std::int64_t{1} << split);
  at::Tensor table = at::empty({std::ssize(groups), 2});
  at::Tensor codes = at::empty_like(sorted);
  const std::vector<at::Tensor> parts = at::tensor_split(codes, std::ssize(groups));
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const at::Tensor low = groups[g][0], high = groups[g][groups[g].numel() - 1];
    const at::Tensor step = (high - low) / ((1 << bits) - 1);
    const auto row = static_cast<std::int64_t>(g);
    table[row][0] = low;
    table[row][1] = step;
    parts[g].copy_(groups[g]).sub_(low).div_(step).nan_to_num_().round_().add_(
        static_cast<double>(g << bits));
  }
  if (bits + split == 8 || bits + split == 16) codes.sub_(1 << (bits + split - 1));
  const at::ScalarType type = bits + split <= 8 ? at::kChar : at::kShort;
  return {table, at::empty(sorted.sizes(), type).scatter_(0, order, codes.to(type))};
}

at::Tensor decode_by_sorting(const Sorted& sent, int bits, int split, at::IntArrayRef sizes) {
  const auto [sorted, order] = sent.codes.sort();
  at::Tensor values = sorted.to(at::kFloat);
  if (bits + split == 8 || bits + split == 16) values.add_(1 << (bits + split - 1));
  const std::vector<at::Tensor> parts = at::tensor_split(values, std::int64_t{1} << split);
  for (std::size_t g = 0; g < parts.size(); ++g) {
    const auto row = static_cast<std::int64_t>(g);
    parts[g].sub_(static_cast<double>(g << bits)).mul_(sent.table[row][1]).add_(sent.table[row][0]);
  }
  return at::empty_like(values).scatter_(0, order, values).view(sizes);
}

// ---- measuring ----

double fastest(const std::function<void()>& work, int rounds) {
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < rounds; ++round) {
    const double before = processor_seconds();
    work();
    best = std::min(best, processor_seconds() - before);
  }
  return best;
}

struct Times {
  double copy, encode, decode;
  double error;  ///< √(Σ(x′ − x)² / Σx²)
  double bits;   ///< a value, on the wire
};

/// In turns, so that what disturbs one disturbs the others.
Times times_of(const Codec& codec, const std::string& name, const at::Tensor& x) {
  const auto sender = codec.coder(), receiver = codec.coder();
  const at::Tensor there = at::empty_like(x);
  Times best{1e9, 1e9, 1e9, 0, 0};
  Encoded sent;
  at::Tensor arrived;
  const auto take = [](double& time, const std::function<void()>& work) {
    time = std::min(time, fastest(work, 1));
  };
  for (int round = 0; round < kRounds; ++round) {
    take(best.copy, [&] { there.copy_(x); });
    sent = {};
    take(best.encode, [&] { sent = encode(*sender, name, x, {}); });
    arrived.reset();
    take(best.decode, [&] { arrived = decode(*receiver, name, sent, {}); });
  }
  best.error = ((arrived - x).norm() / x.norm()).item<double>();
  best.bits = 8.0 * static_cast<double>(sent.bytes.numel()) / static_cast<double>(x.numel());
  return best;
}

void report(benchmark::State& state, const Times& times) {
  state.counters["encode_ms"] = 1e3 * times.encode;
  state.counters["decode_ms"] = 1e3 * times.decode;
  state.counters["copy_ms"] = 1e3 * times.copy;
  state.counters["encode/copy"] = times.encode / times.copy;
  state.counters["decode/copy"] = times.decode / times.copy;
  state.counters["error"] = times.error;
  state.counters["bits"] = times.bits;
}

void any_codec(benchmark::State& state, const std::string& name, const std::string& options,
               bool rectified) {
  const at::Tensor x = values(rectified);
  const auto made = codec(name, options);
  for (auto _ : state) report(state, times_of(*made, name, x));
}

void sort_quantization(benchmark::State& state, int bits, int split, bool rectified) {
  const at::Tensor x = values(rectified);
  const auto made = codec("sort_quantization", concat("{bits: ", bits, ", split: ", split, "}"));
  for (auto _ : state) {
    const Times times = times_of(*made, "sort_quantization", x);
    Sorted sent;
    const double encode =
        fastest([&] { sent = encode_by_sorting(x, bits, split); }, kSortingRounds);
    const double decode =
        fastest([&] { decode_by_sorting(sent, bits, split, x.sizes()); }, kSortingRounds);
    report(state, times);
    state.counters["sorting/encode"] = encode / times.encode;
    state.counters["sorting/decode"] = decode / times.decode;
  }
}

void add(const std::string& name, const std::string& options, bool rectified) {
  benchmark::RegisterBenchmark(
      concat(name, options, rectified ? " rectified" : "").c_str(),
      [=](benchmark::State& state) { any_codec(state, name, options, rectified); })
      ->Iterations(1)
      ->Unit(benchmark::kMillisecond);
}

}  // namespace
}  // namespace pipewright::bench

int main(int count, char** arguments) {
  using namespace pipewright::bench;
  pipewright::keep_freed_memory();
  at::set_num_threads(1);
  for (const bool rectified : {false, true}) {
    for (const auto& [bits, split] : {std::pair{6, 2}, {3, 1}, {9, 3}, {12, 4}})
      benchmark::RegisterBenchmark(
          pipewright::concat("sort_quantization ", bits, ",", split, rectified ? " rectified" : "")
              .c_str(),
          [=, bits = bits, split = split](benchmark::State& state) {
            sort_quantization(state, bits, split, rectified);
          })
          ->Iterations(1)
          ->Unit(benchmark::kMillisecond);
    add("sort_quantization", "{thresholds: sampled}", rectified);
    add("sort_quantization", "{wire: container}", rectified);
  }
  for (const bool rectified : {false, true})
    for (const auto& [name, options] : kRivals) add(name, options, rectified);
  benchmark::Initialize(&count, arguments);
  benchmark::RunSpecifiedBenchmarks();
}
