// SPDX-License-Identifier: Apache-2.0
/// Names of a model's parameters and buffers in the files of other libraries, so that those files
/// load unchanged. The rules are data, registered per model in models/names/.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/config/value.h"

namespace pipewright {

/// Replaces every match of a regular expression (PCRE2, see pattern.h) in a name by `by`, in which
/// $1 is the first group.
struct Rewrite {
  std::string match, by;
};

struct ForeignNames {
  /// Rewrites from our full names to theirs, applied one after another.
  std::vector<Rewrite> names;
  /// Rewrites, applied one after another to their name, that each give an alternative name for
  /// files without it: for a prefix that not all files have, or a tensor that is stored once for
  /// two uses.
  std::vector<Rewrite> instead;
  /// Regular expressions over our names of matrices that are stored transposed in their files.
  std::vector<std::string> transposed;
  /// Regular expressions over whole names of theirs that are no part of the model.
  std::vector<std::string> ignored;
};

/// The place of one of our tensors in a file of theirs.
struct ForeignTensor {
  std::vector<std::string> names;  ///< the first that the file has applies; usually one
  bool transposed = false;
};

/// The rules in compiled form. Auxiliary heads ("heads.0.fc.weight") exist only in Pipewright, so
/// they have no foreign names.
class NameTranslation {
 public:
  explicit NameTranslation(const ForeignNames& rules);
  ~NameTranslation();
  ForeignTensor theirs(const std::string& our_name) const;  ///< no names: theirs has no such tensor
  bool ignores(const std::string& their_name) const;

 private:
  struct Compiled;
  std::unique_ptr<Compiled> rules_;
};

/// The rules of all models and formats. Filled before main, or while a plugin is loaded.
class ForeignNamesRegistry {
 public:
  /// Makes the rules for a model with `options`, in which all defaults are filled in. Throws
  /// Error{Experiment} if the library has no such model with those options.
  using Make = std::function<ForeignNames(const Value& options)>;

  static ForeignNamesRegistry& instance();
  bool add(const std::string& model, const std::string& format, Make make);
  const Make* find(const std::string& model, const std::string& format) const;
  std::vector<std::string> formats(const std::string& model) const;

 private:
  std::map<std::pair<std::string, std::string>, Make> makes_;
};

}  // namespace pipewright

/// PIPEWRIGHT_FOREIGN_NAMES(resnet18, torchvision, rules_for_options);
#define PIPEWRIGHT_FOREIGN_NAMES(model, format, ...)               \
  [[maybe_unused]] static const bool names_of_##model##_##format = \
      ::pipewright::ForeignNamesRegistry::instance().add(#model, #format, __VA_ARGS__)
