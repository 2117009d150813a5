// SPDX-License-Identifier: Apache-2.0
/// Shared by commands with results: where they are and how they are shown.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/config/value.h"
#include "core/records/run_record.h"
#include "core/tables/table_spec.h"
#include "tools/command.h"

namespace pipewright {

/// The folder of results: --out, or runs/<name>.
std::filesystem::path results_folder(const ExperimentArguments& given, const Value& document);

/// The folder of the run that `settings`, a value of --where, choose among those in the folder of a
/// sweep. Throws Error{Experiment} as chosen_run() does, and where there is no folder.
std::filesystem::path run_in(const std::filesystem::path& folder, const std::string& settings);
/// The same with the only --where of a line; without one, the path as it is.
std::filesystem::path run_in(const std::filesystem::path& path, const CommandLine& line);

/// Sets the document's value at `path` to that of the option, if it was given.
void apply_as_if_written(const CommandLine& line, const char* option, const std::string& path,
                         Value& document);

/// Does the same for --hardware: a file, relative to the current folder, or the name of a shipped
/// one.
void apply_hardware(const CommandLine& line, const std::string& path, Value& document);

/// Rows of results that a command reads, and where it keeps them.
struct RowFiles {
  std::filesystem::path results;  ///< --results; empty: not given
  std::filesystem::path keep;     ///< --keep; empty: not given
};

/// Declares --results for a command that reports.
void declare_results(CommandLine& line);

/// Puts rows of results into the records of the document's runs, and prints to standard error how
/// many it used and how many are of no run of the document. With `keep` it also writes the rows of
/// that file, which need not exist, and of the run folders there.
void use_rows(const RowFiles& files, const Value& document, std::vector<RunRecord>& records);

/// Reads the records of the document's runs in `folder` and in rows, and models them on the
/// hardware of that file unless its path is empty.
std::vector<RunRecord> results_on(const std::filesystem::path& hardware, const Value& document,
                                  const std::filesystem::path& folder, const RowFiles& files = {});

/// Prints to standard error a line for each run whose files cannot be read, which counts as failed
/// and has no numbers, and one for each file of data that changed between the runs.
void tell_of_faults(const std::vector<RunRecord>& records);

/// A sentence on a metric of the table that is simulated on hardware, where none is given; else "".
std::string hardware_remark(const TableSpec& spec);

/// Prints the document's table of its runs as Markdown, then one sentence on its best and worst
/// cell with the command that shows the schedule of the best.
void print_results(const Value& document, std::vector<RunRecord> records);

/// The command "pipewright sweep FILE --set … END" for the given experiment, quoted for a shell.
std::string command_with(const char* command, const ExperimentArguments& given,
                         const std::string& end);

/// "no run of fashion.yaml has begun here; `pipewright sweep fashion.yaml` makes them", or "" if a
/// run is there.
std::string none_begun(const ExperimentArguments& given, const std::vector<RunRecord>& records);

/// Throws Error{Data} with that sentence, if it is one.
void require_begun(const ExperimentArguments& given, const std::filesystem::path& folder,
                   const std::vector<RunRecord>& records);

/// Prints to standard error how many runs of another version of the document are left in `folder`,
/// if any, and the command that removes them. `records`: those of today's runs.
void tell_leftovers(const ExperimentArguments& given, const Value& document,
                    const std::filesystem::path& folder, const std::vector<RunRecord>& records);

}  // namespace pipewright
