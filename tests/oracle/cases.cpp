// SPDX-License-Identifier: Apache-2.0
#include "cases.h"

#include "random.h"

#include <algorithm>
#include <cmath>

namespace oracle {
namespace {

/// Takes the next digit of `number`, in base `choices`.
int digit(int& number, int choices) {
  const int value = number % choices;
  number /= choices;
  return value;
}

template <typename T>
T cycle(int& number, const std::vector<T>& choices) {
  return choices[static_cast<std::size_t>(digit(number, static_cast<int>(choices.size())))];
}

bool one_of(const std::string& name, const std::vector<std::string>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// `number` counts the cases of the scheme.
SchemeOptions scheme_options(const std::string& name, int number, int stages, Random& random) {
  SchemeOptions scheme;
  scheme.name = name;
  if (name == "pipedream") {
    const int kind = digit(number, 3);
    scheme.weight_stashing = kind != 1;
    scheme.vertical_sync = kind == 2;
    scheme.in_flight = cycle<int>(number, {0, 0, 2, 3});
  } else if (name == "spectrain") {
    scheme.version = cycle<int>(number, {1, 2});
    scheme.s_mode = cycle<std::string>(number, {"constant", "exact"});
    scheme.velocity = cycle<std::string>(number, {"buffer", "lookahead", "geometric"});
  } else if (name == "pipeoptim") {
    scheme.velocity =
        cycle<std::string>(number, {"buffer", "buffer", "buffer", "lookahead", "geometric"});
    scheme.s_offset = cycle<int>(number, {0, 1});
    scheme.s_mode = cycle<std::string>(number, {"constant", "exact"});
  } else if (name == "interlocking") {
    scheme.width = number % 4;  // 0 = all; a number may exceed the stages
    digit(number, 4);
    scheme.combine = cycle<std::string>(number, {"furthest", "sum", "mean"});
  } else if (name == "pipemare") {
    scheme.correction = digit(number, 4) != 3;
    scheme.annealing = cycle<int>(number, {5, 0, 1000});
    scheme.warmup = random.one_of<int>({0, 0, 3, 4});
    scheme.decay = random.one_of<double>({0.135, 0.5});
  } else if (name == "interleaved") {
    scheme.chunks = 1 + number % 3;
  } else if (name == "hanayo") {
    scheme.waves = 1 + number % 2;
  } else if (name == "lwp") {
    scheme.horizon = cycle<double>(number, {1, 0.5, 2});
    scheme.horizon_in_steps = digit(number, 2) == 1;
    if (scheme.horizon_in_steps) scheme.horizon = std::ceil(scheme.horizon);
  } else if (name == "delayed_sgd") {
    const int delays = digit(number, 2) == 0 ? 1 : stages;
    for (int i = 0; i < delays; ++i) scheme.delay.push_back(random.integer(0, 4));
  }
  return scheme;
}

/// The look-ahead and geometric velocities, and SpecTrain as a whole, are defined for SGD only.
std::string optimizer_name(const SchemeOptions& scheme, int number) {
  if (one_of(scheme.name, {"spectrain", "lwp"}) || scheme.velocity != "buffer") return "sgd";
  return cycle<std::string>(number, {"sgd", "adam", "adamw", "sgd", "sgd"});
}

OptimizerOptions optimizer_options(const std::string& name, Random& random) {
  OptimizerOptions optimizer;
  optimizer.name = name;
  if (name == "sgd") {
    optimizer.lr = random.one_of<double>({0.02, 0.05, 0.1});
    optimizer.momentum = random.one_of<double>({0, 0.5, 0.9, 0.9});
    optimizer.weight_decay = random.one_of<double>({0, 0.0005, 0.01});
    if (optimizer.momentum > 0 && random.once_in(4)) optimizer.nesterov = true;
    if (optimizer.momentum > 0 && !optimizer.nesterov && random.once_in(4))
      optimizer.dampening = 0.25;
    return optimizer;
  }
  optimizer.lr = random.one_of<double>({0.001, 0.005, 0.01});
  optimizer.weight_decay =
      name == "adamw" ? random.one_of<double>({0.01, 0.1}) : random.one_of<double>({0, 0.01});
  if (random.once_in(3)) {
    optimizer.beta1 = 0.8;
    optimizer.beta2 = 0.95;
    optimizer.eps = 0.0001;
  }
  return optimizer;
}

/// Warm-up only where the schedule stands still meanwhile: its interplay with a decay is not
/// tested.
LearningRateOptions learning_rate_options(int minibatches, Random& random) {
  LearningRateOptions schedule;
  schedule.name = random.one_of<std::string>(
      {"constant", "constant", "step", "multistep", "poly", "cosine", "linear"});
  schedule.per = random.one_of<std::string>({"epoch", "step"});
  const bool per_step = schedule.per == "step";
  schedule.gamma = 0.5;
  schedule.size = per_step ? minibatches : 1;
  schedule.milestones = per_step ? std::vector{3, minibatches + 1} : std::vector{1, 2};
  schedule.power = random.one_of<double>({1, 2});
  schedule.end_lr = random.one_of<double>({0, 0.001});
  const bool still = schedule.name == "constant" || (schedule.name == "multistep" && per_step);
  if (still && random.once_in(2)) {
    schedule.warmup_length = per_step ? 3 : 1;
    schedule.warmup_start = 0.25;
  }
  return schedule;
}

/// Layers of random width, cut into stages of one to three layers.
void choose_model(Experiment& experiment, int stages, Random& random) {
  experiment.activation = random.one_of<Activation>(
      {Activation::Tanh, Activation::Tanh, Activation::Relu, Activation::Identity});
  experiment.widths = {random.integer(3, 6)};
  for (int k = 0; k < stages; ++k) {
    experiment.balance.push_back(random.one_of<int>({1, 1, 2, 3}));
    for (int i = 0; i < experiment.balance.back(); ++i)
      experiment.widths.push_back(random.integer(3, 8));
  }
}

int choose_stages(const std::string& scheme, Random& random) {
  if (scheme == "data_parallel") return 1;
  if (scheme == "amdp") return random.one_of<int>({4, 4, 8});
  if (one_of(scheme, {"chimera", "dualpipe"})) return random.one_of<int>({2, 4, 6});
  if (one_of(scheme, {"model_parallel", "gpipe", "one_f_one_b", "seq1f1b", "interleaved", "zb_h1",
                      "zb_h2", "zb_v", "v_half", "v_min", "hanayo", "dualpipe_v"}))
    return random.integer(1, 5);
  return random.one_of<int>({1, 2, 3, 3, 4, 4, 5, 6});
}

/// Micro-batches of a mini-batch: one where vertical sync is asked for, which is defined for one
/// only.
int choose_microbatches(const Experiment& experiment, Random& random) {
  const SchemeOptions& scheme = experiment.scheme;
  if (one_of(scheme.name, {"data_parallel", "model_parallel"}) || scheme.vertical_sync) return 1;
  if (scheme.name == "pipedream_2bw") return experiment.stages() + random.integer(0, 2);
  if (scheme.name == "amdp") return random.one_of<int>({2, 4, 6});
  if (scheme.name == "interleaved") {  // whole rounds
    const int workers = (experiment.stages() + scheme.chunks - 1) / scheme.chunks;
    return random.one_of<int>({1, workers, 2 * workers});
  }
  if (one_of(scheme.name,
             {"gpipe", "one_f_one_b", "seq1f1b", "xpipe", "zb_h1", "zb_h2", "zb_v", "v_half",
              "v_min", "hanayo", "dualpipe_v", "chimera", "dualpipe", "paci"}))
    return random.integer(1, 5);
  return random.one_of<int>({1, 1, 1, 1, 2, 3});
}

/// Of data parallelism, and of schemes whose replicas share workers.
int choose_replicas(const std::string& scheme, int stages, int number) {
  if (scheme == "data_parallel") return 1 + number % 4;
  if (scheme == "amdp") return stages / 2;
  return one_of(scheme, {"chimera", "dualpipe"}) ? 2 : 1;
}

/// Few mini-batches, so that some pipes are never full; a short last one where it still has enough
/// samples.
void choose_samples(Experiment& experiment, Random& random) {
  const int parts = experiment.microbatches * experiment.replicas;
  experiment.batch_size = std::max(random.integer(4, 9), parts);
  experiment.train_samples = experiment.batch_size * random.integer(3, 8);
  if (random.once_in(2)) {
    experiment.drop_last = random.once_in(2);
    experiment.train_samples += random.integer(parts, experiment.batch_size);
  }
}

std::string words(const Experiment& e, int number) {
  std::string name = (number < 10 ? "0" : "") + std::to_string(number);
  const SchemeOptions& scheme = e.scheme;
  if (scheme.name == "spectrain") name += "_v" + std::to_string(scheme.version);
  if (scheme.name == "pipeoptim") name += "_offset" + std::to_string(scheme.s_offset);
  if (scheme.name == "pipedream")
    name += scheme.vertical_sync ? "_synced" : scheme.weight_stashing ? "_stashed" : "_unstashed";
  if (scheme.in_flight != 0) name += "_inflight" + std::to_string(scheme.in_flight);
  if (scheme.name == "lwp") name += scheme.horizon_in_steps ? "_steps" : "_delays";
  if (one_of(scheme.name, {"spectrain", "pipeoptim"}))
    name += "_" + scheme.s_mode + "_" + scheme.velocity;
  if (scheme.name == "pipemare")
    name += (scheme.correction ? "_corrected" : "_plain") +
            ("_annealing" + std::to_string(scheme.annealing)) + "_warmup" +
            std::to_string(scheme.warmup);
  if (scheme.name == "interlocking")
    name += "_" + scheme.combine +
            (scheme.width == 0 ? "_all" : "_width" + std::to_string(scheme.width));
  name += "_" + e.optimizer.name + "_stages" + std::to_string(e.stages());
  if (e.microbatches > 1) name += "_micro" + std::to_string(e.microbatches);
  if (e.replicas > 1) name += "_replicas" + std::to_string(e.replicas);
  return e.drain_each_epoch ? name : name + "_undrained";
}

Experiment make(const std::string& scheme, int number) {
  std::uint64_t seed = 1;
  for (const char c : scheme) seed = seed * 131 + static_cast<unsigned char>(c);
  Random random(seed * 1000 + static_cast<std::uint64_t>(number));
  Experiment e;
  const int stages = choose_stages(scheme, random);
  choose_model(e, stages, random);
  e.scheme = scheme_options(scheme, number, stages, random);
  e.microbatches = choose_microbatches(e, random);
  e.replicas = choose_replicas(scheme, stages, number);
  choose_samples(e, random);
  e.epochs = random.integer(2, 3);
  e.drain_each_epoch = !random.once_in(4);
  e.execution = random.one_of<std::string>({"serial", "threads"});
  e.optimizer = optimizer_options(optimizer_name(e.scheme, number), random);
  if (one_of(scheme, {"spectrain", "lwp"}) || e.scheme.velocity != "buffer")
    e.optimizer.momentum = std::max(e.optimizer.momentum, 0.5);
  e.scheme.adamw_decay_in_prediction =
      scheme == "pipeoptim" && e.optimizer.name == "adamw" && number % 2 == 1;
  e.learning_rate = learning_rate_options(e.minibatches(), random);
  // Whether label smoothing reaches auxiliary losses is not defined, so it does not meet them.
  e.label_smoothing = e.has_heads() ? 0 : random.one_of<double>({0, 0, 0.1});
  if (number % 4 == 3)
    e.loss = "binary_cross_entropy";
  else if (number % 4 == 1)
    e.average = "tokens";
  e.optimizer.biases_decay = number % 3 != 1 || e.scheme.adamw_decay_in_prediction;
  e.data_seed = seed + static_cast<std::uint64_t>(number);
  e.name = scheme + "_" + words(e, number);
  return e;
}

/// Options of an optimizer that came later, for schemes of which each reads its weights otherwise.
OptimizerOptions later_optimizer(const std::string& name, Random& random) {
  OptimizerOptions optimizer;
  optimizer.name = name;
  optimizer.lr = random.one_of<double>({0.001, 0.005, 0.01});
  optimizer.weight_decay = random.one_of<double>({0, 0.01, 0.1});
  optimizer.momentum = random.one_of<double>({0.8, 0.95});  // muon
  optimizer.beta1 = random.one_of<double>({0.8, 0.9});
  optimizer.beta2 = random.one_of<double>({0.92, 0.99});
  optimizer.beta3 = random.one_of<double>({0.95, 0.99});
  optimizer.eps = random.one_of<double>({0.00000001, 0.0001});
  optimizer.momentum_decay = random.one_of<double>({0.004, 0.3});
  return optimizer;
}

Data draw(const Experiment& experiment, int samples, std::uint64_t seed) {
  Random random(seed);
  Data data;
  data.x.resize(samples, experiment.widths.front());
  for (double& value : data.x.reshaped()) value = random.real(-1.5, 1.5);
  for (int i = 0; i < samples; ++i)
    data.y.push_back(random.integer(0, experiment.widths.back() - 1));
  return data;
}

}  // namespace

/// SOAP's bases are those of gradients. They are unique, but for signs that cancel, where a layer
/// is square, a mini-batch has at least as many samples and no activation is dead. The gradients of
/// the last layer add up to 0 over the classes, so that one length is 0: its eigenvector is unique,
/// too. With ε = 0.01 a step enlarges what rounding leaves in a basis, or along that eigenvector, a
/// hundredfold at most, as kAgreement allows.
void make_bases_unique(Experiment& e) {
  e.loss = "cross_entropy";
  e.activation = Activation::Tanh;
  e.widths.assign(e.widths.size(), 4);
  const int minibatches = std::max(12, e.minibatches());  // the bases are renewed in the tenth step
  e.batch_size = 4 + std::max(4, e.microbatches * e.replicas);
  e.train_samples = minibatches * e.batch_size;
  e.optimizer.eps = 0.01;
}

std::vector<Experiment> cases(const std::string& scheme, int count) {
  std::vector<Experiment> experiments;
  for (int number = 0; number < count; ++number) experiments.push_back(make(scheme, number));
  return experiments;
}

std::vector<Experiment> cases_of_optimizer(const std::string& optimizer) {
  std::vector<Experiment> experiments;
  int number = 0;
  for (const char* scheme : {"gpipe", "pipedream", "pipedream_2bw", "pipeoptim", "xpipe",
                             "pipemare", "delayed_sgd", "interlocking"}) {
    Experiment e = cases(scheme, ++number).back();
    Random random(static_cast<std::uint64_t>(1000 * number) + optimizer.size());
    e.optimizer = later_optimizer(optimizer, random);
    e.scheme.velocity = "buffer";
    e.scheme.adamw_decay_in_prediction = e.scheme.name == "pipeoptim";
    e.optimizer.biases_decay = number % 2 == 1 || e.scheme.adamw_decay_in_prediction;
    if (optimizer == "soap") make_bases_unique(e);
    e.name = optimizer + "_" + scheme + "_stages" + std::to_string(e.stages());
    experiments.push_back(e);
  }
  return experiments;
}

std::vector<Experiment> cases_of_stage_momenta() {
  const std::vector<std::pair<std::string, std::string>> pairs{{"nadamw", "pipedream"},
                                                               {"nadamw", "pipeoptim"},
                                                               {"adamw", "pipeoptim"},
                                                               {"adam", "xpipe"},
                                                               {"sgd", "spectrain"},
                                                               {"sgd", "delayed_sgd"},
                                                               {"spike_compensation", "paci"},
                                                               {"adan", "pipemare"},
                                                               {"muon", "lwp"},
                                                               {"nadamw", "gpipe"}};
  std::vector<Experiment> experiments;
  int number = 0;
  for (const auto& [optimizer, scheme] : pairs) {
    Experiment e = cases(scheme, ++number).back();
    Random random(static_cast<std::uint64_t>(4000 + number));
    e.optimizer = one_of(optimizer, {"sgd", "adam", "adamw"}) ? optimizer_options(optimizer, random)
                                                              : later_optimizer(optimizer, random);
    e.optimizer.momentum = std::max(e.optimizer.momentum, 0.5);
    e.optimizer.momentum_by_delay = random.one_of<double>({0.3, 0.99});
    if (optimizer != "sgd") e.scheme.velocity = "buffer";
    e.scheme.adamw_decay_in_prediction = scheme == "pipeoptim" && number % 2 == 1;
    e.name = "stage_momenta_" + std::to_string(number) + "_" + optimizer + "_" + scheme +
             "_stages" + std::to_string(e.stages());
    experiments.push_back(e);
  }
  return experiments;
}

std::vector<Experiment> cases_of_ftpipe(int count) {
  std::vector<Experiment> experiments = cases("pipeoptim", count);
  int number = 0;
  for (Experiment& e : experiments) {
    const std::string optimizer = number % 3 == 0 ? "adam" : number % 3 == 1 ? "adamw" : "sgd";
    Random random(static_cast<std::uint64_t>(3000 + number));
    e.optimizer = optimizer_options(optimizer, random);
    e.scheme.velocity = "geometric";
    e.scheme.prediction_lr = "each";
    e.scheme.adamw_decay_in_prediction = optimizer == "adamw" && number % 2 == 0;
    e.learning_rate = {.name = "cosine", .per = "step", .end_lr = 0.0001};
    e.name = "ftpipe_" + std::to_string(number++) + "_" + optimizer + "_stages" +
             std::to_string(e.stages());
  }
  return experiments;
}

namespace {

/// The first case from `number` on whose first stage's gradients are at least three updates late;
/// of a scheme that has no such cases, case `number`.
Experiment late_case(const std::string& scheme, int number) {
  Experiment e = cases(scheme, number).back();
  if (scheme == "delayed_sgd") e.scheme.delay = {3};
  if (!one_of(scheme, {"pipedream", "pipemare"})) return e;
  while (e.stages() < 4 || e.scheme.in_flight != 0) e = cases(scheme, ++number).back();
  e.microbatches = 1;
  return e;
}

}  // namespace

std::vector<Experiment> cases_of_rule(const std::string& rule) {
  const bool compares = rule == "dc_asgd" || rule == "gap_aware";
  std::vector<Experiment> experiments;
  int number = 0;
  for (const char* scheme :
       {"gpipe", "pipedream", "pipedream_2bw", "delayed_sgd", "pipeoptim", "xpipe", "pipedream",
        "pipemare", "one_f_one_b", "interleaved", "zb_h1"}) {
    ++number;
    Experiment e =
        rule == "staleness_lr" ? late_case(scheme, number) : cases(scheme, number).back();
    Random random(static_cast<std::uint64_t>(2000 * number) + rule.size());
    RuleOptions options;
    options.name = rule;
    options.over_model =
        rule == "clip" && one_of(scheme, {"gpipe", "one_f_one_b", "interleaved", "zb_h1"});
    options.norm = random.one_of<double>({0.1, 0.5});
    options.lambda = random.one_of<double>({0.5, 2});
    options.adaptive = random.once_in(2);
    options.decay = random.one_of<double>({0.5, 0.9});
    options.eps = random.one_of<double>({0.0001, 0.01});
    options.power = random.one_of<double>({0.5, 1});
    options.coefficient = number % 2 == 0 ? 1 : 0.4;
    e.rules = {options};
    if (random.once_in(3) && rule != "clip") e.rules.push_back({.name = "clip", .norm = 0.5});
    // Micro-batches of a mini-batch may read different versions, which are not to be compared.
    if (compares && one_of(scheme, {"pipedream", "pipeoptim", "pipemare"})) e.microbatches = 1;
    e.name =
        rule + "_" + std::to_string(number) + "_" + scheme + "_stages" + std::to_string(e.stages());
    experiments.push_back(e);
  }
  return experiments;
}

std::vector<Experiment> cases_of_waiting_gradients() {
  std::vector<Experiment> experiments;
  int number = 0;
  for (const char* scheme : {"pipedream", "delayed_sgd", "pipemare", "pipedream_2bw", "gpipe"})
    for (const bool by_rate : {true, false}) {
      Experiment e = late_case(scheme, ++number);
      Random random(static_cast<std::uint64_t>(4000 * number));
      if (by_rate) e.rules = {{.name = "staleness_lr"}};
      if (!by_rate) e.optimizer = later_optimizer("spike_compensation", random);
      e.gradient_delay = 1 + number % 3;
      e.name = "waiting_" + std::to_string(number) + "_" + scheme +
               (by_rate ? "_rates" : "_spikes") + "_delay" + std::to_string(e.gradient_delay) +
               "_epochs" + std::to_string(e.epochs) + (e.drain_each_epoch ? "" : "_undrained");
      experiments.push_back(e);
    }
  return experiments;
}

std::vector<Experiment> cases_of_error_feedback() {
  const std::vector<std::pair<std::string, std::string>> pairs{{"pipedream_2bw", "sgd"},
                                                               {"pipedream_2bw", "adamw"},
                                                               {"spectrain", "sgd"},
                                                               {"pipeoptim", "adamw"},
                                                               {"pipemare", "muon"}};
  std::vector<Experiment> experiments = cases_of_rule("error_feedback");
  int number = 0;
  for (const auto& [scheme, optimizer] : pairs) {
    int tried = ++number;
    Experiment e = cases(scheme, tried).back();
    while (e.stages() < 3) e = cases(scheme, ++tried).back();
    Random random(static_cast<std::uint64_t>(5000 + number));
    e.optimizer = optimizer == "muon" ? later_optimizer(optimizer, random)
                                      : optimizer_options(optimizer, random);
    e.optimizer.momentum = std::max(e.optimizer.momentum, 0.5);
    if (optimizer != "sgd") e.scheme.velocity = "buffer";
    e.scheme.adamw_decay_in_prediction = scheme == "pipeoptim";
    e.learning_rate = {.name = "cosine", .per = "step", .end_lr = 0.0001};
    e.rules = {{.name = "error_feedback"}};
    e.name = "error_feedback_of_" + optimizer + "_" + std::to_string(number) + "_" + scheme +
             "_stages" + std::to_string(e.stages());
    experiments.push_back(e);
  }
  return experiments;
}

std::vector<Experiment> cases_with_defects(const std::string& scheme, int count) {
  std::vector<Experiment> experiments = cases(scheme, count);
  for (Experiment& e : experiments) {
    e.name += "_with_defects";
    e.learning_rate = {.name = "step", .gamma = 0.25};
    SchemeOptions& options = e.scheme;
    if (scheme == "pipeoptim" || scheme == "spectrain") options.prediction_lr = "last";
    if (scheme == "spectrain" && options.version == 2 && options.s_mode == "constant") {
      options.prediction_lr = "next";
      options.as_coded = true;
      options.refill = false;
    }
    if (scheme != "pipedream") continue;
    options.weight_stashing = true;
    options.vertical_sync = false;
    options.refill = false;
    options.in_flight = 0;  // the authors' queue has no such limit
    if (&e == &experiments.front() || e.microbatches > 1) continue;
    e.microbatches = 3;  // 3, 3 and 1 sample, which read different versions
    e.microbatch_sizes = "torch_chunk";
    e.batch_size = 7;
    e.train_samples = 30;
    e.drop_last = true;
  }
  return experiments;
}

Data training_data(const Experiment& experiment) {
  return draw(experiment, experiment.train_samples, 2 * experiment.data_seed);
}

Data test_data(const Experiment& experiment) {
  return draw(experiment, 5, 2 * experiment.data_seed + 1);
}

std::vector<Tensors> initial_weights(const Experiment& experiment) {
  Random random(experiment.data_seed ^ 0x9e3779b97f4a7c15);
  std::vector<Tensors> weights(experiment.balance.size());
  for (int k = 0; k < experiment.stages(); ++k) {
    double bound = 1;
    for (const auto& [rows, columns] : parameter_shapes(experiment, k)) {
      Matrix tensor(rows, columns);
      if (rows > 1) bound = 1.7 / std::sqrt(columns);  // a bias has the bound of its weight
      for (double& value : tensor.reshaped()) value = random.real(-bound, bound);
      weights[static_cast<std::size_t>(k)].push_back(std::move(tensor));
    }
  }
  return weights;
}

}  // namespace oracle
