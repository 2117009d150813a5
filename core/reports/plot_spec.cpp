// SPDX-License-Identifier: Apache-2.0
#include "core/reports/plot_spec.h"

#include <utility>

#include "core/reports/read_section.h"

namespace pipewright {
namespace {

PlotPublished read_plot_published(Options& section) {
  PlotPublished published;
  published.numbers = read_published_match(section);
  published.epoch.name = section.text("epoch", "epoch", "The CSV column of the epoch.");
  published.epoch.place = section.where("epoch");
  published.first_epoch = static_cast<int>(section.integer(
      "first_epoch", 1, "The number of the first epoch in the file, 0 or 1.", {0, 1}));
  return published;
}

PlotSpec read_plot(Options& options) {
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
                               "curves are drawn against the hours it would take there instead of "
                               "epochs.");
  spec.published = read_part(options, "published", "Curves of others, drawn dashed beside ours.",
                             read_plot_published);
  return spec;
}

}  // namespace

PlotSpec read_plot_spec(const Value& document) {
  return read_section(document, "plot", read_plot);
}

std::vector<OptionInfo> plot_options() {
  return options_read_by(read_plot, "plot", "published: {file: x.csv, match: {scheme: label}}");
}

}  // namespace pipewright
