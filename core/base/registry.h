// SPDX-License-Identifier: Apache-2.0
/// Named kinds of things — schemes, models, data sets, codecs, optimizers — that register
/// themselves from one file each. The registered name is the file's name and the word in YAML.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace pipewright {

class Options;

/// Constructors of `Product` by name. Filled before main (or while a plugin is loaded) by the
/// registration macros; read-only and safe to read from any thread afterwards.
template <class Product>
class Registry {
 public:
  using Make = std::function<std::unique_ptr<Product>(Options&)>;
  struct Entry {
    std::string summary;  ///< one line for `list`
    Make make;
  };

  static Registry& instance() {
    static Registry registry;
    return registry;
  }

  bool add(const std::string& name, std::string summary, Make make) {
    PIPEWRIGHT_CHECK(entries_.emplace(name, Entry{std::move(summary), std::move(make)}).second,
                     "two parts are named '", name, "'");
    return true;
  }

  const Entry* find(const std::string& name) const {
    const auto found = entries_.find(name);
    return found == entries_.end() ? nullptr : &found->second;
  }

  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& [name, entry] : entries_) all.push_back(name);
    return all;
  }

 private:
  std::map<std::string, Entry> entries_;
};

}  // namespace pipewright

#define PIPEWRIGHT_REGISTER(Product, name, Type, summary)                                  \
  [[maybe_unused]] static const bool registered_##name =                                   \
      ::pipewright::Registry<Product>::instance().add(                                     \
          #name, summary, [](::pipewright::Options& options) -> std::unique_ptr<Product> { \
            return std::make_unique<Type>(options);                                        \
          });
