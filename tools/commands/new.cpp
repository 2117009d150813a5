// SPDX-License-Identifier: Apache-2.0
// `pipewright new`: writes a folder with a scheme, model or data set of somebody's own, to be
// compiled as a plugin.
#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <string>

#include "core/base/error.h"
#include "core/base/version.h"
#include "core/base/wording.h"
#include "core/experiment/plugin_kinds.h"
#include "core/system/file.h"
#include "core/system/terminal.h"
#include "tools/command.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestName = 64;
constexpr std::array<std::string_view, 6> kTargetsOfCmake{"all",  "clean",   "help",
                                                          "test", "install", "package"};

/// The sources of a kind. In them NAME is the part's name, Type its class.
struct Template {
  const char* kind;
  const char* target;   ///< what it is linked with
  const char* options;  ///< in the experiment file, after the part's name
  const char* others;   ///< other sections of the experiment file
  const char* source;
};

constexpr const char* kScheme =
    R"(// Asynchronous 1F1B: the forward predicts `part` of the way to the weights that its gradient will be
// applied to, and the backward reads the same weights. part: 0 is PipeDream, part: 1 predicts as far
// as SpecTrain.
#include "core/config/options.h"
#include "core/schedule/builders.h"

namespace pipewright {
namespace {

class Type final : public Scheme {
 public:
  explicit Type(Options& options)
      : part_(options.number("part", 0.5, "Part of the staleness to predict.", kFraction)) {}

  Schedule schedule(const PipelineShape& shape) const override {
    const WeightRule forward = [&](const PassPlace& pass) {
      return Weights::latest(static_cast<int>(part_ * pass.distance(true)));
    };
    return pipeline_schedule(shape, {.flush = false}, forward, forward_weights);
  }

 private:
  double part_;
};

PIPEWRIGHT_SCHEME(NAME, Type, "Predicts a part of the staleness.")

}  // namespace
}  // namespace pipewright
)";

constexpr const char* kModel =
    R"(// A perceptron with a layer of its own. Layers declare their parameters and hold no tensor; the
// pipeline may be cut between any two of those that layers() returns.
#include <ATen/ATen.h>

#include <cmath>

#include "core/nn/layers.h"
#include "core/nn/model.h"

namespace pipewright {
namespace {

/// y = x · σ(x Wᵀ + b), [batch, width] to [batch, width].
class Gate final : public Layer {
 public:
  explicit Gate(std::int64_t width) : width_(width) {}

  std::vector<ParameterSpec> parameters() const override {
    const double bound = 1 / std::sqrt(static_cast<double>(width_));
    return {{"weight", {width_, width_}, {Initializer::Kind::Uniform, bound}}, {"bias", {width_}, {}}};
  }

  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor> parameters,
                     std::span<at::Tensor> /*buffers*/, const Pass& /*pass*/) const override {
    return input * at::sigmoid(at::linear(input, parameters[0], parameters[1]));
  }

 private:
  std::int64_t width_;
};

class Type final : public Model {
 public:
  explicit Type(Options& options)
      : inputs_(options.integer("inputs", 64, "Numbers of a sample.", kPositive)),
        width_(options.integer("width", 48, "Width of the layers between.", kPositive)),
        depth_(options.integer("depth", 3, "Number of gates.", {1, 1000})),
        classes_(options.integer("classes", 10, "Number of classes.", kPositive)) {}

  std::vector<LayerPtr> layers() const override {
    std::vector<LayerPtr> all{linear(inputs_, width_, {.flatten = true})};
    for (std::int64_t i = 0; i < depth_; ++i) all.push_back(std::make_shared<Gate>(width_));
    all.push_back(linear(width_, classes_));
    for (std::size_t i = 0; i < all.size(); ++i) all[i]->set_name(std::to_string(i));
    return all;
  }

  std::vector<std::int64_t> input_shape() const override { return {inputs_}; }
  bool flattens() const override { return true; }
  std::int64_t classes() const override { return classes_; }
  LayerPtr head(std::size_t /*last_layer*/) const override { return linear(width_, classes_); }

