// SPDX-License-Identifier: Apache-2.0
#include "core/modelling/hardware_source.h"

#include <algorithm>

#include "core/base/registry.h"
#include "core/base/text.h"
#include "core/codecs/codec.h"
#include "core/config/merge.h"

namespace pipewright {
namespace {

constexpr const char* kSection = "hardware";

/// Records a problem for each codec in a description of hardware that does not exist.
void check_codecs(const Value& document, Problems& problems) {
  const Value* speeds = document.find("codecs");
  if (speeds == nullptr) return;
  std::vector<std::string> known = Registry<Codec>::instance().names();
  known.emplace_back("powersgd");
  for (std::size_t i = 0; i < speeds->items.size(); ++i) {
    const Value* name = speeds->items[i].find("name");
    if (name == nullptr || !name->is(Value::Kind::Text) || name->text.empty() ||
        std::ranges::count(known, name->text) > 0)
      continue;
    problems.add(name->place, concat("hardware.codecs[", i, "].name: there is no codec '",
                                     name->text, "'", suggestion(name->text, known)));
  }
}

Hardware read_checked(const Value& document) {
  Problems problems;
  Hardware hardware = read_hardware(document, problems);
  check_codecs(document, problems);
  problems.throw_if_any();
  return hardware;
}

std::filesystem::path read_file_option(Options& section) {
  return section.path("file", "",
                      "A description of the hardware, such as those in experiments/hardware, over "
                      "which the other options of this section are laid; \"\" = none.");
}

}  // namespace

Hardware load_hardware(const std::filesystem::path& file) {
  return read_checked(load_yaml(file));
}

bool HardwareSource::describes(const Value& document) const {
  const Value* section = document.find(kSection);
  return !instead_.empty() || (section != nullptr && !section->is(Value::Kind::Null));
}

Hardware HardwareSource::of(const Value& document, int workers) {
  if (!describes(document)) return ideal_hardware(workers);
  const Value* section = document.find(kSection);
  Problems problems;
  Options options(section, kSection, problems);
  const std::filesystem::path named = read_file_option(options);
  problems.throw_if_any();
  const std::filesystem::path& file = instead_.empty() ? named : instead_;
  Value whole = file.empty() ? Value::mapping() : description(file);
  if (section != nullptr && section->is(Value::Kind::Mapping)) {
    Value own = *section;
    std::erase_if(own.fields, [](const auto& field) { return field.first == "file"; });
    whole = whole.is(Value::Kind::Mapping) ? merged_keys(std::move(whole), own) : whole;
  }
  return read_checked(whole);
}

Value HardwareSource::description(const std::filesystem::path& file) {
  const Lock lock(mutex_);
  const auto known = files_.find(file);
  if (known != files_.end()) return known->second;
  return files_.emplace(file, load_yaml(file)).first->second;
}

std::vector<OptionInfo> hardware_section_options() {
  const Value nothing = Value::mapping();
  Problems unheard;
  Options options(&nothing, kSection, unheard);
  read_file_option(options);
  std::vector<OptionInfo> all = options.declared();
  for (OptionInfo& info : hardware_options()) all.push_back(std::move(info));
  return all;
}

}  // namespace pipewright
