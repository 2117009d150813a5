// SPDX-License-Identifier: Apache-2.0
#include "core/cost/profile.h"

#include <set>

#include "core/config/file_kind.h"
#include "core/config/options.h"

namespace pipewright {
namespace {

constexpr const char* kFormat = "pipewright_profile";
constexpr int kVersion = 1;
constexpr const char* kContiguous = "contiguous";  // in profiles that name no memory format
constexpr double kMost = 9e15;                     // a double holds every integer up to here

/// Calls `visit` with the name and value of each field. Reading and writing both use it, so that
/// they agree on the names.
template <class Visitor, class Cost>
void visit_layer(Visitor& visit, Cost& cost) {
  visit("name", cost.name);
  visit("forward", cost.forward);
  visit("backward", cost.backward);
  visit("backward_input", cost.backward_input);
  visit("backward_weight", cost.backward_weight);
  visit("update", cost.update);
  visit.if_any("new_version", cost.new_version);
  visit.if_any("prediction", cost.prediction);
  visit.if_any("fused_prediction", cost.fused_prediction);
  visit.if_any("head", cost.head);
  visit.if_any("head_update", cost.head_update);
  visit.if_any("head_peak", cost.head_peak);
  visit.if_any("head_peak_adding", cost.head_peak_adding);
  visit("flops", cost.flops);
  visit.if_any("kernels", cost.kernels);
  visit.if_any("update_flops", cost.update_flops);
  visit.if_any("update_kernels", cost.update_kernels);
  visit("output_bytes", cost.output_bytes);
  visit("activation_bytes", cost.activation_bytes);
  visit.if_any("half_bytes", cost.half_bytes);
  visit("peak_bytes", cost.peak_bytes);
  visit("peak_adding_bytes", cost.peak_adding_bytes);
  visit("parameters", cost.parameters);
  visit("parameter_bytes", cost.parameter_bytes);
  visit("buffer_bytes", cost.buffer_bytes);
  visit.if_any("copy_bytes", cost.copy_bytes);
  visit.if_any("borrowed_bytes", cost.borrowed_bytes);
}

template <class Visitor, class Of>
void visit_profile(Visitor& visit, Of& profile) {
  visit("model", profile.model);
  visit("digest", profile.digest);
  visit("device", profile.device);
  visit("precision", profile.precision);
  visit("samples", profile.samples);
  visit("threads", profile.threads);
  visit("timed", profile.timed);
  visit("input_bytes", profile.input_bytes);
}

class Writer {
 public:
  template <class T>
  void operator()(const char* name, const T& value) {
    value_.at_or_add(name) = Value::of(value);
  }
  template <class Number>
  void if_any(const char* name, Number value) {
    if (value != 0) (*this)(name, value);
  }
  Value& value() { return value_; }

 private:
  Value value_ = Value::mapping();
};

/// Reads fields, each of which must be there.
class Reader {
 public:
  explicit Reader(Options& options) : options_(options) {}

  void operator()(const char* name, std::string& value) {
    value = options_.required_text(name, "");
  }
  void operator()(const char* name, double& value) {
    require(name);
    value = options_.number(name, 0, "", kNotNegative);
  }
  void operator()(const char* name, std::int64_t& value) {
    require(name);
    value = options_.integer(name, 0, "", {0, kMost});
  }
  void if_any(const char* name, double& value) {
    value = options_.number(name, 0, "", kNotNegative);
  }
  void if_any(const char* name, std::int64_t& value) {
    value = options_.integer(name, 0, "", {0, kMost});
  }
  void operator()(const char* name, int& value) {
    require(name);
    value = static_cast<int>(options_.integer(name, 1, "", {1, 1 << 20}));
  }
  void operator()(const char* name, bool& value) {
    require(name);
    value = options_.flag(name, false, "");
  }

 private:
  void require(const char* name) {
    if (!options_.given(name)) options_.problem(name, "is missing");
  }

  Options& options_;
};

std::vector<LayerCost> read_layers(const Value& list, Problems& problems) {
  std::vector<LayerCost> layers;
  std::set<std::string> names;
  for (const Value& item : list.items) {
    Options options(&item, concat("layers[", layers.size(), "]"), problems);
    Reader reader(options);
    LayerCost& cost = layers.emplace_back();
    visit_layer(reader, cost);
    options.finish();
    if (!names.insert(cost.name).second)
      options.problem("name", concat("is '", cost.name,
                                     "', as of a layer before it; expected names that differ"));
  }
  return layers;
}

}  // namespace

Value profile_value(const Profile& profile) {
  Writer writer;
  writer(kFormat, kVersion);
  visit_profile(writer, profile);
  if (profile.memory_format != kContiguous) writer("memory_format", profile.memory_format);
  if (!profile.device_model.empty()) writer("device_model", profile.device_model);
  if (!profile.machine.empty()) writer("machine", profile.machine);
  if (!profile.measured.empty()) writer("measured", profile.measured);
  Value layers = Value::sequence();
  for (const LayerCost& cost : profile.layers) {
    Writer layer;
    visit_layer(layer, cost);
    layers.items.push_back(std::move(layer.value()));
  }
  writer.value().at_or_add("layers") = std::move(layers);
  return std::move(writer.value());
}

Profile read_profile(const Value& document) {
  Problems problems;
  Options options(&document, "", problems);
  if (const std::int64_t format = options.integer(kFormat, 0, ""); format != kVersion) {
    options.problem(kFormat, options.given(kFormat)
                                 ? concat("is ", format,
                                          ", a format that this Pipewright does not "
                                          "read; expected ",
                                          kVersion, ": measure again with `pipewright profile`")
                                 : concat("is missing, so this is no profile; expected a file that "
                                          "`pipewright profile` has written"));
    problems.throw_if_any();  // the fields of another format would all be reported, too
  }
  Profile profile;
  Reader reader(options);
  visit_profile(reader, profile);
  profile.memory_format = options.text("memory_format", kContiguous, "");
  profile.device_model = options.text("device_model", "", "");
  profile.machine = options.text("machine", "", "");
  profile.measured = options.text("measured", "", "");
  const Value layers = options.any("layers", Value::sequence(), "");
  if (!layers.is(Value::Kind::Sequence) || layers.items.empty())
    options.problem(
        "layers", concat("is ",
                         layers.items.empty() && layers.is(Value::Kind::Sequence) ? "an empty list"
                                                                                  : layers.shown(),
                         "; expected a list with a mapping for each layer"));
  else
    profile.layers = read_layers(layers, problems);
  options.finish();
  problems.throw_if_any();
  return profile;
}

Profile load_profile(const std::filesystem::path& file) {
  return read_profile(load_file_of({.name = "profile", .keys = {kFormat}}, file));
}

}  // namespace pipewright
