// What codecs cost: encoding and decoding one tensor, against copying it in the same process and on
// one thread. Rounds of all are taken in turn, in processor time; the minimum of each counts. Read
// `encode_ratio` and `decode_ratio`: against at::Tensor::clone, whose result is fresh memory as
// theirs is; `to_held_ratio` is encoding against a copy into memory that is held already.
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <ctime>
#include <limits>

#include "core/codecs/edge_coding.h"
#include "core/config/value.h"
#include "core/stage/torch.h"

namespace pipewright::bench {
namespace {

/// What crosses MobileNetV2's first cut in a micro-batch of 32 images, and a fiftieth of it for
/// codecs that sort or decompose.
const std::vector<std::int64_t> kLarge{32, 32, 112, 112}, kSmall{8, 32, 32, 32};

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

template <class Work>
double seconds_of(const Work& work) {
  const double before = processor_seconds();
  work();
  return processor_seconds() - before;
}

void run(benchmark::State& state, const std::string& name, const std::string& options,
         const std::vector<std::int64_t>& sizes) {
  Problems problems;
  const Value value = parse_yaml(options, "codec");
  Options read(&value, "codec", problems);
  const auto codec = Registry<Codec>::instance().find(name)->make(read);
  const auto sender = codec->coder(), receiver = codec->coder();
  const at::Tensor x = at::randn(sizes);
  double copy = std::numeric_limits<double>::infinity(), held_copy = copy, there = copy,
         back = copy;
  at::Tensor held = x.clone(), arrived;
  Encoded encoded;
  for (auto _ : state) {
    held_copy = std::min(held_copy, seconds_of([&] { held.copy_(x); }));
    copy = std::min(copy, seconds_of([&] { arrived = x.clone(); }));
    there = std::min(there, seconds_of([&] { encoded = encode(*sender, name, x, {}); }));
    back = std::min(back, seconds_of([&] { arrived = decode(*receiver, name, encoded, {}); }));
  }
  state.counters["copy_ms"] = 1e3 * copy;
  state.counters["to_held_ratio"] = there / held_copy;
  state.counters["encode_ratio"] = there / copy;
  state.counters["decode_ratio"] = back / copy;
  state.counters["bytes_ratio"] =
      static_cast<double>(encoded.bytes.numel()) / static_cast<double>(x.nbytes());
}

void add(const std::string& name, const std::string& options,
         const std::vector<std::int64_t>& sizes) {
  benchmark::RegisterBenchmark((name + options).c_str(),
                               [=](benchmark::State& state) { run(state, name, options, sizes); })
      ->Iterations(12)
      ->Unit(benchmark::kMillisecond);
}

}  // namespace
}  // namespace pipewright::bench

int main(int argc, char** argv) {
  using namespace pipewright::bench;
  at::set_num_threads(1);
  add("none", "{}", kLarge);
  for (const char* name : {"fp16", "bf16"}) add(name, "{}", kLarge);
  for (const char* options : {"{}", "{bits: 4}", "{bits: 6}", "{bits: 16}", "{per: channel}",
                              "{per: group}", "{symmetric: true}", "{rounding: stochastic}"})
    add("uniform", options, kLarge);
  add("fp8", "{}", kLarge);
  add("fp8", "{per: block}", kLarge);
  for (const char* element : {"fp8_e4m3", "fp6_e2m3", "fp4_e2m1"})
    add("mx", std::string("{element: ") + element + "}", kLarge);
  add("top_k", "{}", kLarge);
  add("top_k", "{fraction: 0.01}", kLarge);
  add("sign", "{}", kLarge);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
