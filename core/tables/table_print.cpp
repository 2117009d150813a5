// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <span>

#include "core/base/markup.h"
#include "core/base/printable.h"
#include "core/base/printed.h"
#include "core/base/wording.h"
#include "core/tables/best_over.h"
#include "core/tables/run_keys.h"
#include "core/tables/table.h"
#include "core/tables/time_to.h"

namespace pipewright {
namespace {

/// Our mean minus the published number, in the unit shown; NaN if one is missing.
double difference(const Table& table, const TableCell& cell) {
  if (!cell.published || !cell.published->value) return std::nan("");
  return (table.percent ? 100 : 1) * cell.mean() - *cell.published->value;
}

/// Escapes a text from outside for the output format.
using Escaped = std::string (*)(std::string_view);

/// Shortens a text, because the longest cell determines the width of a table.
std::string shortened(std::string_view text) {
  constexpr std::size_t kMost = 200;  // characters
  return printable(text, kMost);
}

std::string for_markdown(std::string_view text) {
  return markdown_text(shortened(text));
}

/// The published number of a cell: "91.10 ± 0.10 published, +0.12 [1]".
std::string published_text(const Table& table, const TableCell& cell, Escaped escaped) {
  std::string text = escaped(cell.published->text);
  if (!cell.published->std.empty()) text += " ± " + escaped(cell.published->std);
  text += " published";
  const double d = difference(table, cell);
  if (!std::isnan(d))
    text += concat(
        ", ", d < 0 ? "−" : "+",
        printed("%.*f", table.percent ? 2 : decimals_of(*cell.published->value), std::abs(d)));
  for (const std::size_t note : cell.published->notes) text += concat(" [", note + 1, "]");
  return text;
}

/// "not reached by 2 of 3, reached at 1234": values are not averaged without those that have none.
std::string not_reached_text(const TableCell& cell) {
  std::vector<std::string> reached;
  for (const double value : cell.values)
    if (std::isfinite(value)) reached.push_back(shown_number("", value));
  return concat("not reached by ", cell.not_reached(), " of ", cell.values.size(),
                reached.empty() ? "" : concat(", reached at ", join(reached, ", ")));
}

/// The text of a cell: "93.10 ± 0.22 (3)", "93.10 (1) at 0.05" with a chosen value, "2 failed" or
/// "93.10 (1), 1 missing; 91.10 published, +2.00"; "–" without runs.
std::string cell_text(const Table& table, const TableCell& cell, Escaped escaped) {
  if (cell.empty()) return "–";
  std::vector<std::string> parts;
  const auto add = [&](int number, const std::string& what) {
    if (number > 0) parts.push_back(concat(number, " ", what));
  };
  const bool unreached = is_time_to(table.metric) && cell.not_reached() > 0;
  if (cell.failed == 0 && unreached) {
    parts.push_back(not_reached_text(cell));
  } else if (!cell.values.empty()) {
    std::string text =
        shown_mean(table.percent, cell.mean(), cell.values.size() > 1 ? cell.std() : kNoNumber);
    // The mean of the runs that survived must not pass for one of all runs.
    if (unreached) text = not_reached_text(cell);
    if (cell.failed > 0) parts.push_back(concat(cell.failed, " of ", cell.runs.size(), " failed"));
    parts.push_back(concat(cell.failed == 0     ? ""
                           : cell.uncounted > 0 ? "without them "
                                                : "with them ",
                           text, " (", cell.values.size(), ")",
                           cell.chosen.empty() ? "" : concat(" at ", escaped(cell.chosen))));
  } else {
    add(cell.failed, "failed");
  }
  add(cell.missing, "missing");
  add(cell.interrupted, "interrupted");
  add(cell.running, "running");
  add(cell.without, concat("without ", escaped(table.metric)));
  if (cell.learned) parts.push_back(concat(*cell.learned, " of ", cell.ended(), " learned"));
  std::string text = join(parts, ", ");
  if (cell.published) text += "; " + published_text(table, cell, escaped);
  return text;
}

std::string markdown(const Table& table) {
  std::vector<std::vector<std::string>> grid = table_texts(table, for_markdown);
  std::vector<std::size_t> widths(grid[0].size(), 3);
  for (std::vector<std::string>& line : grid)
    for (std::size_t c = 0; c < line.size(); ++c)
      widths[c] = std::max(widths[c], width_of(line[c]));
  std::string out = markdown_text(table.caption) + "\n\n";
  for (std::size_t r = 0; r < grid.size(); ++r) {
    for (std::size_t c = 0; c < grid[r].size(); ++c) {
      const bool name = c < table.row_keys.size();
      const std::string space(widths[c] - width_of(grid[r][c]), ' ');
      out += concat("| ", name ? grid[r][c] : space, name ? space : grid[r][c], " ");
    }
    out += "|\n";
    for (std::size_t c = 0; r == 0 && c < widths.size(); ++c) {
      const bool name = c < table.row_keys.size();
      const std::string line(widths[c] + 1, '-');
      out += name ? concat("|:", line) : concat("|", line, ":");
    }
    if (r == 0) out += "|\n";
  }
  if (const std::string note = mixing_note(table); !note.empty()) out += "\n" + note + "\n";
  if (!table.choices.empty()) out += concat("\n", markdown_text(choices_heading(table)), "\n");
  for (const std::string& choice : table.choices) out += concat("- ", markdown_text(choice), "\n");
  if (!table.notes.empty()) out += "\nDiffers from what was published:\n";
  for (std::size_t note = 0; note < table.notes.size(); ++note)
    out += concat("[", note + 1, "] ", markdown_text(table.notes[note]), "\n");
  return out;
}

std::string latex(const Table& table) {
  const std::vector<std::vector<std::string>> grid = table_texts(table, shortened);
  std::string out = concat(
      "% needs \\usepackage{booktabs}\n\\begin{table}\n  \\centering\n  \\caption{",
      latex_text(table.caption), "}\n  \\begin{tabular}{", std::string(table.row_keys.size(), 'l'),
      std::string(table.column_names.size() + table.beside.size(), 'r'), "}\n    \\toprule\n");
  for (std::size_t r = 0; r < grid.size(); ++r) {
    out += "    ";
    for (const std::string& text : grid[r])
      out += concat(&text == grid[r].data() ? "" : " & ", latex_text(text));
    out += " \\\\\n";
    if (r == 0) out += "    \\midrule\n";
  }
  out += "    \\bottomrule\n  \\end{tabular}\n";
  if (const std::string note = mixing_note(table); !note.empty())
    out += concat("  \\\\ {\\footnotesize ", latex_text(note), "}\n");
  if (!table.choices.empty())
    out +=
        concat("  \\\\ {\\footnotesize ",
               latex_text(concat(choices_heading(table), " ", join(table.choices, "; "))), "}\n");
  for (std::size_t note = 0; note < table.notes.size(); ++note)
    out += concat("  \\\\ {\\footnotesize [", note + 1, "] ", latex_text(table.notes[note]), "}\n");
  return out + "\\end{table}\n";
}

std::string notes_text(const Table& table, const TableCell& cell) {
  std::vector<std::string> notes;
  if (cell.published)
    for (const std::size_t note : cell.published->notes) notes.push_back(table.notes[note]);
  return join(notes, "; ");
}

/// CSV with one line per cell. Numbers have twelve digits; missing ones are empty fields.
std::string csv_lines(const Table& table, bool counts_not_reached) {
  std::string out;
  const auto plain = [](double value) {
    return std::isfinite(value) ? printed("%.12g", value) : std::string();
  };
  const auto number = [&](double value) { return plain((table.percent ? 100 : 1) * value); };
  for (std::size_t r = 0; r < table.cells.size(); ++r)
    for (std::size_t c = 0; c < table.cells[r].size(); ++c) {
      const TableCell& cell = table.cells[r][c];
      if (cell.empty()) continue;
      out += concat(csv_text(join(table.row_names[r], " / ")), ",", csv_text(table.column_names[c]),
                    ",", cell.values.size(), ",", number(cell.mean()), ",", number(cell.std()), ",",
                    cell.failed, ",", cell.missing, ",",
                    csv_text(cell.published ? cell.published->text : ""), ",", cell.interrupted,
                    ",", cell.running, ",", table.percent ? "percent" : unit_of(table.metric), ",",
                    plain(difference(table, cell)), ",", csv_text(notes_text(table, cell)),
                    table.best_over.empty() ? "" : concat(",", csv_text(cell.chosen)),
                    counts_not_reached ? "," : "",
                    is_time_to(table.metric) ? concat(cell.not_reached()) : "", "\n");
    }
  return out;
}

std::string csv(const Table& table) {
  std::string out =
      "row,column,n,mean,std,failed,missing,published,interrupted,running,unit,difference,"
      "differs";
  out += table.best_over.empty() ? "" : ",chosen";
  const bool counts =
      is_time_to(table.metric) || std::ranges::any_of(table.beside, [](const Table& other) {
        return is_time_to(other.metric);
      });
  out += counts ? ",not_reached\n" : "\n";
  out += csv_lines(table, counts);
  for (const Table& other : table.beside) out += csv_lines(other, counts);
  return out;
}

std::string choice_caption(const TableSpec& spec, const BestChoice& choice) {
  return concat(" Each cell shows the runs with its best value of ", spec.best_over->name,
                ": the value with the best mean ", spec.chosen_by, " on held-out samples.",
                choice.shows_held_out
                    ? " The results shown are those on the same samples, and so are too good; to "
                      "show test results, sweep loader.validation over 0, too."
                    : "");
}

/// "test_accuracy, percent": the heading of a further metric.
std::string heading_of(const Table& table) {
  const std::string unit = table.percent ? "percent" : unit_of(table.metric);
  return unit.empty() ? table.metric : concat(table.metric, ", ", unit);
}

}  // namespace

std::string table_caption(const Table& table, const TableSpec& spec, std::size_t runs,
                          const BestChoice* choice) {
  TableCell all;
  for (const std::vector<TableCell>& row : table.cells)
    for (const TableCell& cell : row) {
      all.values.insert(all.values.end(), cell.values.begin(), cell.values.end());
      all.failed += cell.failed;
      all.missing += cell.missing;
      all.interrupted += cell.interrupted;
      all.running += cell.running;
      all.without += cell.without;
    }
  const bool judged = better_values(table.metric) != Better::NotJudged;
  const std::string when =
      is_time_to(table.metric)    ? concat(" a test loss of ", shown_number("", spec.loss))
      : is_modelled(table.metric) ? concat(" on ", spec.hardware.stem().string())
                                  : concat(" at the ", judged ? spec.epoch : "last", " epoch");
  const std::string some =
      all.values.size() == runs ? std::string() : concat(all.values.size(), " of ");
  const std::string unit = unit_of(table.metric);
  std::string text = concat(table.metric, table.percent ? " in percent" : "", when,
                            unit.empty() ? "" : concat(", in ", unit),
                            ", mean ± sample standard deviation (number of runs); ", "from ", some,
                            counted(runs, "run"));
  const auto add = [&](int number, const char* what) {
    if (number > 0) text += concat(", ", number, " ", what);
  };
  add(all.failed, spec.failed_as ? "failed and counted" : "failed");
  add(all.missing, "missing");
  add(all.interrupted, "interrupted");
  add(all.running, "running");
  if (all.without > 0) text += concat(", ", all.without, " without ", table.metric);
  if (const TablePublished* const published = spec.published_of_metric())
    text += concat(". Behind our number stand the published one (",
                   published->file.filename().string(), ") and ours minus the published one");
  return text + "." + (choice == nullptr ? std::string() : choice_caption(spec, *choice));
}

std::string mixing_note(const Table& table) {
  std::vector<std::string> parts;
  const auto add = [&](const std::string& of, const std::vector<std::string>& keys) {
    if (!keys.empty())
      parts.push_back(concat(parts.empty() ? "Cells" : "cells", of, " mix ", listed(keys)));
  };
  add("", table.mixed);
  bool of_others = false;  // whose cells the columns do not divide
  for (const Table& other : table.beside)
    if (other.mixed != table.mixed) {
      add(" of " + other.metric, other.mixed);
      of_others = of_others || !other.mixed.empty();
    }
  if (parts.empty()) return {};
  return concat(join(parts, ", "), ": ± is over all runs of a cell, not over seeds alone; ",
                of_others ? "table.rows" : "table.rows or table.columns", " can tell them apart.");
}

std::string choices_heading(const Table& table) {
  return concat(table.best_over, " chosen on held-out samples (their mean, runs):");
}

std::vector<std::vector<std::string>> table_texts(const Table& table, Escaped escaped) {
  std::vector<std::vector<std::string>> grid{table.row_keys};
  grid[0].insert(grid[0].end(), table.column_names.begin(), table.column_names.end());
  for (const Table& other : table.beside) grid[0].push_back(heading_of(other));
  for (std::string& name : grid[0]) name = escaped(name);
  for (std::size_t r = 0; r < table.cells.size(); ++r) {
    std::vector<std::string>& line = grid.emplace_back(table.row_names[r]);
    for (std::string& name : line) name = escaped(name);
    for (const TableCell& cell : table.cells[r]) line.push_back(cell_text(table, cell, escaped));
    for (const Table& other : table.beside)
      line.push_back(cell_text(other, other.cells[r][0], escaped));
  }
  return grid;
}

std::string print_list(const std::string& heading, const std::vector<std::string>& sentences,
                       TableFormat format) {
  const bool latex = format == TableFormat::Latex;
  const auto escaped = [&](const std::string& text) {
    return latex ? latex_text(text) : format == TableFormat::Markdown ? markdown_text(text) : text;
  };
  std::string text = concat(escaped(heading), ":\n", latex ? "\\begin{itemize}\n" : "");
  for (const std::string& sentence : sentences)
    text += concat(latex ? "  \\item " : "- ", escaped(sentence), "\n");
  return latex ? text + "\\end{itemize}\n" : text;
}

std::string print_table(const Table& table, TableFormat format) {
  switch (format) {
    case TableFormat::Markdown: return markdown(table);
    case TableFormat::Csv: return csv(table);
    case TableFormat::Latex: return latex(table);
  }
  return {};
}

}  // namespace pipewright
