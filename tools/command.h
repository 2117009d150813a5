// SPDX-License-Identifier: Apache-2.0
/// A command of the `pipewright` program. One file per command; main.cpp lists them.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config/value.h"
#include "core/experiment/experiment.h"
#include "core/sweep/chosen_point.h"

namespace pipewright {

struct Command {
  const char* name;
  const char* usage;    ///< such as "run FILE [--set key=value]… [--out DIR]"
  const char* summary;  ///< one line for `pipewright --help`
  /// Runs the command with the arguments after its name. Returns the exit code. May throw Error.
  /// One that computes with LibTorch calls need_libtorch() when it has read its input.
  int (*run)(const std::vector<std::string>& arguments);
};

/// Performs the program's arguments: prints an error and returns the exit code. Does not throw.
int perform(const std::vector<std::string>& arguments);

extern const Command kRun, kSweep, kWatch, kCheck, kSchedule, kSimulate, kSynthesize, kStability,
    kProfile, kTable, kClaims, kPlot, kReport, kExport, kCompare, kTimeline, kFetch, kList,
    kDescribe, kSchema, kNew, kDoctor, kCompletion;

/// All commands, in the order of `pipewright --help`.
std::vector<const Command*> commands();

/// What a command's line may hold besides its arguments.
struct CommandOutline {
  std::vector<std::string> flags;    ///< options without a value: "--resume"
  std::vector<std::string> options;  ///< options with one: "--out"
};

/// Has the command declare its options, and nothing else.
CommandOutline outline_of(const Command& command);

/// Arguments of commands that read an experiment: FILE, --set, --profile, --point and --out.
struct ExperimentArguments {
  std::filesystem::path file;
  std::string profile;
  std::vector<std::string> sets;
  std::string point;          ///< --point; empty: no point is chosen
  std::filesystem::path out;  ///< --out; empty: runs/<name>
  Value document() const;     ///< load_document() with file, profile and sets
  Value document(Problems& faults) const;
};

/// An experiment that a command takes from a file, which may have a sweep.
struct OneExperiment {
  Value document;  ///< that of the chosen point or, without one, of the file itself
  std::optional<ChosenPoint> point;
  std::string remark;  ///< says which point it is; "" for a file without a sweep
};
OneExperiment one_experiment(const ExperimentArguments& given, Problems& faults);

/// The command line of a command, a wrapper of Boost.Program_options. Wrong input, such as an
/// undeclared option or a missing FILE, throws Error{Experiment} with the usage; so does a value
/// that is empty or not UTF-8, in one line. --help prints the usage with all options and makes
/// parse() return false.
class CommandLine {
 public:
  CommandLine(const Command& command, const std::string& description);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  void flag(const std::string& name, const std::string& help);
  void option(const std::string& name, const std::string& placeholder, const std::string& help,
              const std::string& fallback = {});
  /// Declares an option that names a file to write; no two of them may name the same one.
  void output(const std::string& name, const std::string& placeholder, const std::string& help);
  void list(const std::string& name, const std::string& placeholder, const std::string& help);
  /// Declares positional arguments: at least `least`, at most `most`.
  void positional(const std::string& name, const std::string& help, std::size_t least,
                  std::size_t most);
  /// Declares FILE, --set, --profile, --plugin and, if `with_out`, --out.
  void experiment(bool with_out);
  void point();    ///< declares --point, for commands that take one experiment
  void plugins();  ///< declares --plugin, for commands that read no experiment
  /// Declares --where, for commands that take the folder of a run, or of several.
  void where(bool several = false);

  /// Parses the arguments and loads the plugins they name, whose parts are known from then on.
  /// Returns false after --help.
  bool parse(const std::vector<std::string>& arguments);

  bool given(const std::string& name) const;
  /// Throws Error{Experiment} if one of these options is given: "--run needs --sweep".
  void refuse_given(std::initializer_list<const char*> names, const char* why) const;
  /// Throws as write_output() would if one of these options names a file that cannot be written.
  /// For commands that compute for long first.
  void check_outputs(std::initializer_list<const char*> names) const;
  std::string text(const std::string& name) const;
  int integer(const std::string& name) const;  ///< Error{Experiment} if it is not a whole number
  std::vector<std::string> texts(const std::string& name) const;
  ExperimentArguments experiment_arguments() const;

 private:
  struct Parsed;
  std::unique_ptr<Parsed> parsed_;
};

/// Reads the experiment that the line names; reports all problems of its file at once. For a file
/// with a sweep it prints to standard error which point it is, or that it is the base. Before it
/// prints anything it calls `when_read`: commands that compute pass need_libtorch.
Experiment experiment_of(const CommandLine& line, void (*when_read)() = nullptr);

/// Throws Error unless a file that the user has requested may be written: its folder is there, and
/// neither a file that this command reads nor one of a folder of results has that name.
void check_output(const std::filesystem::path& file);
/// Writes a file that the user has requested, and prints its name.
void write_output(const std::filesystem::path& file, const std::string& content);
/// Writes a file into which the command has merged what it held, unless that is its content
/// already. Prints nothing.
void write_merged(const std::filesystem::path& file, const std::string& content);

}  // namespace pipewright
