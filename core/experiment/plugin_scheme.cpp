// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/plugin_scheme.h"

#include <memory>
#include <new>
#include <string_view>
#include <utility>

#include "core/base/error.h"

namespace pipewright {
namespace {

/// How messages on our own bugs begin.
constexpr std::string_view kOurs = "this is a bug in Pipewright: ";

/// Where an exception comes from.
struct Origin {
  std::string name;
  std::filesystem::path file;

  [[noreturn]] void blame(const std::string& what) const {
    throw Error(ErrorKind::Schedule,
                concat("the scheme '", name, "' of the plugin ", shell_quoted(file.string()),
                       " threw an exception: ", what));
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

}  // namespace

Registry<Scheme>::Make of_plugin(Registry<Scheme>::Make make, std::string name,
                                 std::filesystem::path file) {
  const Origin origin{std::move(name), std::move(file)};
  return [make = std::move(make), origin](Options& options) -> std::unique_ptr<Scheme> {
    auto scheme = origin.guard([&] { return make(options); });
    return std::make_unique<PluginScheme>(std::move(scheme), origin);
  };
}

}  // namespace pipewright
