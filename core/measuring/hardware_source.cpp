// SPDX-License-Identifier: Apache-2.0
#include "core/measuring/hardware_source.h"

#include <algorithm>

#include "core/base/registry.h"
#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/codecs/codec.h"
#include "core/config/file_kind.h"
#include "core/config/merge.h"
#include "core/measuring/modelled.h"
#include "core/simulation/shipped_hardware.h"

namespace pipewright {
namespace {

constexpr const char* kSection = "hardware";

/// A description that cannot be read at all.
class BadDescription : public Error {
 public:
  explicit BadDescription(const Error& error) : Error(error) {}
};

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
    problems.add(name->place,
                 concat("hardware.codecs[", i, "].name: there is no codec '", name->text, "'",
                        suggestion(name->text, known), plugin_hint(name->text, known)));
  }
}

Hardware read_checked(const Value& document, Problems& problems) {
  Hardware hardware = read_hardware(document, problems);
  check_codecs(document, problems);
  problems.throw_if_any();
  return hardware;
}

Value load_description(const std::filesystem::path& file) {
  FileKind kind{.name = "description of hardware", .keys = {}};
  for (const OptionInfo& info : hardware_options())
    if (info.name != "name") kind.keys.push_back(info.name);  // other files have names, too
  // clang 14 cannot compile std::ranges::partition with this standard library.
  std::partition(kind.keys.begin(), kind.keys.end(),
                 [](const std::string& key) { return key == "devices"; });
  return load_file_of(kind, file);
}

/// The keys of the section that mean the same whatever the description of devices beneath it says.
Value without_devices(Value own) {
  const auto numbered = [](const auto& field) {
    return field.first == "links" || field.first == "buses";
  };
  std::erase_if(own.fields, numbered);
  if (Value* devices = own.find("devices"))
    std::erase_if(devices->fields, [](const auto& field) {
      return field.first == "speeds" || field.first == "slowdown";
    });
  return own;
}

std::filesystem::path read_file_option(Options& section) {
  return section.path("file", "",
                      "A description of the hardware, such as those in experiments/hardware, over "
                      "which the other options of this section are laid; \"\" = none.");
}

/// "; did you mean …?" with the path of the shipped description of such a name, if there is one;
/// "" where the file is there.
std::string shipped_like(const std::filesystem::path& file) {
  std::error_code none;
  if (std::filesystem::exists(file, none)) return {};
  std::vector<std::string> names;
  for (const ShippedHardware& each : shipped_hardware()) names.push_back(each.name);
  const std::string name = nearest(file.stem().string(), names);
  return name.empty() ? "; `pipewright list hardware` names those that come with the program"
                      : concat("; did you mean ", hardware_file(name).string(), "?");
}

/// Refuses a section that is a word, such as the name of a shipped description.
void check_word(const Value* section) {
  if (section == nullptr || !section->is(Value::Kind::Text)) return;
  std::vector<std::string> names;
  for (const ShippedHardware& each : shipped_hardware()) names.push_back(each.name);
  const std::string name = nearest(section->text, names);
  const std::string file = name.empty() ? "FILE" : hardware_file(name).string();
  throw Error(ErrorKind::Experiment,
              concat("hardware is ", section->shown(),
                     "; expected a mapping of options; write {file: ", file, "}",
                     name.empty() ? "; `pipewright list hardware` names those that come with the "
                                    "program, which --hardware takes by name"
                                  : ", or give --hardware " + name),
              section->place.text());
}

/// Reads the description that a table or plots name.
void check_shown_on(const Value& document, const std::string& section, Problems& problems) {
  Problems unheard;  // the section's reader reports them
  Options options(document.find(section), section, unheard);
  const std::filesystem::path file = options.path("hardware", "", "");
  std::vector<RunRecord> no_runs;
  if (!file.empty()) try {
      add_modelled(no_runs, load_hardware(file));
    } catch (const Error& error) {
      problems.add(
          options.where("hardware"),
          concat(section, ".hardware: ", join(split(error.what(), '\n'), "; "), shipped_like(file)),
          error.kind());
    }
}

}  // namespace

Hardware load_hardware(const std::filesystem::path& file) {
  Problems problems;
  return read_checked(load_description(file), problems);
}

bool HardwareSource::describes(const Value& document) const {
  const Value* section = document.find(kSection);
  return !instead_.empty() || (section != nullptr && !section->is(Value::Kind::Null));
}

Hardware laid_out(const Hardware& hardware, const PipelineShape& shape) {
  const bool shared = !shape.replica_placement.empty();
  return laid_out(hardware, shape.workers(), shared ? 1 : shape.replicas);
}

Hardware HardwareSource::of(const Value& document, const PipelineShape& shape) {
  if (!describes(document)) return ideal_hardware(shape.workers());
  return laid_out(read(document), shape);
}

Hardware HardwareSource::read(const Value& document) {
  const Value* section = document.find(kSection);
  check_word(section);
  Problems problems;
  Options options(section, kSection, problems);
  const std::filesystem::path named = read_file_option(options);
  Value own = section != nullptr && section->is(Value::Kind::Mapping) ? *section : Value::mapping();
  std::erase_if(own.fields, [](const auto& field) { return field.first == "file"; });
  if (!instead_.empty()) return read_checked(merged_keys(description(instead_), own), problems);
  if (named.empty()) return read_checked(own, problems);
  try {
    return read_checked(merged_keys(description(named), own), problems);
  } catch (const BadDescription& error) {
    problems.add(
        options.where("file"),
        concat("hardware.file: ", join(split(error.what(), '\n'), "; "), shipped_like(named)),
        error.kind());
    return read_checked(without_devices(own), problems);
  }
}

Value HardwareSource::description(const std::filesystem::path& file) {
  const Lock lock(mutex_);
  const auto known = files_.find(file);
  if (known != files_.end()) return known->second;
  try {
    return files_.emplace(file, load_description(file)).first->second;
  } catch (const Error& error) {
    throw BadDescription(error);
  }
}

void check_hardware(const Value& document) {
  HardwareSource hardware;
  for (const SweepPoint& point : expand_sweep(document))
    hardware.of(point.document, PipelineShape());
  Problems problems;
  for (const char* section : {"table", "plot"}) check_shown_on(document, section, problems);
  problems.throw_if_any();
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