 private:
  std::int64_t inputs_, width_, depth_, classes_;
};

PIPEWRIGHT_MODEL(NAME, Type, "A perceptron whose layers gate their inputs.")

}  // namespace
}  // namespace pipewright
)";

constexpr const char* kDataset =
    R"(// Points in a cube. Their class is the number of their positive coordinates, which makes the sample
// with index i the same in every run. A data set that reads files does so in open().
#include <ATen/ATen.h>

#include "core/nn/dataset.h"

namespace pipewright {
namespace {

class Type final : public Dataset {
 public:
  explicit Type(Options& options)
      : inputs_(options.integer("inputs", 9, "Coordinates of a point.", {1, 1000})),
        train_(options.integer("train", 1024, "Samples to train on.", kPositive)),
        test_(options.integer("test", 256, "Samples to test with.", kPositive)) {}

  void open(const DatasetRequest& /*request*/) override {}
  std::int64_t size(Split split) const override { return split == Split::Train ? train_ : test_; }
  std::vector<std::int64_t> sample_shape() const override { return {inputs_}; }
  std::int64_t classes() const override { return inputs_ + 1; }

  Batch batch(Split split, std::span<const std::int64_t> indices,
              const RandomStream* /*augmentation*/) const override {
    const auto n = static_cast<std::int64_t>(indices.size());
    const RandomStream stream(7, split == Split::Train ? "NAME train" : "NAME test");
    at::Tensor x = at::empty({n, inputs_}, at::kFloat);
    auto* value = x.mutable_data_ptr<float>();
    for (const std::int64_t index : indices)
      for (std::int64_t i = 0; i < inputs_; ++i)
        *value++ = static_cast<float>(
            2 * stream.uniform(static_cast<std::uint64_t>(index * inputs_ + i)) - 1);
    return {{x}, x.gt(0).sum(1)};
  }

 private:
  std::int64_t inputs_, train_, test_;
};

PIPEWRIGHT_DATASET(NAME, Type, "Points in a cube, classified by their positive coordinates.")

}  // namespace
}  // namespace pipewright
)";

constexpr const char* kCmake = R"(cmake_minimum_required(VERSION 3.25)
project(NAME LANGUAGES CXX)
find_package(Pipewright MINOR REQUIRED)
add_library(NAME MODULE NAME.cpp)
target_link_libraries(NAME PRIVATE Pipewright::TARGET)
set_target_properties(NAME PROPERTIES PREFIX "")
)";

constexpr std::array kTemplates{
    Template{"scheme", "pipewright", ", part: 0.7", "dataset: {name: digits}\nmodel: {name: mlp}\n",
             kScheme},
    Template{"model", "laboratory", ", width: 32",
             "dataset: {name: digits}\nscheme: {name: pipedream}\n", kModel},
    Template{"dataset", "laboratory", "",
             "model: {name: mlp, widths: [9, 32, 32, 32, 10]}\nscheme: {name: pipedream}\n",
             kDataset}};

const Template& template_of(const std::string& kind) {
  std::vector<std::string> kinds;
  for (const Template& each : kTemplates) {
    if (kind == each.kind) return each;
    kinds.emplace_back(each.kind);
  }
  throw Error(ErrorKind::Experiment,
              concat("'", kind, "' cannot be begun; expected one of ", join(kinds, ", "),
                     " (the folder examples/own-parts has a part of each kind: ",
                     plugin_kind_names(), ")", did_you_mean(kind, kinds)));
}

/// Throws Error{Experiment} unless a class, a file and a part may have that name.
void check_name(const std::string& name, const Template& of) {
  const auto fits = [](unsigned char c) { return std::islower(c) || std::isdigit(c) || c == '_'; };
  if (name.empty() || name.size() > kLongestName ||
      !std::islower(static_cast<unsigned char>(name[0])) || !std::ranges::all_of(name, fits))
    throw Error(ErrorKind::Experiment,
                concat("'", name, "' cannot be the name of a part; expected at most ", kLongestName,
                       " small letters, digits and underscores, a letter first"));
  if (std::ranges::count(kTargetsOfCmake, name) > 0)
    throw Error(ErrorKind::Experiment,
                concat("CMake has a target '", name, "' of its own; choose another name"));
  if (find_plugin_kind(of.kind)->knows(name))
    throw Error(ErrorKind::Experiment,
                concat("there is a ", of.kind, " '", name, "' already; choose another name"));
}

