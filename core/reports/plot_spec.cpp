#include "core/reports/plot_spec.h"

#include <utility>

namespace pipewright {
namespace {

PlotPublished read_published(Options& section) {
  PlotPublished published;
  published.numbers = read_published_match(section);
  published.epoch.name = section.text("epoch", "epoch", "The CSV column of the epoch.");
  published.epoch.place = section.where("epoch");
  published.first_epoch = static_cast<int>(
      section.integer("first_epoch", 1, "What the file calls the first epoch.", {0, 1}));
  return published;
}

PlotSpec read(Options& options) {
  PlotSpec spec;
  spec.pictures = read_keys(options, "pictures",
                            "label or dotted keys; each of their values is a picture of its own; "
                            "default: one picture.");
  spec.lines = read_keys(options, "lines",
                         "label or dotted keys; each of their values is a line, the mean over what "
                         "else varies (seeds); default: label.");
  if (spec.lines.empty()) spec.lines.push_back({"label", options.where("lines")});
  spec.metric.name = options.text("metric", "test_accuracy", "A column of epochs.csv.");
  spec.metric.place = options.where("metric");
  spec.hardware = options.path("hardware", "",
                               "A description of hardware: every run is simulated on it, and "
                               "curves are drawn against hours there instead of epochs.");
  Options section = options.section("published", "Curves of others, drawn dashed beside ours.");
  const bool wanted = options.given("published");
  Problems unheard;  // without the section, its absent options are no problems
  Options nothing(nullptr, "plot.published", unheard);
  PlotPublished published = read_published(wanted ? section : nothing);
  if (wanted) spec.published = std::move(published);
  if (wanted) section.finish();
  return spec;
}

}  // namespace

PlotSpec read_plot_spec(const Value& document) {
  Problems problems;
  Options options(document.find("plot"), "plot", problems);
  PlotSpec spec = read(options);
  options.finish();
  problems.throw_if_any();
  return spec;
}

std::vector<OptionInfo> plot_options() {
  const Value given = parse_yaml("published: {file: x.csv, match: {scheme: label}}", "");
  Problems unheard;
  Options options(&given, "plot", unheard);
  read(options);
  return options.declared();
}

}  // namespace pipewright
