// SPDX-License-Identifier: Apache-2.0
// `pipewright plot`: draws learning curves of a sweep or of one run.
#include <cctype>
#include <set>

#include "core/base/error.h"
#include "core/reports/gnuplot.h"
#include "core/sweep/sweep_plan.h"
#include "core/system/file.h"
#include "core/system/plain_file.h"
#include "core/system/terminal.h"
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

/// A file name that is not taken yet. Titles may differ only in characters that file names cannot
/// have.
std::string name_of(const Picture& picture, std::set<std::string>& taken) {
  std::string name = file_name(picture.metric);
  if (!picture.hours_on.empty()) name += concat("-hours-", file_name(picture.hours_on));
  if (const std::string title = file_name(picture.title); !title.empty()) name += "-" + title;
  std::string free = name;
  for (int number = 2; !taken.insert(free).second; ++number) free = concat(name, "-", number);
  return free;
}

int run_plot(const std::vector<std::string>& arguments) {
  CommandLine line(
      kPlot,
      "Draws learning curves as the `plot` section of the file says, with gnuplot: a "
      "line is the mean over seeds, the band its sample standard deviation, dashed what "
      "was published. SVG and PNG go to the folder `plots` of the results. --set and "
      "--profile must be those of the sweep.");
  line.experiment(true);
  line.option("metric", "M", "draw this column of epochs.csv instead of the file's plot.metric");
  line.option("hardware", "FILE",
              "draw against the hours that training would take on this hardware, as simulated");
  line.option("output", "FOLDER", "write the pictures into this folder instead");
  if (!line.parse(arguments)) return 0;
  const ExperimentArguments given = line.experiment_arguments();
  Value document = given.document();
  apply_as_if_written(line, "metric", "plot.metric", document);
  apply_path(line, "hardware", "plot.hardware", document);
  const PlotSpec spec = read_plot_spec(document);
  const std::filesystem::path results = results_folder(given, document);
  const auto pictures = make_pictures(spec, results_on(spec.hardware, document, results));
  if (pictures.empty())
    throw Error(ErrorKind::Data,
                concat("no run has an epoch with ", spec.metric.name, " yet; `pipewright sweep ",
                       shell_quoted(given.file.string()), "` makes them"),
                results.string());
  const std::filesystem::path folder =
      line.given("output") ? std::filesystem::path(line.text("output")) : results / "plots";
  make_folders(folder);
  std::set<std::string> taken;
  for (const Picture& picture : pictures) {
    const std::string name = name_of(picture, taken);
    for (const auto& [format, ending] :
         {std::pair{PictureFormat::Svg, ".svg"}, std::pair{PictureFormat::Png, ".png"}}) {
      const std::filesystem::path file = folder / (name + ending);
      require_plain_file(file);
      draw(picture, format, file);
      print("wrote %s\n", file.c_str());
    }
  }
  return 0;
}

}  // namespace

const Command kPlot{"plot",
                    "plot FILE [--metric M] [--hardware H] [--output FOLDER] [--set key=value]…",
                    "learning curves as pictures", run_plot};

}  // namespace pipewright
