// SPDX-License-Identifier: Apache-2.0
#include "core/exports/run_choice.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/error.h"
#include "core/base/parsed.h"
#include "core/base/wording.h"
#include "core/exports/differing_options.h"
#include "core/tables/run_keys.h"

namespace pipewright {
namespace {

using Texts = std::map<std::string, std::string>;  // dotted key → value of a run

struct Setting {
  std::string key, value;
  std::string text() const { return concat(key, "=", value); }
};

[[noreturn]] void refuse_where(const std::string& why) {
  throw Error(ErrorKind::Experiment, why, "--where");
}

Texts texts_of(const RunRecord& run) {
  Texts texts = run.config.known() ? option_texts(run.config.whole()) : Texts();
  for (const auto& [key, value] : run.varied.fields) texts.try_emplace(key, value_text(value));
  texts["label"] = run.label;
  texts["state"] = run.state;
  texts["workers"] = key_text(run, "workers");
  return texts;
}

std::string value_in(const Texts& run, const std::string& key) {
  const auto found = run.find(key);
  return found == run.end() ? kNoValue : found->second;
}

/// The values that runs have of a key, in the order of the runs: "1, 2, 3".
std::string values_text(const std::vector<Texts>& runs, const std::string& key) {
  constexpr std::size_t kMost = 6;
  std::vector<std::string> values;
  for (const Texts& run : runs)
    if (const std::string value = value_in(run, key); std::ranges::count(values, value) == 0)
      values.push_back(value);
  const bool more = values.size() > kMost;
  if (more) values.resize(kMost);
  return join(values, ", ") + (more ? ", …" : "");
}

bool differ_in(const std::vector<Texts>& runs, const std::string& key) {
  return std::ranges::any_of(
      runs, [&](const Texts& run) { return value_in(run, key) != value_in(runs.front(), key); });
}

/// The keys in which runs differ, but not what follows from them: those of the sweep and those of
/// differing_options(), where there are some, and of these a label only if several runs share it.
std::vector<std::string> telling_keys(const std::vector<Texts>& runs,
                                      const std::vector<RunRecord>& records) {
  std::vector<std::string> all{"state"}, varied;
  for (const Texts& run : runs)
    for (const auto& [key, value] : run)
      if (key != "label" && key != "workers" && std::ranges::count(all, key) == 0)
        all.push_back(key);
  for (const RunRecord& record : records)
    for (const auto& [key, value] : record.varied.fields)
      if (std::ranges::count(varied, key) == 0) varied.push_back(key);
  std::vector<const RunRecord*> compared;
  for (const RunRecord& record : records) compared.push_back(&record);
  for (const std::string& key : differing_options(compared)) varied.push_back(key);
  for (std::vector<std::string>* keys : {&varied, &all})
    std::erase_if(*keys, [&](const std::string& key) { return !differ_in(runs, key); });
  std::set<std::string> labels;
  for (const RunRecord& record : records) labels.insert(record.label);
  if (varied.size() > 1 && labels.size() == records.size()) std::erase(varied, "label");
  return varied.empty() ? all : varied;
}

/// A value with commas, as a list, goes on behind them.
std::vector<Setting> settings_of(const std::string& text) {
  std::vector<Setting> settings;
  for (const std::string& part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    if (equals != std::string::npos && equals > 0)
      settings.push_back({std::string(trimmed(part.substr(0, equals))),
                          std::string(trimmed(part.substr(equals + 1)))});
    else if (!settings.empty())
      settings.back().value += "," + part;
    else
      refuse_where(concat("'", text, "' is no KEY=VALUE; expected settings such as seed=2"));
  }
  return settings;
}

/// The dotted path that a key is, or ends.
std::string full_key(const std::string& key, const std::vector<Texts>& runs) {
  std::set<std::string> known, fitting;
  for (const Texts& run : runs)
    for (const auto& [each, value] : run) {
      known.insert(each);
      if (each.ends_with("." + key) || each == key + ".name") fitting.insert(each);
    }
  if (known.contains(key)) return key;
  if (fitting.size() > 1) {
    std::set<std::string> varying;
    for (const std::string& each : fitting)
      if (differ_in(runs, each)) varying.insert(each);
    if (varying.size() == 1) return *varying.begin();
  }
  if (fitting.size() == 1) return *fitting.begin();
  if (fitting.empty())
    refuse_where(concat("no run has an option '", key, "'",
                        did_you_mean(key, std::vector<std::string>(known.begin(), known.end()))));
  refuse_where(concat("'", key, "' may be ",
                      join(std::vector<std::string>(fitting.begin(), fitting.end()), " or "),
                      "; write which"));
}

/// `b` as a user writes it: lists may have blanks.
bool same_value(const std::string& a, std::string b) {
  if (b.starts_with('[')) std::erase(b, ' ');
  const auto first = parsed<double>(a), second = parsed<double>(b);
  return a == b || (first && second && *first == *second);
}

}  // namespace

const RunRecord& chosen_run(const std::vector<RunRecord>& runs, const std::string& settings) {
  std::vector<Texts> texts;
  for (const RunRecord& run : runs) texts.push_back(texts_of(run));
  std::vector<std::size_t> fitting(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) fitting[i] = i;
  std::vector<Texts> left = texts;
  std::string so_far;
  for (Setting setting : settings_of(settings)) {
    setting.key = full_key(setting.key, texts);
    std::erase_if(fitting, [&](std::size_t i) {
      return !same_value(value_in(texts[i], setting.key), setting.value);
    });
    if (fitting.empty())
      refuse_where(concat("no run", so_far.empty() ? "" : concat(" with ", so_far), " has ",
                          setting.text(), "; its values are ", values_text(left, setting.key)));
    so_far += concat(so_far.empty() ? "" : ",", setting.text());
    left.clear();
    for (const std::size_t i : fitting) left.push_back(texts[i]);
  }
  if (fitting.size() == 1) return runs[fitting.front()];
  std::vector<RunRecord> several;
  for (const std::size_t i : fitting) several.push_back(runs[i]);
  std::vector<std::string> differences;
  for (const std::string& key : telling_keys(left, several))
    if (differences.size() < 3)
      differences.push_back(concat(key, " (", values_text(left, key), ")"));
  if (differences.empty())
    for (const RunRecord& run : several) differences.push_back(run.folder.filename().string());
  refuse_where(
      concat(several.size(), " runs have ", so_far, "; they differ in ", join(differences, ", ")));
}

std::vector<std::string> distinguishing_settings(const std::vector<RunRecord>& runs) {
  std::vector<Texts> texts;
  for (const RunRecord& run : runs) texts.push_back(texts_of(run));
  std::vector<std::string> keys = telling_keys(texts, runs);
  std::erase(keys, "state");
  std::vector<std::string> all;
  for (const Texts& run : texts) {
    std::vector<std::string> settings;
    for (const std::string& key : keys)
      if (run.contains(key)) settings.push_back(Setting{key, run.at(key)}.text());
    all.push_back(join(settings, ","));
  }
  return all;
}

}  // namespace pipewright
