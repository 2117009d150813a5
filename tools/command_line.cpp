// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <boost/program_options.hpp>
#include <cstdlib>
#include <map>
#include <sstream>

#include "core/base/error.h"
#include "core/base/parsed.h"
#include "core/base/printable.h"
#include "core/base/utf8.h"
#include "core/base/wording.h"
#include "core/config/merge.h"
#include "core/experiment/catalogue.h"
#include "core/experiment/plugins.h"
#include "core/experiment/reading.h"
#include "core/records/run_files.h"
#include "core/system/file.h"
#include "core/system/folder_lock.h"
#include "core/system/given_files.h"
#include "core/system/plain_file.h"
#include "core/system/temporary_file.h"
#include "core/system/terminal.h"
#include "tools/command.h"

namespace pipewright {
namespace {

namespace po = boost::program_options;

constexpr unsigned kWidth = 100;
constexpr int kStyle =
    po::command_line_style::allow_long | po::command_line_style::long_allow_next |
    po::command_line_style::long_allow_adjacent | po::command_line_style::allow_short |
    po::command_line_style::allow_dash_for_short | po::command_line_style::short_allow_next;

[[noreturn]] void refuse(const Command& command, const std::string& message) {
  throw Error(ErrorKind::Experiment, concat(message, "\nusage: pipewright ", command.usage,
                                            "\n`pipewright ", command.name, " --help` says more"));
}

/// "; write --set train.epochs=…" for --epochs, an option of experiments; "" for others.
std::string as_setting(const std::string& name) {
  std::string key = name.substr(0, name.find('='));
  key.erase(0, key.find_first_not_of('-'));
  std::ranges::replace(key, '-', '_');
  for (const OptionInfo& section : experiment_options())
    for (const OptionInfo& option : section.section)
      if (option.name == key) return concat("; write --set ", section.name, ".", key, "=…");
  return {};
}

/// Wraps words into lines of kWidth characters; line breaks stay.
std::string wrapped(const std::string& text) {
  std::string out;
  for (const std::string& paragraph : split(text, '\n')) {
    std::size_t column = 0;
    for (const std::string& word : split(paragraph, ' ')) {
      const auto width = width_of(word);
      const bool full = column > 0 && column + 1 + width > kWidth;
      if (column > 0) out += full ? '\n' : ' ';
      out += word;
      column = full || column == 0 ? width : column + 1 + width;
    }
    out += '\n';
  }
  return out;
}

/// The lines of a text without blanks at their ends.
std::string without_blanks_at_ends(const std::string& text) {
  std::vector<std::string> lines = split(text, '\n');
  for (std::string& line : lines) line.resize(line.find_last_not_of(' ') + 1);
  return join(lines, "\n");
}

/// Where parse() writes what was declared instead of parsing; null: it parses.
CommandOutline* outline_wanted = nullptr;

/// What an option that is written as `--option PLACEHOLDER` takes.
std::string expected_by(const std::string& placeholder) {
  if (placeholder == "DIR" || placeholder == "FOLDER") return "a folder";
  return placeholder == "FILE" ? "a file" : "a value";
}

/// The texts that an option or a positional argument was given.
std::vector<std::string> texts_in(const po::variable_value& value) {
  if (const auto* one = boost::any_cast<std::string>(&value.value())) return {*one};
  const auto* all = boost::any_cast<std::vector<std::string>>(&value.value());
  return all == nullptr ? std::vector<std::string>{} : *all;
}

/// Loads the plugins that the command line names, and before them those of PIPEWRIGHT_PLUGINS.
void load_plugins(const std::vector<std::string>& named) {
  const char* const always = std::getenv("PIPEWRIGHT_PLUGINS");
  for (const std::string& file : split(always == nullptr ? "" : always, ':'))
    if (!file.empty()) load_plugin(file);
  for (const std::string& file : named) load_plugin(file);
}

}  // namespace

struct CommandLine::Parsed {
  struct Positional {
    std::string name;
    std::string help;
    std::size_t least = 0;
    std::size_t most = 0;
  };

