/// What `sweep` and `table` share: where results lie and how they are shown.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/config/value.h"
#include "core/records/run_record.h"
#include "tools/command.h"

namespace pipewright {

/// --out, or runs/<name>.
std::filesystem::path results_folder(const ExperimentArguments& given, const Value& document);

/// What is given for `option` becomes the document's value at `path`.
void apply_as_if_written(const CommandLine& line, const char* option, const std::string& path,
                         Value& document);

/// The same for a path, which on the command line is relative to the current folder.
void apply_path(const CommandLine& line, const char* option, const std::string& path,
                Value& document);

/// The records of the document's runs in `folder`, modelled on the hardware of that file unless it
/// is empty.
std::vector<RunRecord> results_on(const std::filesystem::path& hardware, const Value& document,
                                  const std::filesystem::path& folder);

/// Prints the document's table of its runs in Markdown, and one sentence on its best and worst cell
/// with the command that shows how the best was scheduled.
void print_results(const Value& document, std::vector<RunRecord> records);

/// "pipewright sweep FILE --set …" of the experiment that was given, as a shell takes it, and
/// `end`.
std::string command_with(const char* command, const ExperimentArguments& given,
                         const std::string& end);

/// Says on stderr how many runs of another version of the document are left in `folder`, if any,
/// and what removes them. `records`: of today's runs.
void tell_leftovers(const ExperimentArguments& given, const Value& document,
                    const std::filesystem::path& folder, const std::vector<RunRecord>& records);

}  // namespace pipewright
