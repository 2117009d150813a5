// SPDX-License-Identifier: Apache-2.0
/// What `pipewright report` reads: the runs of an experiment's file, or those that lie in a folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/config/value.h"
#include "core/page/page_content.h"
#include "core/records/run_record.h"

namespace pipewright {

/// The records of a run's folder, or of all run folders directly in a sweep's, in the order of its
/// file. What runs of an earlier version of the file have other than today's is among what varies.
/// Throws Error{Data} if there are none, or the folder cannot be read.
std::vector<RunRecord> runs_of_folder(const std::filesystem::path& folder);

/// A document for runs without their file: the name, and the loss, on which the metric depends.
Value document_of(const std::vector<RunRecord>& runs, const std::filesystem::path& folder);

/// Whether the runs' labels are names that somebody gave, and not made of all that varies, as where
/// runs that differ in nothing but their seed have different ones.
bool have_own_labels(const std::vector<RunRecord>& runs);

/// The comment that an experiment's file begins with, without its signs and without the lines in it
/// that are for programs; "" without one.
std::string leading_comment(const std::filesystem::path& file);

/// One line for each other version of Pipewright that made rows of the file; none for "".
std::vector<std::string> versions_of_rows(const std::filesystem::path& file);

/// The schedule of each setting that has one of its own, in the order of the runs. Where a run has
/// left a trace, the schedule that it measured is there, too. What cannot be read is a reason not
/// to draw.
std::vector<ReportSchedule> schedules_of(const std::vector<RunRecord>& runs);

}  // namespace pipewright