  const Command& command;
  std::string description;
  po::options_description options{"Options", kWidth, kWidth / 2};
  std::vector<std::string> names;  // names of options with their dashes
  std::vector<Positional> positionals;
  std::vector<std::string> outputs;  // names of options that name files to write
  std::map<std::string, std::string> fallbacks;
  po::variables_map values;

  void add(const std::string& name, po::value_semantic* semantic, const std::string& help) {
    options.add_options()(name.c_str(), semantic, help.c_str());
    names.push_back(concat("--", long_name(name)));
  }

  /// "output" of "output,o".
  static std::string long_name(const std::string& name) { return name.substr(0, name.find(',')); }

  CommandOutline outline() const {
    CommandOutline outline;
    for (const std::string& name : names) {
      const bool takes = options.find(name.substr(2), false).semantic()->max_tokens() > 0;
      (takes ? outline.options : outline.flags).push_back(name);
    }
    return outline;
  }

  std::string help_text() const {
    std::ostringstream text;
    text << "usage: pipewright " << command.usage << "\n\n" << wrapped(description);
    for (const Positional& positional : positionals)
      text << "\n  " << positional.name << "  " << positional.help << "\n";
    if (!names.empty()) text << "\n" << options;
    return without_blanks_at_ends(text.str());
  }

  void store(const std::vector<std::string>& arguments) {
    po::options_description all;
    all.add(options);
    po::positional_options_description order;
    for (const Positional& positional : positionals) {
      all.add_options()(positional.name.c_str(), po::value<std::vector<std::string>>());
      order.add(positional.name.c_str(), static_cast<int>(positional.most));
    }
    po::store(po::command_line_parser(arguments).options(all).positional(order).style(kStyle).run(),
              values);
  }

  /// Refuses what is empty, which would count as not given, and what is not UTF-8: the records of a
  /// run hold its command line, and JSON cannot hold such a text.
  void check_values() const {
    for (const auto& [name, value] : values) {
      const po::option_description* const option = options.find_nothrow(name, false);
      if (option != nullptr && option->semantic()->max_tokens() == 0) continue;  // a flag
      const std::string shown = option == nullptr ? name : "--" + name;
      for (const std::string& text : texts_in(value)) {
        if (text.empty())
          throw Error(
              ErrorKind::Experiment,
              concat(shown, " is empty",
                     option == nullptr ? std::string()
                                       : "; expected " + expected_by(option->semantic()->name())));
        if (valid_utf8(text) < text.size())
          throw Error(ErrorKind::Experiment,
                      concat(shown, " is '", printable(text), "', which is not UTF-8"));
      }
    }
  }

  /// Refuses one name for two files, of which the second would replace the first.
  void check_outputs() const {
    std::map<std::filesystem::path, std::string> options_of;
    for (const std::string& name : outputs) {
      const auto found = values.find(name);
      if (found == values.end()) continue;
      const std::string file = texts_in(found->second).front();
      const auto [other, added] =
          options_of.emplace(std::filesystem::absolute(file).lexically_normal(), name);
      if (!added)
        throw Error(ErrorKind::Experiment,
                    concat("is given to both --", other->second, " and --", name), file);
    }
  }

