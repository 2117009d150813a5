// SPDX-License-Identifier: Apache-2.0
// Where the runs were trained, by which program, and the digests of their settings and data; and
// runs without results, with the reason that they gave.
#include <array>
#include <map>
#include <utility>

#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/config/json.h"
#include "core/page/sections.h"

namespace pipewright {
namespace {

/// Facts about the machine and the program, in words and by their keys in run.json.
constexpr std::array<std::pair<const char*, const char*>, 8> kFacts{
    {{"machine", "machine"},
     {"processor", "processor"},
     {"instruction set", "instruction_set"},
     {"cores", "cores"},
     {"processes", "processes"},
     {"Pipewright", "pipewright"},
     {"commit", "commit"},
     {"LibTorch", "libtorch"}}};

constexpr std::size_t kMostRunsListed = 1000;

/// A field of run.json as a text; "" if it is not there.
std::string field_text(const Value& run, const char* name) {
  const Value* const field = run.find(name);
  if (field == nullptr) return {};
  return field->is(Value::Kind::Text) ? field->text : to_json(*field);
}

/// Facts, each with its values and how many runs have them.
class Facts {
 public:
  void add(const std::string& what, const std::string& value) {
    if (!value.empty()) ++facts_[what][value];
  }
  void read(const Value& run) {
    for (const auto& [what, field] : kFacts) add(what, field_text(run, field));
    if (const Value* const contents = run.find("contents"))
      for (const auto& [path, digest] : contents->fields)
        add(concat("content of ", path), digest.text);
    if (const Value* const plugins = run.find("plugins"))
      for (const Value& plugin : plugins->items)
        add(concat("plugin ", field_text(plugin, "path")), field_text(plugin, "sha256"));
  }

  std::string table(std::size_t runs) const {
    if (facts_.empty()) return {};
    HtmlTable table("Where and with what the runs were trained", {"", "", "runs"}, 1);
    for (const auto& [what, values] : facts_)
      for (const auto& [value, count] : values)
        table.row({html_text(what, 120), concat("<code>", html_text(value, 200), "</code>"),
                   count == runs ? "all" : std::to_string(count)});
    return std::move(table).html();
  }

 private:
  std::map<std::string, std::map<std::string, std::size_t>> facts_;
};

std::string seconds_text(const Value& run) {
  const Value* const seconds = run.find("wall_seconds");
  if (seconds == nullptr) return "–";
  return duration_text(seconds->is(Value::Kind::Integer) ? static_cast<double>(seconds->integer)
                                                         : seconds->number);
}

constexpr std::size_t kMostFailures = 200;

std::string reason_of(const RunRecord& run) {
  if (!run.error.empty()) return run.error;
  if (run.state == "running") return "it is still running";
  if (run.state == "interrupted") return "it was interrupted, or killed";
  if (run.state == "missing") return "it has not begun";
  return "it says no reason";
}

}  // namespace

PageSection provenance_section(const Report& report) {
  PageSection section{.id = "machine", .title = "Machine and digests"};
  Facts facts;
  HtmlTable runs("Runs, with the digests of their settings", {"run", "digest", "started", "took"},
                 1);
  std::size_t read = 0, listed = 0;
  for (const RunRecord& run : report.runs) {
    Value file;
    try {
      std::error_code none;
      if (std::filesystem::exists(run.folder / "run.json", none))
        file = load_json(run.folder / "run.json");
    } catch (const Error&) {
      // The run counts as failed, and its reason says what is wrong with the file.
    }
    if (file.is(Value::Kind::Mapping)) {
      ++read;
      facts.read(file);
    }
    if (++listed > kMostRunsListed) continue;
    runs.row({html_text(run.folder.filename().string(), 120),
              concat("<code>", html_text(run.digest, 40), "</code>"),
              html_text(field_text(file, "started"), 40), seconds_text(file)});
  }
  if (report.runs.empty()) return section;
  const std::string rest = listed > kMostRunsListed ? concat("<p>", listed - kMostRunsListed,
                                                             " more are not listed.</p>\n")
                                                    : std::string();
  section.body = concat(
      "<div class=\"words\">", facts.table(read),
      html_details(counted(report.runs.size(), "run"), std::move(runs).html() + rest), "</div>\n");
  return section;
}

PageSection failures_section(const Report& report) {
  PageSection section{.id = "failures", .title = "Runs without results"};
  HtmlTable table("Runs that are not done, with the reason that they gave",
                  {"run", "state", "reason"}, 1);
  std::size_t count = 0;
  for (const RunRecord& run : report.runs) {
    if (run.done()) continue;
    if (++count > kMostFailures) continue;
    table.row(
        {html_text(run.folder.filename().empty() ? run.label : run.folder.filename().string(), 120),
         html_text(run.diverged() ? "diverged" : run.state, 40), html_text(reason_of(run), 1000)});
  }
  if (count == 0) return section;
  section.body = concat("<div class=\"words\">", std::move(table).html(), "</div>");
  if (count > kMostFailures)
    section.body += concat("<p>", count - kMostFailures, " more are not listed.</p>\n");
  return section;
}

}  // namespace pipewright
