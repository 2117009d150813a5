// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/sections.h"

#include "core/experiment/compression.h"

#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "core/stage/metric.h"

namespace pipewright {
namespace {

constexpr double kMostStages = 4096;
constexpr double kMostSamples = 1e9;  // samples of a mini-batch

std::vector<int> as_ints(const std::vector<std::int64_t>& values) {
  return {values.begin(), values.end()};
}

/// Reads `device`: "cpu" or "cuda" for all workers, or a list.
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

BalanceOption read_balance(Options& o) {
  const Value given =
      o.any("balance", Value::of("parameters"),
            "How layers are cut into stages: layers (equal counts), parameters (least "
            "largest count of parameters), time or memory (least largest, as measured; the "
            "list that results is recorded), published (the paper's cut), or a list of "
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
      return {};  // already reported; continue with the default
    return balance;
  }
  const std::vector<std::string> rules{"layers", "parameters", "time", "memory", "published"};
  if (!given.is(Value::Kind::Text) || std::ranges::count(rules, given.text) == 0)
    o.problem("balance",
              concat("expected layers, parameters, time, memory, published or a list of layers per "
                     "stage, not ",
                     given.described()));
  else
    balance.rule = given.text;
  return balance;
}

/// Reads the section `cut` for the rules time and memory.
void read_cut(Options& parent, BalanceOption& balance) {
  Options o = parent.section("cut", "What balance: time and balance: memory go by.");
  MeasuredBalance cut{.by_memory = balance.rule == "memory"};
  cut.profile = o.path("profile", "",
                       "A profile that `pipewright profile` wrote; \"\" = the one beside the run "
                       "folders, which is measured if it is not there.");
  const double bandwidth = o.number(
      "bandwidth", 0, "Bytes a second of a link; 0 = messages take no time.", kNotNegative);
  if (bandwidth > 0) cut.bandwidth = bandwidth;
  cut.latency =
      o.number("latency", 0, "Seconds that a message takes whatever its size.", kNotNegative);
  constexpr Range kBytes{0, 1e18};  // counted in 63 bits
  cut.memory =
      o.number("memory", 0, "Bytes of a worker, which no stage may need more of; 0 = any.", kBytes);
  o.finish();
  if (balance.rule == "time" || balance.rule == "memory") balance.measured = cut;
}

Execution execution_named(const std::string& name) {
  if (name == "mpi") return Execution::Mpi;
  return name == "threads" ? Execution::Threads : Execution::Serial;
}

Recomputation recomputation_named(const std::string& name) {
  if (name == "always") return Recomputation::Always;
  return name == "except_last" ? Recomputation::ExceptLast : Recomputation::Never;
}

RunningStatistics statistics_named(const std::string& name) {
  if (name == "deferred") return RunningStatistics::Deferred;
  return name == "deferred_biased" ? RunningStatistics::DeferredBiased
                                   : RunningStatistics::PerMicrobatch;
}

}  // namespace

LoaderOptions read_loader(Options& root) {
  Options o = root.section("loader", "How mini-batches are made of the data set.");
  LoaderOptions loader;
  loader.batch_size =
      o.integer("batch_size", 32, "Samples of a mini-batch, over all replicas and micro-batches.",
                {1, kMostSamples});
  loader.shuffle =
      o.flag("shuffle", true, "A new order every epoch, from the seed; false: the file's order.");
  loader.drop_last = o.flag("drop_last", true, "Leave out a last, smaller training mini-batch.");
  loader.limit_train =
      o.integer("limit_train", 0,
                "Use only so many training samples, the first, or of a data set sorted by class "
                "so many at equal distances; 0 = all.",
                kNotNegative);
  loader.limit_test =
      o.integer("limit_test", 0, "As limit_train, of the test samples; 0 = all.", kNotNegative);
  loader.validation = o.integer("validation", 0,
                                "Hold out so many training samples, drawn with seed 0, and "
                                "evaluate on them instead of the test set; 0 = none.",
                                kNotNegative);
  loader.bucket = o.integer("bucket", 0,
                            "Texts: sort the samples of so many mini-batches by length, so that "
                            "padding is short; 0 = do not.",
                            {0, 1e6});
  loader.reshuffle = o.flag("reshuffle", true, "false: every epoch has the first one's order.");
  loader.prefetch = static_cast<int>(o.integer(
      "prefetch", 1,
      "Threads that assemble the next mini-batches meanwhile; they change no result.", {0, 64}));
  o.finish();
  return loader;
}

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
  read_cut(o, section.balance);
  p.placement = as_ints(o.integers(
      "placement", {}, "Worker of each stage; [] = as the scheme says, or one worker per stage.",
      {0, kMostStages}));
  p.execution =
      execution_named(o.choice("execution", {"serial", "threads", "mpi"}, "serial",
                               "serial: one thread steps all workers; threads: one thread per "
                               "worker; mpi: one process per worker."));
  p.threads =
      static_cast<int>(o.integer("threads", 1, "Intra-op threads of each worker.", {1, 1024}));
  const double timeout = o.number(
      "timeout", 60,
      "Seconds in which no worker has computed and no part of a message has moved, after which a "
      "run counts as deadlocked; with threads at most 8, for it is certain then.",
      {1e-3, 1e9});
  p.timeout = std::chrono::milliseconds(std::llround(1e3 * timeout));
  p.devices = read_devices(o);
  p.recompute = recomputation_named(
      o.choice("recompute", {"never", "always", "except_last"}, "never",
               "Throw activations away and compute them again before the backward: never, always, "
               "or of all but a mini-batch's last micro-batch. No bit of the result changes."));
  p.batch_norm = statistics_named(o.choice(
      "batch_norm", {"per_microbatch", "deferred", "deferred_biased"}, "per_microbatch",
      "What moves batch-norm's running statistics: each micro-batch; the whole mini-batch, "
      "as without pipeline; or that with the biased variance, as torchgpipe has it."));
  p.compression = read_compression(o, p.stages);
  p.gradient_compression = read_gradient_compression(o);
  const int workers = p.placement.empty() ? p.stages : *std::ranges::max_element(p.placement) + 1;
  if (!p.placement.empty() && p.placement.size() != static_cast<std::size_t>(p.stages))
    o.problem("placement", concat("has ", p.placement.size(), " workers for ", p.stages,
                                  " stages; expected one per stage, or []"));
  for (int w = 0; w < workers && !p.placement.empty(); ++w)
    if (std::ranges::count(p.placement, w) == 0)
      o.problem("placement",
                concat("worker ", w, " holds no stage; number the workers from 0 without gaps"));
  if (p.placement.size() != static_cast<std::size_t>(p.stages)) p.placement.clear();
  o.finish();
  return section;
}

