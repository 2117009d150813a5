// SPDX-License-Identifier: Apache-2.0
#include "pairs.h"

#include "cases.h"
#include "program.h"
#include "random.h"
#include "schemes.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>

namespace oracle {
namespace {

using E = Experiment;

/// A scheme with its default options.
template <int N>
struct Text {
  char text[N]{};
  constexpr Text(const char (&from)[N]) { std::copy_n(from, N, text); }
};
template <Text name>
void use_scheme(E& e) {
  e.scheme = {};
  e.scheme.name = name.text;
  if (e.scheme.name == "delayed_sgd") e.scheme.delay = {2};
}
template <Text name>
void use_optimizer(E& e) {
  e.optimizer = {};
  e.optimizer.name = name.text;
  e.optimizer.lr = e.optimizer.name == "sgd" ? 0.05 : 0.005;
  e.optimizer.momentum = e.optimizer.name == "sgd" ? 0.0 : 0.8;  // muon, spike_compensation
  e.optimizer.weight_decay = 0.02;
  e.optimizer.beta2 = 0.95;
  e.optimizer.eps = 0.001;
}
template <Text name>
void add_rule(E& e) {
  e.rules.push_back({.name = name.text, .norm = 0.2});
}

/// A choice of options: one of each group makes an experiment.
struct Feature {
  std::string group;
  std::string name;
  void (*choose)(Experiment& experiment);
};

const std::vector<Feature> kFeatures{
    {"scheme", "gpipe", use_scheme<"gpipe">},
    {"scheme", "data_parallel", use_scheme<"data_parallel">},
    {"scheme", "model_parallel", use_scheme<"model_parallel">},
    {"scheme", "one_f_one_b", use_scheme<"one_f_one_b">},
    {"scheme", "seq1f1b", use_scheme<"seq1f1b">},
    {"scheme", "interleaved", use_scheme<"interleaved">},
    {"scheme", "interleaved_whole",
     [](E& e) { use_scheme<"interleaved">(e), e.scheme.chunks = 1; }},
    {"scheme", "zb_h1", use_scheme<"zb_h1">},
    {"scheme", "zb_h2", use_scheme<"zb_h2">},
    {"scheme", "zb_v", use_scheme<"zb_v">},
    {"scheme", "v_half", use_scheme<"v_half">},
    {"scheme", "v_min", use_scheme<"v_min">},
    {"scheme", "hanayo", use_scheme<"hanayo">},
    {"scheme", "hanayo_waves", [](E& e) { use_scheme<"hanayo">(e), e.scheme.waves = 2; }},
    {"scheme", "dualpipe_v", use_scheme<"dualpipe_v">},
    {"scheme", "chimera", use_scheme<"chimera">},
    {"scheme", "dualpipe", use_scheme<"dualpipe">},
    {"scheme", "amdp", use_scheme<"amdp">},
    {"scheme", "paci", use_scheme<"paci">},
    {"scheme", "features_replay", use_scheme<"features_replay">},
    {"scheme", "pipedream_2bw", use_scheme<"pipedream_2bw">},
    {"scheme", "xpipe", use_scheme<"xpipe">},
    {"scheme", "delayed_sgd", use_scheme<"delayed_sgd">},
    {"scheme", "delayed_each",
     [](E& e) {
       use_scheme<"delayed_sgd">(e), e.scheme.delay = {3, 0, 2, 1};
     }},
    {"scheme", "pipedream", use_scheme<"pipedream">},
    {"scheme", "unstashed",
     [](E& e) { use_scheme<"pipedream">(e), e.scheme.weight_stashing = false; }},
    {"scheme", "synced", [](E& e) { use_scheme<"pipedream">(e), e.scheme.vertical_sync = true; }},
    {"scheme", "in_flight", [](E& e) { use_scheme<"pipedream">(e), e.scheme.in_flight = 2; }},
    {"scheme", "queue", [](E& e) { use_scheme<"pipedream">(e), e.scheme.refill = false; }},
    {"scheme", "lwp", use_scheme<"lwp">},
    {"scheme", "lwp_horizon", [](E& e) { use_scheme<"lwp">(e), e.scheme.horizon = 2; }},
    {"scheme", "lwp_short", [](E& e) { use_scheme<"lwp">(e), e.scheme.horizon = 0.5; }},
    {"scheme", "lwp_steps", [](E& e) { use_scheme<"lwp">(e), e.scheme.horizon_in_steps = true; }},
    {"scheme", "spectrain", use_scheme<"spectrain">},
    {"scheme", "spectrain_2", [](E& e) { use_scheme<"spectrain">(e), e.scheme.version = 2; }},
    {"scheme", "spectrain_exact",
     [](E& e) { use_scheme<"spectrain">(e), e.scheme.s_mode = "exact"; }},
    {"scheme", "spectrain_lookahead",
     [](E& e) { use_scheme<"spectrain">(e), e.scheme.velocity = "lookahead"; }},
    {"scheme", "spectrain_geometric",
     [](E& e) { use_scheme<"spectrain">(e), e.scheme.velocity = "geometric"; }},
    {"scheme", "spectrain_last",
     [](E& e) { use_scheme<"spectrain">(e), e.scheme.prediction_lr = "last"; }},
    {"scheme", "spectrain_as_coded",
     [](E& e) { use_scheme<"spectrain">(e), e.scheme.version = 2, e.scheme.as_coded = true; }},
    {"scheme", "spectrain_queue",
     [](E& e) {
       use_scheme<"spectrain">(e), e.scheme.version = 2, e.scheme.as_coded = true;
       e.scheme.refill = false;
     }},
    {"scheme", "pipeoptim", use_scheme<"pipeoptim">},
    {"scheme", "pipeoptim_offset", [](E& e) { use_scheme<"pipeoptim">(e), e.scheme.s_offset = 1; }},
    {"scheme", "pipeoptim_exact",
     [](E& e) { use_scheme<"pipeoptim">(e), e.scheme.s_mode = "exact"; }},
    {"scheme", "pipeoptim_lookahead",
     [](E& e) { use_scheme<"pipeoptim">(e), e.scheme.velocity = "lookahead"; }},
    {"scheme", "pipeoptim_geometric",
     [](E& e) { use_scheme<"pipeoptim">(e), e.scheme.velocity = "geometric"; }},
    {"scheme", "pipeoptim_last",
     [](E& e) { use_scheme<"pipeoptim">(e), e.scheme.prediction_lr = "last"; }},
    {"scheme", "pipeoptim_each",
     [](E& e) { use_scheme<"pipeoptim">(e), e.scheme.prediction_lr = "each"; }},
    {"scheme", "pipeoptim_decay",
     [](E& e) { use_scheme<"pipeoptim">(e), e.scheme.adamw_decay_in_prediction = true; }},
    {"scheme", "pipemare", use_scheme<"pipemare">},
    {"scheme", "pipemare_annealing",
     [](E& e) { use_scheme<"pipemare">(e), e.scheme.annealing = 7; }},
    {"scheme", "pipemare_plain",
     [](E& e) { use_scheme<"pipemare">(e), e.scheme.correction = false; }},
    {"scheme", "pipemare_decay", [](E& e) { use_scheme<"pipemare">(e), e.scheme.decay = 0.5; }},
    {"scheme", "pipemare_warmup", [](E& e) { use_scheme<"pipemare">(e), e.scheme.warmup = 3; }},
    {"scheme", "interlocking", use_scheme<"interlocking">},
    {"scheme", "interlocking_width",
     [](E& e) { use_scheme<"interlocking">(e), e.scheme.width = 2; }},
    {"scheme", "interlocking_sum",
     [](E& e) { use_scheme<"interlocking">(e), e.scheme.combine = "sum"; }},
    {"scheme", "interlocking_mean",
     [](E& e) { use_scheme<"interlocking">(e), e.scheme.combine = "mean"; }},

    {"optimizer", "sgd", use_optimizer<"sgd">},
    {"optimizer", "momentum", [](E& e) { use_optimizer<"sgd">(e), e.optimizer.momentum = 0.9; }},
    {"optimizer", "nesterov",
     [](E& e) {
       use_optimizer<"sgd">(e), e.optimizer.momentum = 0.8;
       e.optimizer.nesterov = true;
     }},
    {"optimizer", "dampening",
     [](E& e) {
       use_optimizer<"sgd">(e), e.optimizer.momentum = 0.8;
       e.optimizer.dampening = 0.25, e.optimizer.weight_decay = 0;
     }},
    {"optimizer", "adam", use_optimizer<"adam">},
    {"optimizer", "adam_betas",
     [](E& e) { use_optimizer<"adam">(e), e.optimizer.beta1 = 0.8, e.optimizer.weight_decay = 0; }},
    {"optimizer", "adamw", [](E& e) { use_optimizer<"adamw">(e), e.optimizer.weight_decay = 0.1; }},
    {"optimizer", "lion", use_optimizer<"lion">},
    {"optimizer", "nadamw", use_optimizer<"nadamw">},
    {"optimizer", "nadamw_decay",
     [](E& e) { use_optimizer<"nadamw">(e), e.optimizer.momentum_decay = 0.3; }},
    {"optimizer", "adan", use_optimizer<"adan">},
    {"optimizer", "muon", use_optimizer<"muon">},
    {"optimizer", "muon_plain", [](E& e) { use_optimizer<"muon">(e), e.optimizer.plain = true; }},
    {"optimizer", "soap", [](E& e) { use_optimizer<"soap">(e), e.optimizer.frequency = 4; }},
    {"optimizer", "spike_compensation", use_optimizer<"spike_compensation">},
    {"optimizer", "fixed_spikes",
     [](E& e) { use_optimizer<"spike_compensation">(e), e.optimizer.delay = 2; }},
    {"optimizer", "rmsprop", [](E& e) { use_optimizer<"rmsprop">(e), e.optimizer.momentum = 0; }},
    {"optimizer", "rms_momentum",
     [](E& e) { use_optimizer<"rmsprop">(e), e.optimizer.alpha = 0.9; }},
    {"optimizer", "stage_momenta",
     [](E& e) {
       use_optimizer<"sgd">(e), e.optimizer.momentum = 0.5;
       e.optimizer.momentum_by_delay = 0.9;
     }},
    {"optimizer", "stage_betas",
     [](E& e) { use_optimizer<"nadamw">(e), e.optimizer.momentum_by_delay = 0.99; }},

    {"decay", "", [](E&) {}},
    {"decay", "of_no_bias", [](E& e) { e.optimizer.biases_decay = false; }},

    {"rule", "unruled", [](E&) {}},
    {"rule", "clip", add_rule<"clip">},
    {"rule", "clip_model", [](E& e) { add_rule<"clip">(e), e.rules.back().over_model = true; }},
    {"rule", "dc_asgd", add_rule<"dc_asgd">},
    {"rule", "dc_asgd_adaptive",
     [](E& e) {
       add_rule<"dc_asgd">(e), e.rules.back().adaptive = true;
       e.rules.back().decay = 0.5;
     }},
    {"rule", "gap_aware", [](E& e) { add_rule<"gap_aware">(e), e.rules.back().eps = 0.01; }},
    {"rule", "staleness_lr", add_rule<"staleness_lr">},
    {"rule", "staleness_power",
     [](E& e) { add_rule<"staleness_lr">(e), e.rules.back().power = 0.5; }},
    {"rule", "error_feedback", add_rule<"error_feedback">},
    {"rule", "feedback_part",
     [](E& e) { add_rule<"error_feedback">(e), e.rules.back().coefficient = 0.4; }},

    {"second rule", "", [](E&) {}},
    {"second rule", "then_clip", [](E& e) { add_rule<"clip">(e), e.rules.back().norm = 0.5; }},
    {"second rule", "then_dc_asgd",
     [](E& e) { add_rule<"dc_asgd">(e), e.rules.back().lambda = 0.5, e.rules.back().eps = 0.001; }},
    {"second rule", "then_gap_aware",
     [](E& e) { add_rule<"gap_aware">(e), e.rules.back().decay = 0.5; }},
    {"second rule", "then_staleness_lr", add_rule<"staleness_lr">},
    {"second rule", "then_error_feedback", add_rule<"error_feedback">},

    {"perturb", "", [](E&) {}},
    {"perturb", "late1", [](E& e) { e.gradient_delay = 1; }},
    {"perturb", "late4", [](E& e) { e.gradient_delay = 4; }},

    {"drain", "", [](E&) {}},
    {"drain", "undrained", [](E& e) { e.drain_each_epoch = false; }},
    {"drain", "checkpoints", [](E& e) { e.checkpoint_every = 2; }},
    {"drain", "resumed", [](E& e) { e.checkpoint_every = 6, e.resumed = true; }},
    {"drain", "by_steps", [](E& e) { e.steps = 8; }},
    {"drain", "undrained_resumed",
     [](E& e) { e.drain_each_epoch = false, e.checkpoint_every = 6, e.resumed = true; }},

    {"rate", "", [](E&) {}},
    {"rate", "step", [](E& e) { e.learning_rate = {.name = "step", .gamma = 0.25}; }},
    {"rate", "steps", [](E& e) { e.learning_rate = {.name = "step", .per = "step", .size = 3}; }},
    {"rate", "multistep",
     [](E& e) {
       e.learning_rate = {.name = "multistep", .per = "step", .milestones = {2, 6}};
     }},
    {"rate", "poly", [](E& e) { e.learning_rate = {.name = "poly", .per = "step", .power = 2}; }},
    {"rate", "cosine",
     [](E& e) { e.learning_rate = {.name = "cosine", .per = "step", .end_lr = 0.001}; }},
    {"rate", "linear", [](E& e) { e.learning_rate = {.name = "linear", .per = "step"}; }},
    {"rate", "constant_then_linear",
     [](E& e) {
       e.learning_rate = {.name = "constant_then_linear", .per = "step", .constant = 0.25};
       e.learning_rate.warmup_share = 0.3;
     }},
    {"rate", "warmup",
     [](E& e) {
       e.learning_rate = {.name = "constant", .per = "step", .warmup_length = 3};
       e.learning_rate.warmup_start = 0.25;
     }},

    {"shape", "", [](E&) {}},
    {"shape", "two", [](E& e) { e.microbatches = 2; }},
    {"shape", "chunks", [](E& e) { e.microbatches = 3, e.microbatch_sizes = "torch_chunk"; }},
    {"shape", "replicas", [](E& e) { e.replicas = 2; }},
};

using Chosen = std::vector<std::size_t>;  // [group] → feature

const std::vector<std::vector<std::size_t>>& groups() {
  static const auto all = [] {
    std::vector<std::vector<std::size_t>> found;
    for (std::size_t i = 0; i < kFeatures.size(); ++i) {
      if (i == 0 || kFeatures[i].group != kFeatures[i - 1].group) found.emplace_back();
      found.back().push_back(i);
    }
    return found;
  }();
  return all;
}

bool among(const std::string& name, const std::vector<std::string>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The nearest shape that the scheme can run in.
void fit_shape(E& e) {
  const std::string& name = e.scheme.name;
  if (name == "data_parallel") {
    e.balance = {5};
    e.replicas += 1;
  }
  if (among(name, {"chimera", "dualpipe", "amdp"})) e.replicas = 2;
  if (name == "pipedream_2bw")
    e.microbatches = e.microbatch_sizes == "even" ? e.microbatches + 3 : e.stages();
  if (name == "amdp" || (name == "interleaved" && e.microbatches > 1))
    e.microbatches = e.microbatches > 2 ? 4 : 2;
  if (name == "interleaved" && e.scheme.chunks == 1 && e.microbatches > 1) e.microbatches = 4;
  e.batch_size = 7 * e.replicas;
  e.train_samples = 5 * e.batch_size;
}

E experiment_of(const Chosen& chosen) {
  E e;
  e.widths = {4, 5, 6, 5, 4, 3};
  e.balance = {1, 1, 2, 1};
  e.epochs = 2;
  e.optimizer.lr = 0.05;
  for (const std::size_t feature : chosen) {
    kFeatures[feature].choose(e);
    if (!kFeatures[feature].name.empty()) e.name += "_" + kFeatures[feature].name;
  }
  // A rule over the model stands first.
  std::stable_partition(e.rules.begin(), e.rules.end(), [](const auto& r) { return r.over_model; });
  fit_shape(e);
  if (e.optimizer.name == "soap") make_bases_unique(e);
  return e;
}

bool reads_one_version(const E& e) {
  for (int k = 0; k < e.stages(); ++k)
    for (int t = 0; t < 2 * e.stages(); ++t)
      for (int j = 1; j < e.microbatches; ++j)
        if (readings(e, k, t, j).forward != readings(e, k, t, 0).forward) return false;
  return true;
}

bool updates_all_stages_at_once(const std::string& scheme) {
  return among(scheme, {"data_parallel", "model_parallel", "delayed_sgd", "gpipe", "one_f_one_b",
                        "seq1f1b", "interlocking", "interleaved", "zb_h1", "zb_h2", "zb_v",
                        "v_half", "v_min", "hanayo", "dualpipe_v", "chimera", "dualpipe"});
}

/// Two features of different groups.
using Pair = std::pair<std::size_t, std::size_t>;

void for_each_pair(const Chosen& chosen, const auto& with) {
  for (std::size_t a = 0; a < chosen.size(); ++a)
    for (std::size_t b = a + 1; b < chosen.size(); ++b) with(Pair{chosen[a], chosen[b]});
}

/// The first feature of every group, but these two.
Chosen only(const Pair& pair) {
  Chosen chosen;
  for (const auto& group : groups()) {
    chosen.push_back(group.front());
    for (const std::size_t feature : {pair.first, pair.second})
      if (std::find(group.begin(), group.end(), feature) != group.end()) chosen.back() = feature;
  }
  return chosen;
}

bool is_defined(const Chosen& chosen) {
  return undefined_because(experiment_of(chosen)).empty();
}

std::vector<Pair> all_pairs() {
  std::vector<Pair> pairs;
  for (std::size_t a = 0; a < kFeatures.size(); ++a)
    for (std::size_t b = a + 1; b < kFeatures.size(); ++b)
      if (kFeatures[a].group != kFeatures[b].group) pairs.emplace_back(a, b);
  return pairs;
}

/// Of random choices with this pair, the one in which the most pairs meet that have not yet.
Chosen best_with(const Pair& pair, const std::set<Pair>& open, Random& random) {
  constexpr int kTries = 60;
  Chosen best = only(pair);
  std::size_t most = 0;
  for (int i = 0; i < kTries; ++i) {
    Chosen chosen = only(pair);
    for (std::size_t g = 0; g < chosen.size(); ++g)
      if (chosen[g] != pair.first && chosen[g] != pair.second)
        chosen[g] = random.one_of(groups()[g]);
    std::size_t met = 0;
    for_each_pair(chosen, [&](const Pair& each) { met += open.count(each); });
    if (met <= most || !is_defined(chosen)) continue;
    most = met;
    best = chosen;
  }
  return best;
}

/// The text between two braces or brackets from `begin` on.
std::string within(const std::string& text, std::size_t begin) {
  int depth = 0;
  for (std::size_t i = begin; i < text.size(); ++i) {
    if (text[i] == '{' || text[i] == '[') ++depth;
    if ((text[i] == '}' || text[i] == ']') && --depth == 0)
      return text.substr(begin + 1, i - begin - 1);
  }
  return text.substr(begin + 1);
}

/// The keys of a mapping in flow style with the texts of their values; or the items of a list.
std::vector<std::pair<std::string, std::string>> entries(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> all;
  int depth = 0;
  std::string item;
  for (const char c : text + ",") {
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (c != ',' || depth > 0) {
      if (c != ' ' || !item.empty()) item += c;
      continue;
    }
    const std::size_t colon = item.find(": ");
    if (!item.empty())
      all.emplace_back(item.substr(0, colon), colon < item.size() ? item.substr(colon + 2) : "");
    item.clear();
  }
  return all;
}

/// Adds the values of a mapping below its section or, if it names one, its part.
void note(const std::string& section, const std::string& mapping, OptionValues& values) {
  std::string part = section;
  for (const auto& [key, value] : entries(mapping))
    if (key == "name" && section != "lr_schedule") part += "." + value;
  values[part];
  for (const auto& [key, value] : entries(mapping)) values[part + "." + key].insert(value);
}

}  // namespace

std::string undefined_because(const Experiment& e) {
  const std::string& optimizer = e.optimizer.name;
  if (e.scheme.velocity == "lookahead" && optimizer != "sgd") return "velocity";
  if (e.scheme.velocity == "geometric" && !among(optimizer, {"sgd", "adam", "adamw"}))
    return "velocity";
  if (e.scheme.adamw_decay_in_prediction && !e.optimizer.biases_decay) return "no_decay";
  std::set<std::string> names;
  for (const RuleOptions& rule : e.rules) {
    if (!names.insert(rule.name).second) return "gradient_rules";
    if (rule.over_model && !updates_all_stages_at_once(e.scheme.name)) return "over: model";
    if (!among(rule.name, {"dc_asgd", "gap_aware"})) continue;
    if (e.gradient_delay > 0) return "gradient_delay";
    if (!reads_one_version(e)) return "different weights";
  }
  return "";
}

std::vector<Experiment> cases_of_pairs() {
  std::set<Pair> open;
  std::vector<Pair> order;
  for (const Pair& pair : all_pairs())
    if (is_defined(only(pair))) order.push_back(pair);
  open.insert(order.begin(), order.end());
  Random random(20261127);
  std::vector<Experiment> experiments;
  for (const Pair& pair : order) {
    if (!open.contains(pair)) continue;
    const Chosen chosen = best_with(pair, open, random);
    for_each_pair(chosen, [&](const Pair& each) { open.erase(each); });
    const std::string number = std::to_string(1000 + experiments.size());
    Experiment e = experiment_of(chosen);
    e.name = "pair_" + number + e.name.substr(std::string("oracle").size());
    e.data_seed = 7000 + experiments.size();
    e.execution = experiments.size() % 2 == 0 ? "serial" : "threads";
    experiments.push_back(std::move(e));
  }
  return experiments;
}

std::vector<Experiment> undefined_pairs() {
  std::vector<Experiment> experiments;
  for (const Pair& pair : all_pairs())
    if (Experiment e = experiment_of(only(pair)); !undefined_because(e).empty())
      experiments.push_back(std::move(e));
  return experiments;
}

OptionValues option_values(const std::vector<Experiment>& experiments) {
  OptionValues values;
  for (const Experiment& e : experiments) {
    std::istringstream file(experiment_file(e));
    for (std::string line; std::getline(file, line);) {
      const std::size_t begin = line.find_first_of("{[");
      if (begin == std::string::npos) continue;
      const std::string section = line.substr(0, line.find(':')), text = within(line, begin);
      if (line[begin] == '{') note(section, text, values);
      for (std::size_t rule = text.find('{'); line[begin] == '[' && rule != std::string::npos;
           rule = text.find('{', rule + 1))
        note(section, within(text, rule), values);
    }
  }
  return values;
}

}  // namespace oracle
