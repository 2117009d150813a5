// SPDX-License-Identifier: Apache-2.0
/// A report of an experiment's runs as one HTML page that needs nothing else: no network, no server
/// and, to be read, no scripts.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/page/chart.h"
#include "core/page/line_looks.h"
#include "core/records/run_record.h"
#include "core/schedule/prove.h"
#include "core/tables/heat_map.h"
#include "core/tables/table.h"
#include "core/tables/tradeoff.h"
#include "core/tables/verdicts.h"
#include "core/traces/trace_file.h"

namespace pipewright {

/// The schedule of one or more runs.
struct ReportSchedule {
  std::string title;    ///< "pipedream, 4 stages"
  std::string series;   ///< "pipedream", or the line that its runs are in curves: has one colour
  std::string why_not;  ///< it cannot be drawn; "": it can
  std::string command;  ///< that draws it again
  std::optional<ProvedSchedule> proved;  ///< none if it cannot be drawn
  std::vector<std::size_t> runs;         ///< indices into Report::runs
  std::optional<MeasuredTrace> trace;    ///< what one of them did
  std::string traced_run;
  std::optional<ProvedSchedule> traced_schedule;  ///< with its weights, which a trace does not have
};

struct ReportCommand {
  std::string what;  ///< "trains all runs"
  std::string line;  ///< for a shell
};

/// Accuracy, or another metric, against time.
struct ReportFront {
  std::string time;  ///< what the time is
  std::string unit;  ///< "h" or "s"
  std::vector<TradeoffRow> rows;
};

/// All that the page shows.
struct Report {
  std::string title;
  std::string question;  ///< what the file says it is for; lines
  std::vector<RunRecord> runs;
  std::string metric;
  std::optional<Table> table;
  std::string best;  ///< one sentence on the best and the worst cell
  std::vector<Verdict> verdicts;
  std::vector<Chart> curves, against, edges, memory;
  std::vector<std::string> edges_notes;  ///< which edges are not drawn, and why
  /// By runs' indices: each stage's edge of stability, a learning rate × curvature.
  std::map<std::size_t, std::vector<double>> stage_edges;
  std::vector<HeatMap> maps;
  std::string maps_note;  ///< in what the runs of a map's cell differ; "": in their seed alone
  std::optional<ReportFront> front;
  std::vector<ReportSchedule> schedules;
  std::vector<ReportCommand> commands;
  std::vector<std::string> remarks;  ///< what a reader of the figures should know
  SeriesLooks looks;                 ///< report_page() fills it, and gives each chart its own
  std::string version, commit;       ///< of the program that writes the page
};

/// The page. Lines of one series get one look in all charts.
std::string report_page(Report report);

/// Whether a file that begins so is a page that report_page() made. A page's first 4 KiB suffice.
bool is_report_page(std::string_view beginning);

}  // namespace pipewright