TrainOptions read_train(Options& root) {
  Options o = root.section("train", "How long and how exactly to train.");
  TrainOptions train;
  train.epochs =
      static_cast<int>(o.integer("epochs", 10, "Passes over the training data.", {0, 1e6}));
  train.seed = static_cast<std::uint64_t>(o.integer(
      "seed", 1, "Of initialisation, order, augmentation and dropout.", {0, kLargestSeed}));
  train.float64 = o.choice("precision", {"float32", "float64"}, "float32",
                           "Of parameters and activations.") == "float64";
  train.sum_gradients = o.choice("gradient", {"mean", "sum"}, "mean",
                                 "Of micro-batches: the mean over their samples, or the sum of "
                                 "their means. Replicas are averaged in both, each weighed by its "
                                 "samples where a mini-batch is shared out unevenly.") == "sum";
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

std::vector<std::string> read_metrics(Options& root) {
  const Value given =
      root.any("metrics", Value::sequence(),
               "Columns of epochs.csv besides test_accuracy and what the data set names itself: a "
               "list of accuracy, top5, matthews, perplexity, bleu.");
  std::vector<std::string> names;
  if (!given.is(Value::Kind::Sequence))
    root.problem("metrics", concat("expected a list like [top5], not ", given.described()));
  for (const Value& item : given.items) {
    if (item.is(Value::Kind::Text) && (item.text == kBleu || make_metric(item.text))) {
      names.push_back(item.text);
      continue;
    }
    auto known = Registry<Metric>::instance().names();
    known.push_back(kBleu);
    root.problem("metrics",
                 concat("no such metric: ", item.described(), suggestion(item.text, known)));
  }
  return names;
}

TranslationOptions read_translation(Options& root) {
  Options o = root.section("translation", "How the metric bleu translates the test samples.");
  TranslationOptions t;
  t.search.beam =
      static_cast<int>(o.integer("beam", 5, "Hypotheses kept of each sentence.", {1, 1000}));
  t.search.max_length = static_cast<int>(o.integer(
      "max_length", 80, "Tokens of a translation at most, start and end included.", {2, 1e5}));
  t.search.length_exponent = o.number(
      "length_exponent", 0.6, "Scores are divided by ((5 + length) / 6) to this power.", {0, 10});
  t.search.coverage_penalty =
      o.number("coverage_penalty", 0.1, "Of source tokens that got little attention.", {0, 100});
  t.batch_size =
      static_cast<int>(o.integer("batch_size", 128, "Sentences translated at once.", {1, 1e6}));
  t.bleu.tokenizer = o.choice("tokenizer", {"13a", "intl", "none"}, "13a",
                              "sacreBLEU's, of translations and references.");
  t.bleu.lowercase = o.flag("lowercase", false, "Compare lower-cased texts.");
  o.finish();
  return t;
}

}  // namespace pipewright
