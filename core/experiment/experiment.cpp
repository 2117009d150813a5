#include "core/experiment/experiment.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/experiment/balance.h"
#include "core/experiment/identity.h"

namespace pipewright {
namespace {

constexpr double kMostStages = 4096;

/// Reads `{name: …, options…}` with the constructor registered under that name. `more` reads the
/// options every part of the kind has.
template <class Part, class More>
std::unique_ptr<Part> read_part(Options& root, const std::string& section,
                                const std::string& fallback, const std::string& help,
                                const More& more) {
  const Registry<Part>& registry = Registry<Part>::instance();
  Options options = root.section(section, help);
  const std::string name = options.choice("name", registry.names(), fallback,
                                          "Which one; `pipewright list` names them all.");
  std::unique_ptr<Part> part = registry.find(name)->make(options);
  more(options);
  options.finish();
  return part;
}

template <class Part>
std::unique_ptr<Part> read_part(Options& root, const std::string& section,
                                const std::string& fallback, const std::string& help) {
  return read_part<Part>(root, section, fallback, help, [](Options&) {});
}

LoaderOptions read_loader(Options& root) {
  Options o = root.section("loader", "How mini-batches are made of the data set.");
  LoaderOptions loader;
  loader.batch_size = o.integer(
      "batch_size", 32, "Samples of a mini-batch, over all replicas and micro-batches.", kPositive);
  loader.shuffle =
      o.flag("shuffle", true, "A new order every epoch, from the seed; false: the file's order.");
  loader.drop_last = o.flag("drop_last", true, "Leave out a last, smaller training mini-batch.");
  loader.limit_train = o.integer(
      "limit_train", 0, "Use only the first so many training samples; 0 = all.", kNotNegative);
  loader.limit_test =
      o.integer("limit_test", 0, "Use only the first so many test samples; 0 = all.", kNotNegative);
  loader.validation = o.integer("validation", 0,
                                "Hold out so many training samples, drawn with seed 0, and "
                                "evaluate on them instead of the test set; 0 = none.",
                                kNotNegative);
  o.finish();
  return loader;
}

std::vector<int> as_ints(const std::vector<std::int64_t>& values) {
  return {values.begin(), values.end()};
}

/// "cpu" or "cuda" for all workers, or a list.
std::vector<std::string> read_devices(Options& o) {
  const Value given = o.any("device", Value::of("cpu"),
                            "cpu, cuda (worker w on device w mod count), or a list with one per "
                            "worker: [cuda:0, cuda:1].");
  const bool list = given.is(Value::Kind::Sequence);
  std::vector<std::string> devices;
  for (const Value& device : list ? given.items : std::vector<Value>{given}) {
    const bool known =
        device.is(Value::Kind::Text) &&
        (device.text == "cpu" || device.text == "cuda" ||
         (device.text.starts_with("cuda:") && device.text.size() > 5 && device.text.size() < 9 &&
          device.text.find_first_not_of("0123456789", 5) == std::string::npos));
    if (!known)
      o.problem("device", concat("expected cpu, cuda, cuda:<number> or a list of them, not ",
                                 device.described()));
    else
      devices.push_back(device.text);
  }
  if (list && devices.empty())
    o.problem("device", "the list is empty; expected one device per worker");
  return devices;
}

struct BalanceOption {
  std::string rule = "parameters";  ///< "" = a list was given
  std::vector<std::int64_t> list;
};

BalanceOption read_balance(Options& o) {
  const Value given =
      o.any("balance", Value::of("parameters"),
            "How layers are cut into stages: layers (equal counts), parameters (least "
            "largest count of parameters), published (the paper's cut), or a list of "
            "layers per stage: [4, 4, 4, 4].");
  BalanceOption balance;
  if (given.is(Value::Kind::Sequence)) {
    balance.rule.clear();
    for (const Value& layers : given.items) {
      if (layers.is(Value::Kind::Integer) && layers.integer > 0)
        balance.list.push_back(layers.integer);
      else
        o.problem("balance",
                  concat("expected whole numbers of at least 1, not ", layers.described()));
    }
    if (balance.list.size() != given.items.size())
      return {};  // said already; go on with the default
    return balance;
  }
  const std::vector<std::string> rules{"layers", "parameters", "published"};
  if (given.is(Value::Kind::Text) && (given.text == "time" || given.text == "memory"))
    o.problem("balance", concat("'", given.text,
                                "' needs measured layers, which this version cannot do; use "
                                "layers, parameters, published or a list"));
  else if (!given.is(Value::Kind::Text) || std::ranges::count(rules, given.text) == 0)
    o.problem("balance",
              concat("expected layers, parameters, published or a list of layers per stage, not ",
                     given.described()));
  else
    balance.rule = given.text;
  return balance;
}

Execution execution_named(const std::string& name) {
  if (name == "mpi") return Execution::Mpi;
  return name == "threads" ? Execution::Threads : Execution::Serial;
}

struct PipelineSection {
  PipelineOptions options;
  BalanceOption balance;
};

PipelineSection read_pipeline(Options& root) {
  Options o = root.section("pipeline", "The pipeline's shape and how it is executed.");
  PipelineSection section;
  PipelineOptions& p = section.options;
  p.stages =
      static_cast<int>(o.integer("stages", 1, "Stages the model is cut into.", {1, kMostStages}));
  p.microbatches = static_cast<int>(o.integer(
      "microbatches", 1,
      "Micro-batches a mini-batch is cut into; asynchronous schemes accumulate over them.",
      {1, 1 << 20}));
  p.replicas = static_cast<int>(o.integer(
      "replicas", 1, "Copies of the pipeline; their gradients are averaged.", {1, kMostStages}));
  section.balance = read_balance(o);
  p.placement = as_ints(o.integers(
      "placement", {}, "Worker of each stage, [] = one worker per stage.", {0, kMostStages}));
  p.execution =
      execution_named(o.choice("execution", {"serial", "threads", "mpi"}, "serial",
                               "serial: one thread steps all workers; threads: one thread per "
                               "worker; mpi: one process per worker."));
  p.threads =
      static_cast<int>(o.integer("threads", 1, "Intra-op threads of each worker.", {1, 1024}));
  p.devices = read_devices(o);
  o.choice("recompute", {"never"}, "never", "Recomputation of activations in the backward.");
  o.choice("batch_norm", {"per_microbatch"}, "per_microbatch",
           "When batch-norm's running statistics are updated.");
  Options compression = o.section("compression", "What crosses an edge can be compressed.");
  compression.choice("name", {"none"}, "none", "The codec.");
  compression.finish();
  const int workers = p.placement.empty() ? p.stages : *std::ranges::max_element(p.placement) + 1;
  if (!p.placement.empty() && p.placement.size() != static_cast<std::size_t>(p.stages))
    o.problem("placement", concat("has ", p.placement.size(), " workers for ", p.stages,
                                  " stages; expected one per stage, or []"));
  for (int w = 0; w < workers && !p.placement.empty(); ++w)
    if (std::ranges::count(p.placement, w) == 0)
      o.problem("placement",
                concat("worker ", w, " holds no stage; number the workers from 0 without gaps"));
  const std::size_t all = static_cast<std::size_t>(workers * p.replicas);
  if (p.devices.size() > 1 && p.devices.size() != all)
    o.problem("device", concat("has ", p.devices.size(), " devices for ", all,
                               " workers; expected one per worker"));
  if (p.devices.size() == 1) p.devices.assign(all, p.devices.front());
  if (p.placement.size() != static_cast<std::size_t>(p.stages)) p.placement.clear();
  o.finish();
  return section;
}

TrainOptions read_train(Options& root) {
  Options o = root.section("train", "How long and how exactly to train.");
  TrainOptions train;
  train.epochs =
      static_cast<int>(o.integer("epochs", 10, "Passes over the training data.", {0, 1e6}));
  train.seed = static_cast<std::uint64_t>(
      o.integer("seed", 1, "Of initialisation, order, augmentation and dropout.", {0, 9e15}));
  train.float64 = o.choice("precision", {"float32", "float64"}, "float32",
                           "Of parameters and activations.") == "float64";
  train.sum_gradients = o.choice("gradient", {"mean", "sum"}, "mean",
                                 "Of micro-batches: their mean, or sum.") == "sum";
  train.drain_each_epoch = o.choice("drain", {"epoch", "never"}, "epoch",
                                    "When the pipe is emptied: after every epoch, or only at the "
                                    "end (then evaluated only there).") == "epoch";
  train.evaluate_every = static_cast<int>(
      o.integer("evaluate_every", 1,
                "Epochs between evaluations; the last epoch is always evaluated.", {1, 1e6}));
  Options checkpoint = o.section("checkpoint", "State saved while training, for --resume.");
  train.checkpoint_every = static_cast<int>(
      checkpoint.integer("every", train.drain_each_epoch ? 1 : 0,
                         "Epochs or mini-batches between checkpoints; 0 = none, which is the "
                         "default with drain: never, because a checkpoint drains the pipeline.",
                         {0, 1e9}));
  train.checkpoint_unit_epoch =
      checkpoint.choice("unit", {"epoch", "minibatch"}, "epoch",
                        "What `every` counts, from the beginning of the training. Within an epoch "
                        "a checkpoint drains the pipeline, in every run of the experiment.") ==
      "epoch";
  checkpoint.finish();
  o.finish();
  return train;
}

OutputOptions read_output(Options& root) {
  Options o = root.section("output", "What the run leaves behind besides epochs.csv.");
  OutputOptions output;
  output.steps = o.flag("steps", true, "steps.csv: the loss of every mini-batch.");
  output.weights = o.flag("weights", true, "final.safetensors: all parameters and buffers.");
  output.trace = o.flag(
      "trace", false,
      "trace.json: when each action of the last epoch ran, for chrome://tracing or Perfetto.");
  o.finish();
  return output;
}

/// The most exact part of a dotted path that the document has.
Place place_in(const Value& document, std::string dotted) {
  for (;;) {
    if (const Value* value = document.find_path(dotted)) return value->place;
    const std::size_t dot = dotted.rfind('.');
    if (dot == std::string::npos) return document.place;
    dotted.resize(dot);
  }
}

/// What can only be said once several sections are known.
void check_together(Experiment& e, const BalanceOption& balance, const Value& document,
                    Problems& problems) {
  const std::int64_t share = e.loader.batch_size / e.pipeline.replicas;
  if (share < 1)
    problems.add(place_in(document, "pipeline.replicas"),
                 concat("pipeline.replicas is ", e.pipeline.replicas,
                        " but loader.batch_size only ", e.loader.batch_size));
  else if (share < e.pipeline.microbatches)
    problems.add(place_in(document, "pipeline.microbatches"),
                 concat("pipeline.microbatches is ", e.pipeline.microbatches,
                        "; a mini-batch has only ", share, " samples",
                        e.pipeline.replicas > 1 ? " per replica" : "", " (loader.batch_size)"));
  const bool list = document.find_path("pipeline.balance") != nullptr;
  try {
    e.layers = e.model->layers();
    e.balance = balanced(*e.model, e.layers, e.pipeline.stages, balance.rule, balance.list);
  } catch (const Error& error) {
    problems.add(place_in(document, list ? "pipeline.balance" : "pipeline.stages"), error.message(),
                 error.kind());
  }
  try {
    e.scheme->schedule(e.shape(1));
  } catch (const Error& error) {
    problems.add(place_in(document, "scheme"), error.message(), error.kind());
  }
}

void read_sections(Options& root, Experiment& e, BalanceOption& balance) {
  e.name = root.text("name", "experiment", "Of the run and its folder; default: the file's stem.");
  e.dataset = read_part<Dataset>(root, "dataset", "digits", "The data.");
  e.loader = read_loader(root);
  e.model = read_part<Model>(root, "model", "mlp", "The model.", [&](Options& o) {
    e.weights = o.path(
        "weights", "",
        "A safetensors file to start from, with exactly this model's names; \"\" = initialise.");
    o.choice("weights_format", {"pipewright"}, "pipewright", "Whose names the file has.");
  });
  e.loss = read_part<Loss>(root, "loss", "cross_entropy",
                           "The loss of the last stage and of auxiliary heads.");
  PipelineSection pipeline = read_pipeline(root);
  e.pipeline = std::move(pipeline.options);
  balance = std::move(pipeline.balance);
  e.scheme = read_part<Scheme>(root, "scheme", "model_parallel",
                               "Which weights each pass computes with, and when.");
  e.optimizer =
      read_part<Optimizer>(root, "optimizer", "sgd",
                           "How gradients change weights; PyTorch's mathematics and defaults.");
  Options lr = root.section("lr_schedule", "The learning rate over time.");
  e.lr_schedule = LrSchedule(lr);
  lr.finish();
  e.train = read_train(root);
  e.output = read_output(root);
}

Value without_sweep(Value document) {
  std::erase_if(document.fields, [](const auto& field) {
    return field.first == "sweep" || field.first == "table" || field.first == "profiles" ||
           field.first == "extends";
  });
  return document;
}

}  // namespace

PipelineShape Experiment::shape(int minibatches, int first_minibatch) const {
  return {.stages = pipeline.stages,
          .replicas = pipeline.replicas,
          .microbatches = pipeline.microbatches,
          .minibatches = minibatches,
          .first_minibatch = first_minibatch,
          .placement = pipeline.placement};
}

std::string Experiment::where(const std::string& dotted) const {
  return place_in(given, dotted).text();
}

Experiment read_experiment(const Value& given) {
  return read_experiment(given, {});
}

Experiment read_experiment(const Value& given, const Problems& faults) {
  const Value document = without_sweep(given);
  Problems problems;
  problems.add(faults);
  Options root(&document, "", problems);
  Experiment e;
  BalanceOption balance;
  read_sections(root, e, balance);
  root.finish();
  check_together(e, balance, document, problems);
  problems.throw_if_any();
  e.given = document;
  e.resolved = root.resolved();
  Value nameless = e.resolved;
  std::erase_if(nameless.fields, [](const auto& field) { return field.first == "name"; });
  e.digest = digest(nameless);
  e.identity = identity_of(e.resolved);
  return e;
}

std::vector<OptionInfo> experiment_options() {
  const Value nothing = Value::mapping();
  Problems problems;
  Options root(&nothing, "", problems);
  Experiment e;
  BalanceOption balance;
  read_sections(root, e, balance);
  return root.declared();
}

namespace {

template <class Part>
std::vector<OptionInfo> options_of(const std::string& name) {
  const auto* entry = Registry<Part>::instance().find(name);
  if (entry == nullptr) return {};
  const Value nothing = Value::mapping();
  Problems problems;
  Options options(&nothing, "", problems);
  entry->make(options);
  return options.declared();
}

}  // namespace

std::vector<OptionInfo> part_options(const std::string& kind, const std::string& name) {
  if (kind == "scheme") return options_of<Scheme>(name);
  if (kind == "model") return options_of<Model>(name);
  if (kind == "dataset") return options_of<Dataset>(name);
  if (kind == "optimizer") return options_of<Optimizer>(name);
  if (kind == "loss") return options_of<Loss>(name);
  return {};
}

}  // namespace pipewright
