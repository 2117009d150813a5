// SPDX-License-Identifier: Apache-2.0
// `pipewright schema`: prints the JSON Schema of experiment files, for editors.
#include "core/config/schema.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <tuple>

#include "core/base/text.h"
#include "core/experiment/catalogue.h"
#include "core/experiment/experiment.h"
#include "core/runtime/build_info.h"
#include "core/system/terminal.h"
#include "tools/command.h"
#include "tools/part_kinds.h"
#include "tools/table_sections.h"

namespace pipewright {
namespace {

void add(Value& mapping, const std::string& key, Value value) {
  mapping.at_or_add(key) = std::move(value);
}

Value described(const char* type, const char* text) {
  Value schema = Value::mapping();
  add(schema, "type", Value::of(type));
  add(schema, "description", Value::of(text));
  return schema;
}

bool is_named(const std::vector<OptionInfo>& options, const std::string& name) {
  return std::ranges::find(options, name, &OptionInfo::name) != options.end();
}

/// The part that a section without a name uses.
std::string default_part(const OptionInfo& section) {
  const auto name = std::ranges::find(section.section, "name", &OptionInfo::name);
  return name == section.section.end() ? std::string() : name->fallback.text;
}

/// The options that a section has for every part: all without those of the default part.
std::vector<OptionInfo> common_options(const OptionInfo& section, const PartKind& kind) {
  const std::vector<OptionInfo> own = part_options(kind.name, default_part(section));
  std::vector<OptionInfo> common;
  for (const OptionInfo& info : section.section)
    if (!is_named(own, info.name)) common.push_back(info);
  return common;
}

Value reference(const std::string& definition) {
  Value schema = Value::mapping();
  add(schema, "$ref", Value::of(concat("#/$defs/", definition)));
  return schema;
}

/// Keys of a section that are sections themselves, and their definitions.
using Nested = std::vector<std::pair<std::string, std::string>>;  // key, definition

/// A condition that the name is x or, if x is the default part, absent.
Value name_is(const std::string& name, bool fallback) {
  Value only = Value::mapping();
  add(only, "const", Value::of(name));
  Value properties = Value::mapping();
  add(properties, "name", std::move(only));
  Value condition = Value::mapping();
  add(condition, "properties", std::move(properties));
  if (!fallback) add(condition, "required", Value::sequence({Value::of("name")}));
  return condition;
}

/// Schema of `{name: x, options of x}`: the common options once, and one branch per name with that
/// part's own options, which refuses all others.
Value part_schema(const OptionInfo& section, const PartKind& kind, const Nested& nested = {}) {
  const std::vector<OptionInfo> common = common_options(section, kind);
  Value shared = json_schema(common);
  Value& properties = shared.at_or_add("properties");
  for (const auto& [key, definition] : nested) add(properties, key, reference(definition));
  Value branches = Value::sequence();
  for (const std::string& name : kind.names()) {
    Value options = json_schema(part_options(kind.name, name));
    for (const auto& [key, value] : properties.fields)
      if (options.at_or_add("properties").find(key) == nullptr)
        add(options.at_or_add("properties"), key, Value::of(true));
    Value branch = Value::mapping();
    add(branch, "if", name_is(name, name == default_part(section)));
    add(branch, "then", std::move(options));
    branches.items.push_back(std::move(branch));
  }
  Value schema = described("object", section.help.c_str());
  add(schema, "properties", std::move(properties));
  if (const Value* required = shared.find("required")) add(schema, "required", *required);
  add(schema, "allOf", std::move(branches));
  return schema;
}

constexpr const char *kGroups = "optimizers_of_groups",
                     *kDirection = "compression_of_one_direction",
                     *kOtherwise = "compression_of_other_edges";

/// Schema of `pipeline.compression`. Its directions and `otherwise` are definitions.
Value compression_schema(const OptionInfo& section, const PartKind& codecs, Value& definitions) {
  OptionInfo direction = section;
  std::erase_if(direction.section, [](const OptionInfo& info) { return info.name != "name"; });
  Nested nested{{"forward", kDirection}, {"backward", kDirection}};
  add(definitions, kDirection, part_schema(direction, codecs));
  add(definitions, kOtherwise, part_schema(section, codecs, nested));
  nested.emplace_back("otherwise", kOtherwise);
  return part_schema(section, codecs, nested);
}

/// Sections that are lists of parts: name, kind, the kind's first part.
constexpr std::array kLists{std::tuple("probes", "probe", "norms"),
                            std::tuple("gradient_rules", "gradient_rule", "clip")};

/// Schema of a list of parts, as `probes` is one.
Value parts_schema(const OptionInfo& parts, const PartKind& kind, const char* fallback) {
  OptionInfo name;
  name.name = "name";
  name.type = OptionInfo::Type::Choice;
  name.help = "Name of the part.";
  name.fallback = Value::of(fallback);
  for (const std::string& each : kind.names()) name.choices.push_back(Value::of(each));
  OptionInfo each = parts;
  each.help = "A part and its options.";
  each.section = {name};
  Value schema = described("array", parts.help.c_str());
  add(schema, "items", part_schema(each, kind));
  return schema;
}

/// Schema of `optimizer.groups`: parts that are named here or around, with their parameters.
Value groups_schema(const OptionInfo& groups, const PartKind& optimizers) {
  OptionInfo each = groups;
  each.help = "Parameters, and an optimizer with its options.";
  for (const char* const name : {"match", "name"}) each.section.emplace_back().name = name;
  for (const std::string& name : optimizers.names())
    each.section.back().choices.push_back(Value::of(name));
  each.section.back().type = OptionInfo::Type::Choice;
  each.section.back().fallback = Value::of("");
  each.section.front().required = true;
  Value schema = described("array", groups.help.c_str());
  add(schema, "items", part_schema(each, optimizers));
  return schema;
}

Value lists_schema(const char* text) {
  Value list = Value::mapping();
  add(list, "type", Value::of("array"));
  add(list, "minItems", Value::of(1));
  Value schema = described("object", text);
  add(schema, "additionalProperties", std::move(list));
  return schema;
}

Value sweep_schema() {
  Value point = described("object", "Dotted keys or sections, and a label.");
  Value label = described("string", "Names rows and columns of tables.");
  Value point_properties = Value::mapping();
  add(point_properties, "label", std::move(label));
  add(point, "properties", std::move(point_properties));
  Value points = described("array", "Runs spelled out.");
  add(points, "items", std::move(point));
  Value properties = Value::mapping();
  add(properties, "points", std::move(points));
  add(properties, "zip", lists_schema("Parallel lists: dotted key to values."));
  add(properties, "grid", lists_schema("Cross product: dotted key to values."));
  Value schema = described("object", "Many runs of one file: points × zip × grid.");
  add(schema, "properties", std::move(properties));
  add(schema, "additionalProperties", Value::of(false));
  return schema;
}

/// Schema of a section of reports; `claims` is a list of such.
Value report_schema(const OptionInfo& section) {
  Value options = json_schema(section.section);
  if (section.name == "claims") {
    Value list = described("array", section.help.c_str());
    add(list, "items", std::move(options));
    return list;
  }
  add(options, "description", Value::of(section.help));
  return options;
}

Value profiles_schema() {
  Value schema =
      described("object", "Named overrides, chosen with --profile; dotted keys are allowed.");
  Value profile = Value::mapping();
  add(profile, "type", Value::of("object"));
  add(schema, "additionalProperties", std::move(profile));
  return schema;
}

Value experiment_schema() {
  const std::vector<OptionInfo> options = experiment_options();
  Value schema = Value::mapping();
  add(schema, "$schema", Value::of(kSchemaDialect));
  add(schema, "$id", Value::of(concat("urn:pipewright:experiment:", build_info().version)));
  add(schema, "title", Value::of("Pipewright experiment"));
  const Value sections = json_schema(options);
  for (const auto& [key, value] : sections.fields) add(schema, key, value);
  Value& properties = schema.at_or_add("properties");
  Value definitions = Value::mapping();
  for (const PartKind& kind : part_kinds()) {
    const auto section = std::ranges::find(options, kind.name, &OptionInfo::name);
    if (section != options.end()) {
      const bool grouped = kind.name == "optimizer";
      const auto groups = std::ranges::find(section->section, "groups", &OptionInfo::name);
      if (grouped) add(definitions, kGroups, groups_schema(*groups, kind));
      add(properties, kind.name,
          part_schema(*section, kind, grouped ? Nested{{"groups", kGroups}} : Nested{}));
    }
    for (const auto& [list, of, fallback] : kLists)
      if (kind.name == of)
        add(properties, list,
            parts_schema(*std::ranges::find(options, list, &OptionInfo::name), kind, fallback));
    if (kind.name != "codec") continue;
    const auto pipeline = std::ranges::find(options, "pipeline", &OptionInfo::name);
    const auto codec = std::ranges::find(pipeline->section, "compression", &OptionInfo::name);
    add(properties.at_or_add("pipeline").at_or_add("properties"), "compression",
        compression_schema(*codec, kind, definitions));
  }
  add(properties, "extends",
      described("string", "A file whose options this one changes; relative to this file."));
  add(properties, "sweep", sweep_schema());
  for (const OptionInfo& section : table_sections())
    add(properties, section.name, report_schema(section));
  add(properties, "profiles", profiles_schema());
  add(schema, "$defs", std::move(definitions));
  return schema;
}

int run_schema(const std::vector<std::string>& arguments) {
  CommandLine line(
      kSchema,
      "Prints the JSON Schema (draft 2020-12) of experiment files. Editors complete and "
      "check YAML with it: `pipewright schema > pipewright.schema.json`, and "
      "`# yaml-language-server: $schema=pipewright.schema.json` on the first line of "
      "an experiment.");
  line.plugins();
  if (!line.parse(arguments)) return 0;
  print("%s\n", nlohmann::ordered_json::parse(to_json(experiment_schema())).dump(1).c_str());
  return 0;
}

}  // namespace

const Command kSchema{"schema", "schema", "the JSON Schema of experiment files, for editors",
                      run_schema};

}  // namespace pipewright
