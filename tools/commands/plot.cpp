// SPDX-License-Identifier: Apache-2.0
// `pipewright plot`: draws learning curves of a sweep or of one run.
#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/sweep/sweep_plan.h"
#include "core/system/file.h"
#include "core/system/given_files.h"
#include "core/system/plain_file.h"
#include "core/system/terminal.h"
#include "core/tables/default_layout.h"
#include "core/tables/gnuplot.h"
#include "core/tables/heat_map.h"
#include "tools/command.h"
#include "tools/results.h"

namespace pipewright {
namespace {

/// A file name for a title: vgg16-stages-4 for "vgg16, stages 4".
std::string file_name(std::string_view title) {
  constexpr std::size_t kLongest = 60;
  std::string name;
  for (const char c : title) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
    if (plain)
      name += c;
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  if (name.size() > kLongest) name.resize(kLongest);
  while (name.ends_with('-')) name.pop_back();
  return name;
}

/// What a picture's file name begins with: its metric, and what that is drawn over unless epochs.
std::string stem_of(const Picture& picture) {
  const std::string name = file_name(picture.metric);
  if (!picture.hours_on.empty()) return concat(name, "-hours-", file_name(picture.hours_on));
  return picture.x.label == "epoch" ? name : concat(name, "-over-", file_name(picture.x.label));
}

std::string stem_of(const HeatMap& map) {
  return concat(file_name(map.metric), "-over-", file_name(map.x.label), "-and-",
                file_name(map.y.label));
}

/// Draws each picture into files that no other has taken. Titles may differ only in characters that
/// file names cannot have.
template <class AnyPicture>
void draw_all(const std::vector<AnyPicture>& pictures, const std::filesystem::path& folder) {
  make_folders(folder);
  std::set<std::string> taken;
  for (const AnyPicture& picture : pictures) {
    std::string name = stem_of(picture);
    if (const std::string title = file_name(picture.title); !title.empty()) name += "-" + title;
    std::string free = name;
    for (int number = 2; !taken.insert(free).second; ++number) free = concat(name, "-", number);
    for (const auto& [format, ending] :
         {std::pair{PictureFormat::Svg, ".svg"}, std::pair{PictureFormat::Png, ".png"}}) {
      const std::filesystem::path file = folder / (free + ending);
      require_plain_file(file);
      refuse_given_file(file);
      draw(picture, format, file);
      print("wrote %s\n", file.c_str());
    }
  }
}

/// "1 done, 2 failed, 1 diverged" of runs that have all ended; "" if some have not.
std::string ends_of(const std::vector<RunRecord>& runs) {
  std::map<std::string, std::size_t> ends;
  for (const RunRecord& run : runs) {
    if (!run.done() && run.state != "failed") return {};
    ++ends[run.diverged() ? "diverged" : run.state];
  }
  std::vector<std::string> parts;
  for (const char* end : {"done", "failed", "diverged"})
    if (ends[end] > 0) parts.push_back(concat(ends[end], " ", std::string_view(end)));
  return join(parts, ", ");
}

/// Says why nothing can be drawn, unless there are pictures.
void require_some(bool some, const PlotSpec& spec, const std::vector<RunRecord>& runs,
                  const ExperimentArguments& given, const std::filesystem::path& results) {
  if (some) return;
  const std::string what = concat(
      spec.over_key() ? "no run is done and has " : "no run has an epoch with ", spec.metric.name);
  const std::string ends = ends_of(runs);
  const bool all_done = std::ranges::all_of(runs, &RunRecord::done);
  throw Error(
      ErrorKind::Data,
      ends.empty()
          ? concat(what, " yet; `pipewright sweep ", shell_quoted(given.file.string()),
                   "` makes them")
          : concat(what, ": ", counted(runs.size(), "run"), " ended without it (", ends, "); ",
                   all_done ? "give another --metric" : "log.txt in a run's folder says why"),
      results.string());
}

/// Throws if what is drawn is modelled and there is nothing to model it on.
void check_hardware(const PlotSpec& spec) {
  if (is_modelled(spec.metric.name) && spec.hardware.empty())
    throw Error(ErrorKind::Experiment,
                concat("the metric '", spec.metric.name,
                       "' is simulated on hardware, and none is given; give --hardware FILE, or "
                       "set plot.hardware"),
                spec.metric.place.text());
}

/// Rows have evaluations and a mean of each epoch, and of a probe's values no more.
void refuse_what_rows_lack(const PlotSpec& spec) {
  const bool minibatches = spec.x.name == "minibatch" && !spec.over_evaluations();
  const bool from_log = minibatches || spec.x.name == "stage" || spec.line_per_stage();
  if (from_log)
    throw Error(
        ErrorKind::Experiment,
        concat("the plot draws single measurements of a probe, and rows of results have none; "
               "leave --results out to draw them from run folders"),
        spec.x.place.text());
}

bool is_map(const Value& document) {
  const Value* kind = document.find_path("plot.kind");
  return kind != nullptr && kind->text == "map";
}

int run_plot(const std::vector<std::string>& arguments) {
  CommandLine line(
      kPlot,
      "Draws what the `plot` section of the file says, with gnuplot: a metric over epochs, over "
      "the values of a key, or of a probe over mini-batches or stages; or a map over two keys. A "
      "line is the mean over seeds, the band or bar its sample standard deviation (or 95 % "
      "interval), dashed what was published. Without such a section each label or scheme is a "
      "line, over the stages where these vary, and what else varies divides the pictures. Lines "
      "that are equal are one, and runs that diverged have a cross. SVG and PNG go to the folder "
      "`plots` of the results. "
      "--set and --profile must be those of the sweep.");
  line.experiment(true);
  line.option("metric", "M",
              "draw this metric instead of the file's plot.y, or plot.color of a map");
  line.option("hardware", "FILE",
              "draw against the hours that training would take on this hardware, as simulated: a "
              "file, or a name of `list hardware`");
  declare_results(line);
  line.option("output,o", "FOLDER", "write the pictures into this folder instead");
  if (!line.parse(arguments)) return 0;
  const ExperimentArguments given = line.experiment_arguments();
  Value document = given.document();
  apply_as_if_written(line, "metric", is_map(document) ? "plot.color" : "plot.y", document);
  apply_hardware(line, "plot.hardware", document);
  const PlotSpec spec = read_plot_spec(document);
  check_hardware(spec);
  if (line.given("results")) refuse_what_rows_lack(spec);
  const std::filesystem::path results = results_folder(given, document);
  const std::vector<RunRecord> runs =
      results_on(spec.hardware, document, results, {.results = line.text("results")});
  const std::filesystem::path folder =
      line.given("output") ? std::filesystem::path(line.text("output")) : results / "plots";
  if (spec.kind == PlotKind::Map) {
    const std::vector<HeatMap> maps = make_maps(spec, runs);
    require_some(!maps.empty(), spec, runs, given, results);
    draw_all(maps, folder);
  } else {
    const std::vector<Picture> pictures = make_pictures(spec, runs);
    require_some(!pictures.empty(), laid_out(spec, runs), runs, given, results);
    draw_all(pictures, folder);
  }
  if (const std::string note = mixing_note(spec, runs); !note.empty())
    print_error("%s\n", note.c_str());
  return 0;
}

}  // namespace

const Command kPlot{
    "plot",
    "plot FILE [--metric M] [--hardware H] [--results ROWS] [--output FOLDER] [--set key=value]…",
    "curves and maps as pictures", run_plot};

}  // namespace pipewright