  void check_positionals() const {
    for (const Positional& positional : positionals) {
      const std::size_t given = values.count(positional.name) == 0
                                    ? 0
                                    : values[positional.name].as<std::vector<std::string>>().size();
      if (given < positional.least) refuse(command, concat(positional.name, " is missing"));
    }
  }
};

CommandLine::CommandLine(const Command& command, const std::string& description)
    : parsed_(std::make_unique<Parsed>(Parsed{command, description})) {
  parsed_->options.add_options()("help,h", "print this");
  parsed_->names.emplace_back("--help");
}

CommandLine::~CommandLine() = default;

void CommandLine::flag(const std::string& name, const std::string& help) {
  parsed_->add(name, new po::untyped_value(true), help);  // owned by Boost
}

void CommandLine::option(const std::string& name, const std::string& placeholder,
                         const std::string& help, const std::string& fallback) {
  parsed_->add(name, po::value<std::string>()->value_name(placeholder),
               fallback.empty() ? help : concat(help, "; default: ", fallback));
  parsed_->fallbacks[Parsed::long_name(name)] = fallback;
}

void CommandLine::output(const std::string& name, const std::string& placeholder,
                         const std::string& help) {
  option(name, placeholder, help);
  parsed_->outputs.push_back(Parsed::long_name(name));
}

void CommandLine::list(const std::string& name, const std::string& placeholder,
                       const std::string& help) {
  parsed_->add(name, po::value<std::vector<std::string>>()->composing()->value_name(placeholder),
               help + " (may be given several times)");
}

void CommandLine::positional(const std::string& name, const std::string& help, std::size_t least,
                             std::size_t most) {
  parsed_->positionals.push_back({name, help, least, most});
}

void CommandLine::experiment(bool with_out) {
  positional("FILE", "the experiment, a YAML file", 1, 1);
  list("set", "KEY=VALUE", "change an option, such as train.epochs=3 or 'scheme={name: gpipe}'");
  option("profile", "P", "apply this one of the profiles in the file");
  plugins();
  if (with_out) option("out", "DIR", "the folder of results; default: runs/<name>");
}

void CommandLine::point() {
  option("point", "POINT",
         "take this point of the file's sweep: its number, or the name that `check` prints, as in "
         "'gpipe, stages 4'");
}

void CommandLine::plugins() {
  list("plugin", "FILE", "a shared library with schemes, models or other parts of your own");
}

void CommandLine::where(bool several) {
  parsed_->add("where", po::value<std::vector<std::string>>()->composing()->value_name("SETTINGS"),
               concat("the run in the folder of a sweep that has these settings, such as "
                      "scheme.name=pipedream,seed=2",
                      several ? " (may be given several times)" : ""));
}

bool CommandLine::parse(const std::vector<std::string>& arguments) {
  if (outline_wanted != nullptr) {
    *outline_wanted = parsed_->outline();
    return false;
  }
  const Command& command = parsed_->command;
  const auto plain_end = std::ranges::find(arguments, "--");
  for (auto argument = arguments.begin(); argument != plain_end; ++argument) {
    if (*argument != "--help" && *argument != "-h") continue;
    print("%s", parsed_->help_text().c_str());
    return false;
  }
  try {
    parsed_->store(arguments);
  } catch (const po::unknown_option& error) {
    const std::string name = error.get_option_name();
    const std::string near = nearest(name.substr(0, name.find('=')), parsed_->names);
    const bool sets = std::ranges::count(parsed_->names, "--set") > 0;
    std::string hint = sets ? as_setting(name) : std::string();
    if (hint.empty() && !near.empty()) hint = concat("; did you mean '", near, "'?");
    refuse(command, concat("unknown option '", name, "'", hint));
  } catch (const po::too_many_positional_options_error&) {
    refuse(command, "there are too many arguments");
  } catch (const po::error& error) {
    refuse(command, error.what());
  }
  parsed_->check_positionals();
  parsed_->check_values();
  parsed_->check_outputs();
  if (std::ranges::count(parsed_->names, "--plugin") > 0) load_plugins(texts("plugin"));
  return true;
}

bool CommandLine::given(const std::string& name) const {
  const auto found = parsed_->values.find(name);
  return found != parsed_->values.end();
}

void CommandLine::refuse_given(std::initializer_list<const char*> names, const char* why) const {
  for (const char* name : names)
    if (given(name)) throw Error(ErrorKind::Experiment, concat("--", name, " ", why));
}

std::string CommandLine::text(const std::string& name) const {
  const auto found = parsed_->values.find(name);
  if (found == parsed_->values.end()) {
    const auto fallback = parsed_->fallbacks.find(name);
    return fallback == parsed_->fallbacks.end() ? std::string() : fallback->second;
  }
  const std::vector<std::string> all = texts_in(found->second);
  return all.empty() ? std::string() : all.front();
}

int CommandLine::integer(const std::string& name) const {
  const std::string given = text(name);
  if (const auto value = parsed<int>(given)) return *value;
  refuse(parsed_->command, concat("--", name, " is '", given, "'; expected a whole number"));
}

std::vector<std::string> CommandLine::texts(const std::string& name) const {
  const auto found = parsed_->values.find(name);
  return found == parsed_->values.end() ? std::vector<std::string>{} : texts_in(found->second);
}

CommandOutline outline_of(const Command& command) {
  CommandOutline outline;
  outline_wanted = &outline;
  command.run({});
  outline_wanted = nullptr;
  return outline;
}

ExperimentArguments CommandLine::experiment_arguments() const {
  return {.file = text("FILE"),
          .profile = text("profile"),
          .sets = texts("set"),
          .point = text("point"),
          .out = text("out")};
}

namespace {

/// Throws if a folder is given where an experiment file is expected.
void refuse_folder(const std::filesystem::path& file) {
  std::error_code none;
  if (!std::filesystem::is_directory(file, none)) return;
  const std::filesystem::path inside = file / "experiment.yaml";  // as in the folder of a run
  throw Error(ErrorKind::Experiment,
              concat("is a folder; expected an experiment file",
                     std::filesystem::exists(inside, none)
                         ? concat(", such as ", shell_quoted(inside.string()))
                         : "",
                     "; compare, export, list, report, timeline and watch take a folder of runs"),
              file.string());
}

}  // namespace

Value ExperimentArguments::document(Problems& faults) const {
  refuse_folder(file);
  return load_document(file, profile, sets, faults);
}

Value ExperimentArguments::document() const {
  refuse_folder(file);
  return load_document(file, profile, sets);
}

OneExperiment one_experiment(const ExperimentArguments& given, Problems& faults) {
  OneExperiment one{.document = given.document(faults)};
  if (given.point.empty()) {
    const std::size_t points = count_points(one.document);
    if (points > 0)
      one.remark = concat("the file has a sweep of ", counted(points, "point"),
                          "; this is its base, --point chooses a point");
    return one;
  }
  one.point = choose_point(one.document, given.point);
  one.document = one.point->point.document;
  one.remark =
      concat("point ", one.point->number, " of ", one.point->count, ": ", one.point->title);
  if (one.point->reseeded > 0)
    one.remark += concat(" (", one.point->reseeded, " more with other seeds)");
  return one;
}

Experiment experiment_of(const CommandLine& line, void (*when_read)()) {
  Problems faults;
  const OneExperiment one = one_experiment(line.experiment_arguments(), faults);
  Experiment experiment = read_experiment(one.document, faults);
  if (when_read != nullptr) when_read();
  if (!one.remark.empty()) print_error("%s\n", one.remark.c_str());
  return experiment;
}

namespace {

/// Refuses a name that a file of results has: the folder would hold something else under it.
void refuse_results_file(const std::filesystem::path& file) {
  const std::string name = file.filename().string();
  std::error_code none;
  const bool ours =
      name == kFolderMarker || name == "results.sqlite" || is_run_file(name) || is_sweep_file(name);
  const bool written_here = name == "timeline.svg" || name == "report.html";  // by their commands
  if (!ours || written_here) return;
  if (std::filesystem::exists(folder_of(file) / kFolderMarker, none))
    throw Error(ErrorKind::Experiment,
                "is the name of a file of the results in this folder; give another name",
                file.string());
}

}  // namespace

void check_output(const std::filesystem::path& file) {
  const std::filesystem::path folder = file.parent_path();
  std::error_code none;
  if (!folder.empty() && !std::filesystem::is_directory(folder, none))
    throw Error(ErrorKind::Data,
                concat("cannot be written: there is no folder ", shell_quoted(folder.string())),
                file.string());
  refuse_given_file(file);
  refuse_results_file(file);
}

void CommandLine::check_outputs(std::initializer_list<const char*> names) const {
  for (const char* name : names) {
    if (!given(name)) continue;
    const std::filesystem::path file = text(name);
    check_output(file);
    require_plain_file(file);
    const TemporaryFile fits_here(file);
  }
}

void write_output(const std::filesystem::path& file, const std::string& content) {
  check_output(file);
  write_file(file, content);
  print("wrote %s\n", file.c_str());
}

void write_merged(const std::filesystem::path& file, const std::string& content) {
  refuse_results_file(file);
  std::error_code none;
  if (std::filesystem::is_regular_file(file, none) && read_file(file) == content) return;
  write_file(file, content);
}

}  // namespace pipewright
