// SPDX-License-Identifier: Apache-2.0
// What Pipewright costs on a GPU.
//
//   device_bench steps [--model vgg16_bn|resnet50|gpt] [--precision P] [--scheme S…]
//   device_bench codecs
//   device_bench memory [--model M] [--precision P]
//
// Options of all: --device cuda (default) or cpu; --small for sizes that a CPU manages; --rounds 5,
// taken in turns after one that warms up; --numerics repeatable or fast. Each line is a case in
// JSON. The program ends with 1 if a case has failed.
#include <ATen/Parallel.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <chrono>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/base/error.h"
#include "core/base/median.h"
#include "core/base/text.h"
#include "core/experiment/reading.h"
#include "core/nn/numerics.h"
#include "core/runtime/devices/allocation.h"
#include "core/runtime/devices/device.h"
#include "core/runtime/devices/device_stream.h"
#include "core/system/terminal.h"
#include "core/tensors/torch.h"
#include "tests/bench/device_bench.h"

namespace pipewright::bench {

std::vector<DeviceModel> device_models(const DeviceBench& bench) {
  const std::vector<DeviceModel> large{{"vgg16_bn", "{name: vgg16, batch_norm: true}", 128, 20},
                                       {"resnet50", "{name: resnet50, size: 224}", 64, 8},
                                       {"gpt", "{name: gpt, dropout: 0}", 4, 5}};
  const std::vector<DeviceModel> small{
      {"vgg16_bn", "{name: vgg16, batch_norm: true}", 4, 1},
      {"resnet50", "{name: resnet50, size: 64}", 2, 1},
      {"gpt",
       "{name: gpt, dropout: 0, vocabulary: 1000, tokens: 32, width: 64, heads: 4, layers: 3}", 2,
       2}};
  std::vector<DeviceModel> chosen;
  for (const DeviceModel& model : bench.small ? small : large)
    if (bench.model.empty() || bench.model == model.name) chosen.push_back(model);
  return chosen;
}

std::vector<std::string> device_precisions(const DeviceBench& bench) {
  if (!bench.precision.empty()) return {bench.precision};
  return {"float32", "bfloat16"};
}

Experiment device_experiment(const DeviceBench& bench, const DeviceModel& model,
                             const std::string& scheme, const std::string& precision) {
  Experiment e = read_experiment(
      parse_yaml(concat("{dataset: {name: synthetic}, model: ", model.yaml, ", scheme: ", scheme,
                        ", pipeline: {stages: 4}, loader: {batch_size: ", model.batch,
                        "}, train: {precision: ", precision, ", numerics: ", bench.numerics,
                        "}, optimizer: {name: sgd, lr: 0.001, momentum: 0.9}}"),
                 "device_bench"));
  compute_with(numerics_of(e.resolved), !bench.device.is_cpu());
  return e;
}

double seconds(at::Device device, const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  if (!device.is_cpu()) current_stream(device).synchronize();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::string json_text(const std::string& text) {
  return nlohmann::json(text).dump();
}

std::string json_numbers(const std::vector<double>& numbers) {
  return nlohmann::json(numbers).dump();
}

namespace {
bool all_measured = true;  // no case has failed yet
}

std::string json_ratios(const std::vector<double>& above, const std::vector<double>& below) {
  std::vector<double> ratios;
  for (std::size_t round = 0; round < above.size(); ++round)
    ratios.push_back(above[round] / below[round]);
  std::sort(ratios.begin(), ratios.end());
  return nlohmann::json{
      {"median", median(ratios)}, {"low", ratios.front()}, {"high", ratios.back()}}
      .dump();
}

void report(const std::string& kind, std::vector<std::pair<std::string, std::string>> fields,
            const std::function<std::vector<std::pair<std::string, std::string>>()>& measured) {
  const auto failed = [&](const std::exception& error) {
    fields.emplace_back("error", json_text(split(error.what(), '\n').front()));
    all_measured = false;
  };
  try {
    for (auto& field : measured()) fields.push_back(std::move(field));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Interrupted) throw;
    failed(error);
  } catch (const std::exception& error) {  // LibTorch's too: the next case may still be measured
    failed(error);
  }
  std::string line = concat("{\"kind\": ", json_text(kind));
  for (const auto& [name, value] : fields) line += concat(", ", json_text(name), ": ", value);
  print("%s}\n", line.c_str());
  std::fflush(stdout);
}

namespace {

namespace po = boost::program_options;

/// The options; "" of `part` if there is nothing to do but what was printed.
std::pair<std::string, DeviceBench> parse(int count, char** values) {
  DeviceBench bench;
  std::string part, device;
  po::options_description known("device_bench steps|codecs|memory [options]");
  known.add_options()("help", "says this")("part", po::value(&part)->default_value("steps"),
                                           "steps, codecs or memory")(
      "device", po::value(&device)->default_value("cuda"), "cuda, cuda:N or cpu")(
      "small", po::bool_switch(&bench.small), "sizes that a CPU manages in seconds")(
      "rounds", po::value(&bench.rounds)->default_value(5), "rounds after the one that warms up")(
      "model", po::value(&bench.model), "only this model")("precision", po::value(&bench.precision),
                                                           "only this precision")(
      "scheme", po::value(&bench.schemes)->multitoken(), "only these schemes")(
      "numerics", po::value(&bench.numerics)->default_value("repeatable"), "train.numerics")(
      "paced", po::bool_switch(&bench.paced), "a line of input begins each round");
  po::positional_options_description places;
  places.add("part", 1);
  po::variables_map given;
  po::store(po::command_line_parser(count, values).options(known).positional(places).run(), given);
  po::notify(given);
  if (given.contains("help")) {
    std::ostringstream text;
    text << known;
    print("%s", text.str().c_str());
    return {};
  }
  bench.device = resolve_devices({device}, "--device").front();
  return {part, bench};
}

int run(int count, char** values) {
  const auto [part, bench] = parse(count, values);
  if (part == "steps")
    measure_steps(bench);
  else if (part == "codecs")
    measure_codecs(bench);
  else if (part == "memory")
    measure_memory(bench);
  else if (!part.empty())
    throw Error(ErrorKind::Experiment, concat("'", part, "' is none of steps, codecs, memory"));
  return all_measured ? 0 : 1;
}

}  // namespace
}  // namespace pipewright::bench

int main(int count, char** values) {
  pipewright::keep_freed_memory();
  at::set_num_threads(1);
  try {
    return pipewright::bench::run(count, values);
  } catch (const std::exception& failure) {
    pipewright::print_error("device_bench: %s\n", failure.what());
    return 1;
  }
}
