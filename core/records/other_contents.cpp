// SPDX-License-Identifier: Apache-2.0
#include "core/records/other_contents.h"

#include <map>
#include <utility>

#include "core/base/text.h"

namespace pipewright {
namespace {

/// An option, and the file that it names.
using Named = std::pair<std::string, std::string>;

/// The digest that the first run recorded of a file, and whose it is.
struct Seen {
  std::string digest, label;
  bool told = false;
};

std::string name_of(const RunRecord& run, const std::string& option) {
  const std::optional<Value> name = run.setting(option);
  return name && name->is(Value::Kind::Text) ? name->text : std::string();
}

}  // namespace

std::vector<std::string> other_contents(const std::vector<RunRecord>& runs) {
  std::map<Named, Seen> seen;
  std::vector<std::string> sentences;
  for (const RunRecord& run : runs)
    for (const auto& [option, digest] : run.contents.fields) {
      const std::string file = name_of(run, option);
      Seen& first = seen.try_emplace({option, file}, Seen{digest.text, run.label}).first->second;
      if (first.digest == digest.text || std::exchange(first.told, true)) continue;
      sentences.push_back(concat(option, " is ", file, ", which had another content when '",
                                 run.label, "' was trained than when '", first.label, "' was"));
    }
  return sentences;
}

}  // namespace pipewright
