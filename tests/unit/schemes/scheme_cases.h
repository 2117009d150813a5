// SPDX-License-Identifier: Apache-2.0
/// Schemes made from the text of their options, as from an experiment file; and every scheme with
/// every combination of options, for properties that hold for all schemes.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/config/options.h"
#include "core/schedule/schedule.h"

namespace pipewright {

/// A scheme made from YAML, and the problems of its options.
struct SchemeReading {
  SchemeReading(const std::string& name, const std::string& text)
      : document(parse_yaml(text, "f.yaml")), options(&document, "scheme", problems) {
    const auto* entry = Registry<Scheme>::instance().find(name);
    if (entry == nullptr) throw std::invalid_argument("there is no scheme " + name);
    scheme = entry->make(options);
    options.finish();
  }

  Value document;
  Problems problems;
  Options options;
  std::unique_ptr<Scheme> scheme;
};

inline std::vector<OptionInfo> declared_options(const std::string& name,
                                                const std::string& text = "{}") {
  return SchemeReading(name, text).options.declared();
}

/// The schedule of a scheme whose options must be right.
inline Schedule schedule_of(const std::string& name, const std::string& options,
                            const PipelineShape& shape) {
  const SchemeReading reading(name, options);
  reading.problems.throw_if_any();
  return reading.scheme->schedule(shape);
}

struct SchemeCase {
  std::string name;
  std::string options;  ///< such as "{version: 2, s_mode: exact}"
};

/// Values to try for an option: all values of a flag or choice, a few of other types.
inline std::vector<std::string> texts_of(const OptionInfo& info) {
  std::vector<std::string> texts;
  if (info.type == OptionInfo::Type::Flag) return {"false", "true"};
  for (const Value& choice : info.choices) texts.push_back(choice.text);
  if (info.name == "width") texts = {"1", "2", "3", "all"};
  if (info.name == "delay")
    texts = {"0", "1", "3", "{law: geometric, mean: 2}",
             "{law: uniform, mean: 1.5, per_stage: true}"};
  if (info.name == "warmup") texts = {"0", "2"};
  if (info.name == "chunks") texts = {"1", "2", "3"};
  if (info.name == "waves") texts = {"1", "2"};
  if (info.name == "in_flight") texts = {"all", "2"};
  if (info.name == "horizon") texts = {"1", "2"};
  if (texts.empty()) texts.push_back(info.fallback.text);
  return texts;
}

/// Whether replicas of the scheme share workers.
inline bool shares_workers(const std::string& name) {
  return !SchemeReading(name, "{}").scheme->replica_placement(4, 2).empty();
}

/// Every registered scheme whose replicas do or do not share workers, with every combination
/// of its options that is not refused; without csv_schedule, which has only the shape of its file.
inline std::vector<SchemeCase> schemes_that_share_workers(bool share = true) {
  std::vector<SchemeCase> cases;
  for (const std::string& name : Registry<Scheme>::instance().names()) {
    if (name == "csv_schedule" || shares_workers(name) != share) continue;
    std::vector<std::string> texts{""};
    for (const OptionInfo& info : declared_options(name)) {
      std::vector<std::string> longer;
      for (const std::string& text : texts)
        for (const std::string& value : texts_of(info))
          longer.push_back(concat(text, text.empty() ? "" : ", ", info.name, ": ", value));
      texts = std::move(longer);
    }
    for (const std::string& text : texts)
      if (const std::string options = "{" + text + "}";
          SchemeReading(name, options).problems.empty())
        cases.push_back({name, options});
  }
  return cases;
}

/// The schemes that run with any number of replicas: all but schemes_that_share_workers() and
/// csv_schedule.
inline std::vector<SchemeCase> every_scheme() {
  return schemes_that_share_workers(false);
}

/// The first of every scheme's combinations of options, for what takes longer.
inline std::vector<SchemeCase> first_of_each_scheme() {
  std::vector<SchemeCase> some;
  for (const SchemeCase& scheme : every_scheme())
    if (some.empty() || some.back().name != scheme.name) some.push_back(scheme);
  return some;
}

/// A flush, stashed weights, predicted and extrapolated ones, split backwards, auxiliary heads: for
/// tests before every commit of what others, which take longer, hold for every_scheme().
inline std::vector<SchemeCase> scheme_of_each_kind() {
  return {{"gpipe", "{}"},    {"pipedream", "{}"}, {"spectrain", "{}"},
          {"pipemare", "{}"}, {"zb_h1", "{}"},     {"interlocking", "{width: 2}"}};
}

/// The shape with as many more stages and replicas as the scheme needs for replicas that share
/// workers, and nothing placed.
inline PipelineShape shape_that_shares(const std::string& name, PipelineShape shape) {
  const SchemeReading reading(name, "{}");
  shape.placement.clear();
  for (const int replicas = shape.replicas;; ++shape.stages)
    for (shape.replicas = replicas; shape.replicas < replicas + shape.stages; ++shape.replicas)
      if (!reading.scheme->replica_placement(shape.stages, shape.replicas).empty()) return shape;
}

/// The scheme's options with `name: …` before them.
inline std::string scheme_text(const SchemeCase& scheme) {
  const std::string options = scheme.options.substr(1, scheme.options.size() - 2);
  return concat("{name: ", scheme.name, options.empty() ? "" : ", ", options, "}");
}

}  // namespace pipewright
