// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/plugin_kinds.h"

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <utility>

#include "core/base/error.h"
#include "core/base/printable.h"
#include "core/base/text.h"
#include "core/codecs/codec.h"
#include "core/nn/dataset.h"
#include "core/nn/layer_kind.h"
#include "core/nn/loss.h"
#include "core/nn/metric.h"
#include "core/nn/model.h"
#include "core/optim/gradient_rules/gradient_rule.h"
#include "core/optim/optimizer.h"
#include "core/probes/probe.h"
#include "core/schedule/schedule.h"

namespace pipewright {
namespace {

/// How messages on our own bugs begin.
constexpr std::string_view kOurs = "this is a bug in Pipewright: ";

/// The origin of an exception.
struct Origin {
  std::string_view kind;
  std::string name;
  std::filesystem::path file;

  [[noreturn]] void blame(const std::string& what) const {
    throw Error(ErrorKind::Schedule,
                printable(concat("the ", kind, " '", name, "' of the plugin ",
                                 shell_quoted(file.string()), " threw an exception: ", what)));
  }

  template <class Call>
  auto guard(const Call& call) const {
    try {
      return call();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::Bug) throw;
      const std::string& said = error.message();  // of a condition that it has broken
      blame(said.starts_with(kOurs) ? said.substr(kOurs.size()) : said);
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {
      blame(error.what());
    } catch (...) {
      blame("one of no known type");
    }
  }
};

/// Calls the plugin's scheme. It overrides all virtual functions of Scheme.
class PluginScheme final : public Scheme {
 public:
  PluginScheme(std::unique_ptr<Scheme> scheme, Origin origin)
      : scheme_(std::move(scheme)), origin_(std::move(origin)) {}

  Schedule schedule(const PipelineShape& shape) const override {
    return origin_.guard([&] { return scheme_->schedule(shape); });
  }
  std::vector<int> placement(int stages) const override {
    return origin_.guard([&] { return scheme_->placement(stages); });
  }
  std::vector<std::vector<int>> replica_placement(int stages, int replicas) const override {
    return origin_.guard([&] { return scheme_->replica_placement(stages, replicas); });
  }
  std::vector<int> auxiliary_sites(int stages) const override {
    return origin_.guard([&] { return scheme_->auxiliary_sites(stages); });
  }
  bool repeats() const override {
    return origin_.guard([&] { return scheme_->repeats(); });
  }
  std::string remark() const override {
    return origin_.guard([&] { return scheme_->remark(); });
  }

 private:
  std::unique_ptr<Scheme> scheme_;
  Origin origin_;
};

/// Calls of a part of which only the constructor is guarded.
template <class Part>
std::unique_ptr<Part> guarded(std::unique_ptr<Part> part, const Origin& /*origin*/) {
  return part;
}
std::unique_ptr<Scheme> guarded(std::unique_ptr<Scheme> scheme, const Origin& origin) {
  return std::make_unique<PluginScheme>(std::move(scheme), origin);
}

/// Makes a part; its errors without a place get the one of its section.
template <class Make>
auto placed(const Options& options, const Make& make) {
  try {
    return make();
  } catch (const Error& error) {
    if (!error.where().empty()) throw;
    throw Error(error.kind(), printable(error.message()), options.where("").text());
  }
}

template <class Part>
void guard(const PluginKind& kind, const std::string& name, const std::filesystem::path& file) {
  using Entry = typename Registry<Part>::Entry;
  // The registry's entries are not const; it only finds them as such.
  auto* const entry = const_cast<Entry*>(Registry<Part>::instance().find(name));
  entry->make = [make = entry->make, origin = Origin{kind.name, name, file}](Options& options) {
    return placed(options,
                  [&] { return guarded(origin.guard([&] { return make(options); }), origin); });
  };
}

template <class Part>
bool knows(const std::string& name) {
  return Registry<Part>::instance().find(name) != nullptr;
}

template <class Part>
constexpr PluginKind kind_of(std::string_view name) {
  return {name, knows<Part>, guard<Part>};
}

constexpr std::array kKinds{
    kind_of<Scheme>("scheme"),       kind_of<Model>("model"),
    kind_of<LayerKind>("layer"),     kind_of<Dataset>("dataset"),
    kind_of<Optimizer>("optimizer"), kind_of<Loss>("loss"),
    kind_of<Metric>("metric"),       kind_of<Codec>("codec"),
    kind_of<Probe>("probe"),         kind_of<GradientRule>("gradient_rule")};

}  // namespace

const PluginKind* find_plugin_kind(std::string_view name) {
  const auto* const found = std::ranges::find(kKinds, name, &PluginKind::name);
  return found == kKinds.end() ? nullptr : found;
}

std::string plugin_kind_names() {
  std::vector<std::string> names;
  for (const PluginKind& kind : kKinds) names.emplace_back(kind.name);
  return join(names, ", ");
}

}  // namespace pipewright
