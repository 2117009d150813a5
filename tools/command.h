/// A command of the `pipewright` program. One file per command; main.cpp lists them.
#pragma once

#include <filesystem>
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
  const char* usage;    ///< "run FILE [--set key=value]… [--out DIR]"
  const char* summary;  ///< one line for `pipewright --help`
  /// Arguments after the command's name. Returns the exit code; may throw Error.
  int (*run)(const std::vector<std::string>& arguments);
};

extern const Command kRun, kSweep, kCheck, kSchedule, kSimulate, kProfile, kTable, kPlot, kFetch,
    kList, kDescribe, kSchema, kDoctor;

/// FILE, --set, --profile, --point: what commands that read an experiment take.
struct ExperimentArguments {
  std::filesystem::path file;
  std::string profile;
  std::vector<std::string> sets;
  std::string point;          ///< of the file's sweep; empty: none is chosen
  std::filesystem::path out;  ///< --out; empty: runs/<name>
  Value document() const;     ///< load_document() of the first three
  Value document(Problems& faults) const;
};

/// What a command that takes one experiment makes of a file with a sweep.
struct OneExperiment {
  Value document;  ///< of the chosen point; without one, the file's own
  std::optional<ChosenPoint> point;
  std::string remark;  ///< which of how many points this is; "" for a file without a sweep
};
OneExperiment one_experiment(const ExperimentArguments& given, Problems& faults);

/// Parsed options of a command, by Boost.Program_options behind a small face. A flag or option that
/// is not declared, a missing FILE and so on throw Error{Experiment} with the usage. --help prints
/// the usage with all options and makes parse() return false.
class CommandLine {
 public:
  CommandLine(const Command& command, const std::string& description);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  void flag(const std::string& name, const std::string& help);
  void option(const std::string& name, const std::string& placeholder, const std::string& help,
              const std::string& fallback = {});
  void list(const std::string& name, const std::string& placeholder, const std::string& help);
  /// Positional arguments, between `least` and `most` of them.
  void positional(const std::string& name, const std::string& help, std::size_t least,
                  std::size_t most);
  /// FILE, --set, --profile, --plugin and, if `with_out`, --out.
  void experiment(bool with_out);
  void point();    ///< --point, for commands that take one experiment of a file with a sweep
  void plugins();  ///< --plugin, for commands that read no experiment

  /// Also loads the plugins that are given, so that their schemes are known from here on.
  bool parse(const std::vector<std::string>& arguments);

  bool given(const std::string& name) const;
  std::string text(const std::string& name) const;
  int integer(const std::string& name) const;  ///< Error{Experiment} if it is not a whole number
  std::vector<std::string> texts(const std::string& name) const;
  ExperimentArguments experiment_arguments() const;

 private:
  struct Parsed;
  std::unique_ptr<Parsed> parsed_;
};

/// The experiment that the line names, with all that is wrong with its file reported at once. Of a
/// file with a sweep it says on stderr which point it is, or that it is the base.
Experiment experiment_of(const CommandLine& line);

/// Writes a file that the user has asked for, and says so.
void write_output(const std::filesystem::path& file, const std::string& content);

}  // namespace pipewright
