/// What a model's parameters and buffers are called in the files of other libraries, so that those
/// files load by their own names. Rules are data, registered per model from models/names/.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/config/value.h"

namespace pipewright {

/// Every match of a regular expression (ECMAScript) in a name becomes `by`, which may say $1.
struct Rewrite {
  std::string match, by;
};

struct ForeignNames {
  /// From our full names to theirs, one after another, each on what the one before has made.
  std::vector<Rewrite> names;
  /// A file without such a name may have what these make of it, one after another: a prefix that
  /// not all files have, a tensor that is stored once for two uses.
  std::vector<Rewrite> instead;
  /// Our matrices that are theirs transposed.
  std::vector<std::string> transposed;
  /// Theirs that hold nothing of the model, as whole names.
  std::vector<std::string> ignored;
};

/// Where one of our tensors is in a file of theirs.
struct ForeignTensor {
  std::vector<std::string> names;  ///< the first of them that the file has; usually one
  bool transposed = false;
};

/// The rules, ready to be applied. Auxiliary heads ("heads.0.fc.weight") are Pipewright's own: they
/// have no names elsewhere.
class NameTranslation {
 public:
  explicit NameTranslation(const ForeignNames& rules);
  ~NameTranslation();
  ForeignTensor of(const std::string& our_name) const;  ///< without names where they have none
  bool ignores(const std::string& their_name) const;

 private:
  struct Compiled;
  std::unique_ptr<Compiled> rules_;
};

/// Which models have names in which formats. Filled before main, or while a plugin is loaded.
class ForeignNamesRegistry {
 public:
  /// The rules for a model with these options, every default written out. Throws Error{Experiment}
  /// where the library does not have the model as they make it.
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