/// "HalfWayScheme" of the scheme "half_way"
std::string class_name(const std::string& name, const std::string& kind) {
  std::string type;
  for (const std::string& word : split(concat(name, "_", kind), '_'))
    if (!word.empty()) type += concat(static_cast<char>(std::toupper(word[0])), word.substr(1));
  return type;
}

std::string filled(std::string text, const std::string& word, const std::string& value) {
  for (std::size_t at = text.find(word); at != std::string::npos;
       at = text.find(word, at + value.size()))
    text.replace(at, word.size(), value);
  return text;
}

std::string experiment_of(const Template& of, const std::string& name) {
  return concat("name: ", name, "\n", of.kind, ": {name: ", name, of.options, "}\n", of.others,
                "pipeline: {stages: 4}\noptimizer: {name: sgd, lr: 0.05, momentum: 0.9}\n"
                "train: {epochs: 3}\n");
}

/// Where this program is installed, as a word of a shell; if it is not, where the manual installs
/// it.
std::string prefix_word() {
  std::error_code failed;
  const fs::path prefix = fs::read_symlink("/proc/self/exe", failed).parent_path().parent_path();
  return fs::exists(prefix / "lib/cmake/Pipewright", failed) ? shell_quoted(prefix.string())
                                                             : std::string("$HOME/pipewright");
}

int begin(const std::vector<std::string>& arguments) {
  CommandLine line(
      kNew,
      "Writes a folder NAME with a part of your own to begin with: its C++ source, the "
      "file that CMake needs, and an experiment that uses it. What it prints compiles "
      "and trains it.");
  line.positional("KIND", "scheme, model or dataset", 1, 1);
  line.positional("NAME", "the part's name, such as half_way", 1, 1);
  if (!line.parse(arguments)) return 0;
  const Template& of = template_of(line.text("KIND"));
  const std::string name = line.text("NAME");
  check_name(name, of);
  const fs::path folder = name;
  std::error_code failed;
  if (!fs::create_directory(folder, failed))
    throw Error(ErrorKind::Experiment,
                failed ? concat("cannot make the folder '", name, "': ", failed.message())
                       : concat("'", name, "' exists already; choose another name or folder"));
  const std::vector<std::string> version = split(PIPEWRIGHT_VERSION, '.');
  std::string cmake = filled(filled(kCmake, "NAME", name), "TARGET", of.target);
  cmake = filled(cmake, "MINOR", concat(version[0], ".", version[1]));
  try {
    write_file(folder / "CMakeLists.txt", cmake);
    write_file(folder / concat(name, ".cpp"),
               filled(filled(of.source, "NAME", name), "Type", class_name(name, of.kind)));
    write_file(folder / "experiment.yaml", experiment_of(of, name));
  } catch (const Error&) {
    fs::remove_all(folder, failed);  // which this command has made
    throw;
  }
  const std::string plugin = concat(name, "/build/", name, ".so");
  print("Made %s/ with %s.cpp, CMakeLists.txt and experiment.yaml.\n", name.c_str(), name.c_str());
  print("Compile it, against an installed Pipewright, and train:\n\n");
  print("  cmake -S %s -B %s/build -DCMAKE_PREFIX_PATH=%s\n", name.c_str(), name.c_str(),
        prefix_word().c_str());
  print("  cmake --build %s/build\n", name.c_str());
  print("  pipewright run %s/experiment.yaml --plugin %s\n", name.c_str(), plugin.c_str());
  return 0;
}

}  // namespace

const Command kNew{"new", "new KIND NAME",
                   "begins a scheme, model or data set of your own, as a plugin", begin};

}  // namespace pipewright
