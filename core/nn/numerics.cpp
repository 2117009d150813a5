// SPDX-License-Identifier: Apache-2.0
#include "core/nn/numerics.h"

#include <ATen/Context.h>
#include <torch/version.h>

#include <cstdlib>

#include "core/base/error.h"

namespace pipewright {
namespace {

constexpr const char* kName = "numerics";

Numerics numerics_in(const Value& given, Problems& problems) {
  if (given == Value::of("repeatable")) return {};
  if (given == Value::of("fast"))
    return {
        .rounds_products = true, .rounds_convolutions = true, .any_order = true, .tuning = true};
  if (!given.is(Value::Kind::Mapping)) {
    problems.add(given.place, concat("train.numerics is ", given.shown(),
                                     "; expected repeatable, fast, or a mapping such as {matmul: "
                                     "tf32, convolution: ieee, order: fixed, tuning: false}"));
    return {};
  }
  Options o(&given, concat("train.", kName), problems);
  const auto rounded = [&](const char* name, const char* help) {
    return o.choice(name, {"ieee", "tf32"}, "ieee", help) == "tf32";
  };
  const Numerics numerics{
      .rounds_products = rounded("matmul", "Factors of matrix products in float32."),
      .rounds_convolutions = rounded("convolution", "Factors of convolutions in float32."),
      .any_order = o.choice("order", {"fixed", "any"}, "fixed", "Order of sums on GPUs.") == "any",
      .tuning = o.flag("tuning", false, "Whether cuDNN measures which algorithm is the fastest.")};
  o.finish();
  return numerics;
}

#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR > 10
void round_in_onednn(at::Float32Op op, bool rounds) {
  at::globalContext().setFloat32Precision(
      at::Float32Backend::MKLDNN, op,
      rounds ? at::Float32Precision::BF16 : at::Float32Precision::IEEE);
}

void compute_on_cpu_with(const Numerics& numerics) {
  round_in_onednn(at::Float32Op::MATMUL, numerics.rounds_products);
  round_in_onednn(at::Float32Op::CONV, numerics.rounds_convolutions);
}

/// setAllowTF32CuDNN(false) leaves the precision open, which is IEEE's, and this says so.
void name_precision_of_cudnn(const Numerics& numerics) {
  for (const at::Float32Op op : {at::Float32Op::CONV, at::Float32Op::RNN})
    at::globalContext().setFloat32Precision(
        at::Float32Backend::CUDA, op,
        numerics.rounds_convolutions ? at::Float32Precision::TF32 : at::Float32Precision::IEEE);
}

std::string precision_of(bool on_gpu, bool products) {
  return at::precision2str(at::globalContext().float32Precision(
      on_gpu ? at::Float32Backend::CUDA : at::Float32Backend::MKLDNN,
      products ? at::Float32Op::MATMUL : at::Float32Op::CONV));
}
#else  // LibTorch has one switch for the products of both, and none for convolutions
void compute_on_cpu_with(const Numerics& numerics) {
  at::globalContext().setFloat32MatmulPrecision(numerics.rounds_products ? "medium" : "highest");
}

void name_precision_of_cudnn(const Numerics&) {}

std::string precision_of(bool on_gpu, bool products) {
  const at::Context& context = at::globalContext();
  if (on_gpu)
    return (products ? context.allowTF32CuBLAS() : context.allowTF32CuDNN()) ? "tf32" : "ieee";
  const bool rounds =
      products && context.float32MatmulPrecision() == at::Float32MatmulPrecision::MEDIUM;
  return rounds ? "bf16" : "ieee";
}
#endif

}  // namespace

Numerics read_numerics(Options& train) {
  const Value given = train.any(
      kName, Value::of("repeatable"),
      "How exactly kernels compute. repeatable: float32 is IEEE's, and equal inputs give equal "
      "bits. fast: factors of products and convolutions in float32 may be rounded (on GPUs to "
      "TF32's 11 bits, by oneDNN to bfloat16's 8), GPUs add in any order, and cuDNN takes the "
      "algorithms that it measures to be the fastest. Or a mapping of matmul "
      "and convolution (ieee, tf32), order (fixed, any) and tuning (false, true).");
  Problems problems;
  const Numerics numerics = numerics_in(given, problems);
  train.add(problems);
  return numerics;
}

Numerics numerics_of(const Value& resolved) {
  const Value* const given = resolved.find_path(concat("train.", kName));
  Problems known;
  return given == nullptr ? Numerics{} : numerics_in(*given, known);
}

void compute_with(const Numerics& numerics, bool on_gpu) {
  at::Context& context = at::globalContext();
  compute_on_cpu_with(numerics);
  if (!on_gpu) return;
  context.setAllowTF32CuDNN(numerics.rounds_convolutions);
  context.setAllowTF32CuBLAS(numerics.rounds_products);
  name_precision_of_cudnn(numerics);
  context.setBenchmarkCuDNN(numerics.tuning);
  context.setDeterministicCuDNN(!numerics.any_order);
  context.setDeterministicAlgorithms(!numerics.any_order, /*warn_only=*/false);
}

Value recorded_numerics(bool on_gpu) {
  const at::Context& context = at::globalContext();
  Value answer = Value::mapping();
  answer.at_or_add("matmul") = Value::of(precision_of(on_gpu, true));
  answer.at_or_add("convolution") = Value::of(precision_of(on_gpu, false));
  if (!on_gpu) return answer;
  answer.at_or_add("order") = Value::of(context.deterministicAlgorithms() ? "fixed" : "any");
  answer.at_or_add("tuning") = Value::of(context.benchmarkCuDNN());
  answer.at_or_add("cudnn") = Value::of(std::int64_t{at::Context::versionRuntimeCuDNN()});
  const char* const workspace = std::getenv("CUBLAS_WORKSPACE_CONFIG");
  answer.at_or_add("cublas_workspace_config") = Value::of(workspace == nullptr ? "" : workspace);
  return answer;
}

std::string numerics_remark(const Numerics& numerics, bool on_cpu, bool on_gpu) {
  std::vector<std::string> parts;
  if (on_cpu && (numerics.rounds_products || numerics.rounds_convolutions))
    parts.emplace_back("oneDNN may round the factors of products in float32 to bfloat16's 8 bits");
  if (on_gpu && (numerics.any_order || numerics.tuning))
    parts.emplace_back(
        "GPUs add in any order: executions, --resume and repetitions no longer give the same bits, "
        "so compare several seeds");
  return parts.empty() ? std::string() : concat("train.numerics: ", join(parts, "; "));
}

}  // namespace pipewright
