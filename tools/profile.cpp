// `pipewright profile`: what each layer of the model costs.
#include <unistd.h>

#include <cstdio>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/experiment/profiling.h"
#include "core/runtime/device.h"
#include "core/schedule/render_profile.h"
#include "tools/command.h"

namespace pipewright {
namespace {

at::Device device_named(const std::string& name) {
  if (name == "meta") return at::kMeta;
  const bool numbered = name.starts_with("cuda:") && name.size() > 5 && name.size() < 9 &&
                        name.find_first_not_of("0123456789", 5) == std::string::npos;
  if (name != "cpu" && name != "cuda" && !numbered)
    throw Error(ErrorKind::Experiment,
                concat("--device is '", name, "'; expected meta, cpu, cuda or cuda:<number>"));
  return resolve_devices({name}, "--device").front();
}

/// "layer 3 of 27, conv2_1", on one line that the next one replaces.
void show(std::size_t layer, const std::vector<LayerPtr>& layers) {
  std::fprintf(stderr, "\r\033[Klayer %zu of %zu, %s", layer + 1, layers.size(),
               layers[layer]->name().c_str());
  if (layer + 1 == layers.size()) std::fprintf(stderr, "\r\033[K");
}

int run(const std::vector<std::string>& arguments) {
  CommandLine line(
      kProfile,
      "Measures what each layer of the model costs, with the experiment's micro-batch size, "
      "precision, threads, loss and optimizer, on made-up samples: times are medians, memory is "
      "counted by LibTorch's allocator. On the device `meta` only bytes and operations are "
      "counted, "
      "without memory for them. Writes a profile that balance: time and memory and `pipewright "
      "simulate` read.");
  line.experiment(false);
  line.option("device", "NAME", "meta, cpu, cuda or cuda:<number>; default: the experiment's");
  line.option("out", "FILE", "where the profile goes", "profile.yaml");
  line.option("repetitions", "N", "of each layer; 0 = as many as --seconds allow, 3 to 50", "0");
  line.option("seconds", "S", "about so long for all layers", "20");
  if (!line.parse(arguments)) return 0;
  Problems faults;
  const Value document = line.experiment_arguments().document(faults);
  const Experiment experiment = read_experiment(document, faults);
  ProfileSettings settings{
      .device = device_named(line.given("device") ? line.text("device")
                                                  : experiment.pipeline.devices.front()),
      .repetitions = line.integer("repetitions"),
      .seconds = static_cast<double>(line.integer("seconds"))};
  if (settings.repetitions < 0 || settings.seconds < 0)
    throw Error(ErrorKind::Experiment, "--repetitions and --seconds are at least 0");
  if (::isatty(STDERR_FILENO) != 0)
    settings.on_layer = [&](std::size_t layer) { show(layer, experiment.layers); };
  const Profile profile = measure(experiment, settings);
  std::fputs(render_profile(profile).c_str(), stdout);
  write_file(line.text("out"), to_yaml(profile_value(profile)));
  std::printf("\nwrote %s\n", line.text("out").c_str());
  return 0;
}

}  // namespace

const Command kProfile{"profile", "profile FILE [--device D] [--out F] [--set key=value]…",
                       "measure what each layer costs", run};

}  // namespace pipewright
