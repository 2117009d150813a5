// SPDX-License-Identifier: Apache-2.0
/// The kinds of parts that a plugin may have, and the exceptions of its parts, which are those of
/// the plugin and no bugs of ours.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

struct PluginKind {
  std::string_view name;  ///< as in stamps and in experiment files: "scheme", "model", …
  bool (*knows)(const std::string& part);  ///< whether such a part is registered
  /// What the part's constructor throws from now on, except Error of another kind than Bug and
  /// std::bad_alloc, is an Error{Schedule} that names the part and the plugin's file; so is what a
  /// scheme throws at any time. The part is registered.
  void (*guard)(const PluginKind& kind, const std::string& part, const std::filesystem::path& file);
};

/// The kind of that name; null: there is none.
const PluginKind* find_plugin_kind(std::string_view name);

/// "scheme, model, dataset, …"
std::string plugin_kind_names();

}  // namespace pipewright
