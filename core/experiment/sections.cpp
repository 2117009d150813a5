// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/sections.h"

#include "core/base/wording.h"
#include "core/experiment/compression.h"
#include "core/experiment/stage_layout.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "core/base/text.h"
#include "core/nn/metric.h"
#include "core/nn/numerics.h"
#include "core/schedule/rewrites/offload.h"

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
                            "Device of the workers: cpu, cuda (worker w on device w mod their "
                            "number), cuda:N, or a list with one per worker: [cuda:0, cuda:1].");
  const bool list = given.is(Value::Kind::Sequence);
  std::vector<std::string> devices;
  const std::span<const Value> each =
      list ? std::span<const Value>(given.items) : std::span(&given, 1);
  for (const Value& device : each) {
    const bool known =
        device.is(Value::Kind::Text) &&
        (device.text == "cpu" || device.text == "cuda" ||
         (device.text.starts_with("cuda:") && device.text.size() > 5 && device.text.size() < 9 &&
          device.text.find_first_not_of("0123456789", 5) == std::string::npos));
    if (!known)
      o.problem(list ? concat("device[", &device - given.items.data(), "]") : "device",
                concat("is ", device.shown(), "; expected cpu, cuda, cuda:<number>",
                       list ? "" : ", or a list with one per worker"));
    else
      devices.push_back(device.text);
  }
  if (list && devices.empty())
    o.problem("device", "is an empty list; expected one device per worker");
  return devices;
}

BalanceOption read_balance(Options& o) {
  const Value given =
      o.any("balance", Value::of("parameters"),
            "How layers are cut into stages. layers: equal numbers of layers; parameters: the "
            "largest number of parameters in a stage is as small as possible; time, memory: the "
            "largest time or memory of a stage is, as measured (the resulting list is recorded); "
            "published: the paper's cut; a list of layers per stage: [4, 4, 4, 4]; or "
            "Megatron-Core's layout of a model of numbered blocks: 'Et*3|(t*4|)*2t*3L'.");
  BalanceOption balance;
  if (given.is(Value::Kind::Text) && looks_like_layout(given.text)) {
    try {
      balance.layout = parse_stage_layout(given.text);
      balance.rule.clear();
    } catch (const Error& error) {
      o.problem("balance", concat("is ", given.shown(), ", a layout which ", error.message()));
    }
    return balance;
  }
  if (given.is(Value::Kind::Sequence)) {
    balance.rule.clear();
    for (std::size_t k = 0; k < given.items.size(); ++k) {
      const Value& layers = given.items[k];
      if (layers.is(Value::Kind::Integer) && layers.integer > 0)
        balance.list.push_back(layers.integer);
      else
        o.problem(concat("balance[", k, "]"),
                  concat("is ", layers.shown(),
                         "; expected a whole number of at least 1, the layers of a stage"));
    }
    if (balance.list.size() != given.items.size())
      return {};  // already reported; continue with the default
    return balance;
  }
  const std::vector<std::string> rules{"layers", "parameters", "time", "memory", "published"};
  if (!given.is(Value::Kind::Text) || std::ranges::count(rules, given.text) == 0)
    o.problem("balance", concat("is ", given.shown(),
                                "; expected layers, parameters, time, memory, published, a list of "
                                "layers per stage or a layout such as Et*2|t*2L",
                                given.is(Value::Kind::Text) ? did_you_mean(given.text, rules)
                                                            : std::string()));
  else
    balance.rule = given.text;
  return balance;
}

/// Reads the section `cut` for the rules time and memory.
void read_cut(Options& parent, BalanceOption& balance) {
  Options o =
      parent.section("cut", "Measurements and limits for balance: time and balance: memory.");
  MeasuredBalance cut{.by_memory = balance.rule == "memory"};
  cut.profile = o.path("profile", "",
                       "Profile that `pipewright profile` has written; \"\" = the one beside the "
                       "run folders, which is measured if it is not there.");
  const double bandwidth =
      o.number("bandwidth", 0,
               "Bandwidth of a link in bytes per second; 0 = messages take no time.", kNotNegative);
  if (bandwidth > 0) cut.bandwidth = bandwidth;
  cut.latency = o.number("latency", 0, "Seconds that a message takes beyond those of its bytes.",
                         kNotNegative);
  constexpr Range kBytes{0, 1e18};  // counted in 63 bits
  cut.memory = o.number(
      "memory", 0, "Memory of a worker in bytes, which no stage may exceed; 0 = no limit.", kBytes);
  cut.each = o.flag("each", false,
                    "Whether each run of a sweep is cut by itself; false = those with one model "
                    "and number of stages have the cut of the first of them, so that their schemes "
                    "alone differ. With a limit of memory each has its own.");
  o.finish();
  if (balance.rule == "time" || balance.rule == "memory") balance.measured = cut;
}

/// One of the named values, by default the first.
template <class T>
T one_of(Options& o, const std::string& name, const std::vector<std::pair<std::string, T>>& values,
         const std::string& help) {
  std::vector<std::string> names;
  for (const auto& [each, value] : values) names.push_back(each);
  const std::string chosen = o.choice(name, names, names.front(), help);
  return values[static_cast<std::size_t>(std::ranges::find(names, chosen) - names.begin())].second;
}

int whole(Options& o, const std::string& name, int fallback, const std::string& help, Range range) {
  return static_cast<int>(o.integer(name, fallback, help, range));
}

}  // namespace

LoaderOptions read_loader(Options& root) {
  Options o = root.section("loader", "Loader: how mini-batches are made of the data set.");
  LoaderOptions loader;
  loader.batch_size =
      o.integer("batch_size", 32, "Samples in a mini-batch, over all replicas and micro-batches.",
                {1, kMostSamples});
  loader.shuffle =
      o.flag("shuffle", true,
             "Whether samples are shuffled, from the seed; false: they keep the data set's order.");
  loader.drop_last = o.flag(
      "drop_last", true, "Whether a smaller last mini-batch of an epoch is left out of training.");
  loader.limit_train = o.integer("limit_train", 0,
                                 "Number of training samples to use: the first ones, or, of a data "
                                 "set sorted by class, some at equal distances; 0 = all.",
                                 kNotNegative);
  loader.limit_test =
      o.integer("limit_test", 0,
                "Number of test samples to use, chosen as by limit_train; 0 = all.", kNotNegative);
  loader.validation = o.integer("validation", 0,
                                "Number of training samples to hold out, drawn with seed 0, and to "
                                "evaluate on instead of the test set; 0 = none.",
                                kNotNegative);
  loader.bucket = o.integer("bucket", 0,
                            "Texts: number of mini-batches whose samples are sorted by length "
                            "together, so that padding is short; 0 = no sorting.",
                            {0, 1e6});
  loader.reshuffle =
      o.flag("reshuffle", true,
             "Whether every epoch has an order of its own; false: all have the first one's.");
  loader.prefetch = whole(
      o, "prefetch", 1,
      "Threads that assemble the next mini-batches in advance; they change no result.", {0, 64});
  o.finish();
  return loader;
}

PipelineSection read_pipeline(Options& root) {
  Options o = root.section("pipeline", "Shape of the pipeline and how it is executed.");
  PipelineSection section;
  PipelineOptions& p = section.options;
  std::vector<int>& placement = section.layout.placement;
  p.stages =
      whole(o, "stages", 1, "Number of stages that the model is cut into.", {1, kMostStages});
  p.microbatches = whole(o, "microbatches", 1,
                         "Number of micro-batches that a mini-batch is cut into; asynchronous "
                         "schemes accumulate gradients over them.",
                         {1, 1 << 20});
  p.slices =
      whole(o, "slices", 1,
            "Number of slices that a micro-batch is cut into along its sequences, each a pass of "
            "its own that attends to those before it. It needs the model gpt or decoder, samples "
            "whose tokens it divides, and a scheme that goes back through slices in reverse: "
            "seq1f1b or gpipe. Gradients are those without slices, but for rounding.",
            {1, 1 << 16});
  p.microbatch_sizes = one_of<MicrobatchSizes>(
      o, "microbatch_sizes",
      {{"even", MicrobatchSizes::Even}, {"torch_chunk", MicrobatchSizes::TorchChunk}},
      "Sizes of micro-batches whose number does not divide the mini-batch, or a replica's part of "
      "it. even: they differ by at most 1, the larger first; torch_chunk: all are equal but a "
      "smaller last one, as torchgpipe cuts. Where torchgpipe would make fewer micro-batches than "
      "it was asked for, the experiment is refused.");
  p.replicas =
      whole(o, "replicas", 1, "Number of replicas of the pipeline, whose gradients are averaged.",
            {1, kMostStages});
  section.balance = read_balance(o);
  read_cut(o, section.balance);
  placement = as_ints(
      o.integers("placement", {},
                 "Worker of each stage; [] = as the scheme places them, or one worker per stage.",
                 {0, kMostStages}));
  p.execution = one_of<Execution>(
      o, "execution",
      {{"serial", Execution::Serial}, {"threads", Execution::Threads}, {"mpi", Execution::Mpi}},
      "How workers run. serial: one thread steps all workers; threads: one thread per worker; mpi: "
      "one process per worker.");
  p.threads = whole(o, "threads", 1,
                    "Intra-op threads of each worker (those of LibTorch's operations).", {1, 1024});
  const std::string format = o.choice(
      "memory_format", {"auto", "contiguous", "channels_last"}, "contiguous",
      "Order of images in memory, and of the weights of their convolutions. contiguous: sample, "
      "channel, row, column; channels_last: sample, row, column, channel, in which most models "
      "train faster on a CPU; auto: the faster of the two, which is measured once and recorded. "
      "Results of the two differ by rounding. Models without convolutions are always contiguous.");
  section.layout.channels_last =
      format == "auto" ? std::optional<bool>() : format == "channels_last";
  const double timeout = o.number(
      "timeout", 60,
      "Deadlock timeout: a run fails after so many seconds in which no worker has computed and no "
      "part of a message has moved; with execution: threads after at most 8.",
      {1e-3, 1e9});
  p.timeout = std::chrono::milliseconds(std::llround(1e3 * timeout));
  p.devices = read_devices(o);
  p.recompute = one_of<Recomputation>(
      o, "recompute",
      {{"never", Recomputation::Never},
       {"always", Recomputation::Always},
       {"except_last", Recomputation::ExceptLast}},
      "Recomputation: whether activations are discarded and computed again before the backward: "
      "never, always, or for all but a mini-batch's last micro-batch (except_last). No bit of the "
      "result changes, but with batch_norm: per_pass.");
  const bool offload =
      o.choice("offload", {"never", "always"}, "never",
               "Whether activations wait for their backward in the memory of the host: always "
               "moves those of each forward with enough other passes before its backward. Copies "
               "go on while the worker computes. No bit of the result changes.") == "always";
  const int fetch_ahead = whole(
      o, "fetch_ahead", 1,
      "With offload: the number of passes that a worker performs between the beginning of a fetch "
      "and the backward that needs it; more give the copy more time, and take memory earlier.",
      {0, 1 << 20});
  p.cuda_graphs = o.flag(
      "cuda_graphs", false,
      "With execution: serial and all stages on one CUDA device: whether passes are recorded as "
      "CUDA graphs as soon as their memory repeats itself, and then launched, which takes the "
      "processor less time than their many kernels. First fill, drain, updates, predictions, "
      "evaluations and mini-batches of another size are performed as without. It changes no bit of "
      "the result, and has been tested with a stand-in for a GPU only.");
  if (p.recompute != Recomputation::Never) p.rewrites.push_back(recomputing(p.recompute));
  if (offload) p.rewrites.push_back(offloading(fetch_ahead));
  if (offload && p.recompute != Recomputation::Never)
    o.problem("offload",
              "is always, and recompute is not never: what is computed again need not be moved; "
              "expected one of the two");
  p.batch_norm = one_of<RunningStatistics>(
      o, "batch_norm",
      {{"per_microbatch", RunningStatistics::PerMicrobatch},
       {"deferred", RunningStatistics::Deferred},
       {"deferred_biased", RunningStatistics::DeferredBiased},
       {"per_pass", RunningStatistics::PerPass}},
      "What updates batch norm's running statistics. per_microbatch: each micro-batch; deferred: "
      "the whole mini-batch, as without a pipeline; deferred_biased: the same with the biased "
      "variance, as in torchgpipe with deferred batch norm; per_pass: each micro-batch, and again "
      "when it is recomputed, a defect of torchgpipe without deferred batch norm.");
  p.compression = read_compression(o, p.stages);
  p.gradient_compression = read_gradient_compression(o);
  const int workers = placement.empty() ? p.stages : *std::ranges::max_element(placement) + 1;
  if (!placement.empty() && placement.size() != static_cast<std::size_t>(p.stages))
    o.problem("placement",
              concat("names the workers of ", counted(placement.size(), "stage"),
                     "; expected one worker for each of ", counted(p.stages, "stage"), ", or []"));
  for (int w = 0; w < workers && !placement.empty(); ++w)
    if (std::ranges::count(placement, w) == 0)
      o.problem("placement", concat("names no stage for worker ", w,
                                    "; number the workers from 0 without gaps"));
  if (placement.size() != static_cast<std::size_t>(p.stages)) placement.clear();
  o.finish();
  return section;
}

TrainOptions read_train(Options& root) {
  Options o = root.section("train", "Length, seed and precision of the training.");
  TrainOptions train;
  train.epochs =
      whole(o, "epochs", o.given("steps") ? 0 : 10,
            "Number of passes over the training data; 0 where steps are given.", {0, 1e6});
  train.steps =
      o.integer("steps", 0,
                "Number of mini-batches to train, instead of epochs: the last epoch may end before "
                "all its samples have been seen; 0 = as many as the epochs have.",
                {0, 1e9});
  if (train.steps > 0 && train.epochs > 0)
    o.problem("steps", concat("is ", train.steps, ", and epochs is ", train.epochs,
                              "; expected one of the two (0 takes the other back)"));
  if (train.steps == 0 && o.given("steps") && !o.given("epochs"))
    o.problem("steps", "is 0, and epochs are not given; expected one of the two");
  train.seed = static_cast<std::uint64_t>(
      o.integer("seed", 1, "Seed of initialisation, order, augmentation, dropout and noise.",
                {0, kLargestSeed}));
  std::vector<std::string> precisions;
  for (const Precision& each : kPrecisions) precisions.emplace_back(each.name);
  const std::string precision = o.choice(
      "precision", precisions, "float32",
      "Number format of parameters and activations. bfloat16 is mixed: the weights are float32, "
      "and layers compute with bfloat16 copies of them; norms, softmax, losses, sums of gradients "
      "and the optimizer are float32, messages between stages bfloat16. It is fast on processors "
      "with bfloat16 instructions. float16 is the same with dynamic loss scaling, stage by stage, "
      "for GPUs.");
  train.precision = *std::ranges::find(kPrecisions, precision, &Precision::name);
  read_numerics(o);
  train.sum_gradients =
      o.choice("gradient", {"mean", "sum"}, "mean",
               "Gradient of a mini-batch. mean: over all samples; sum: the sum of the "
               "micro-batches' means. Both average replicas, each weighted by its samples where a "
               "mini-batch is divided unevenly.") == "sum";
  train.drain_each_epoch =
      o.choice("drain", {"epoch", "never"}, "epoch",
               "When the pipeline is drained: after every epoch, or never before the end; such a "
               "run is evaluated only there, unless train.evaluate says more.") == "epoch";
  train.evaluate_every =
      whole(o, "evaluate_every", 1,
            "Number of epochs between evaluations; the last epoch is always evaluated.", {1, 1e6});
  Options evaluate = o.section(
      "evaluate",
      "Evaluations that drain no pipeline and change no bit of the training: each stage sets the "
      "weights aside that it is about to replace. Their results are in evaluations.csv.");
  train.evaluate_within =
      evaluate.integer("every", 0,
                       "Number of mini-batches or epochs between evaluations, counted from the "
                       "beginning of the training, whose end is always evaluated; 0 = as "
                       "evaluate_every says, where the pipeline is drained.",
                       {0, 1e9});
  train.evaluate_unit_epoch =
      evaluate.choice("unit", {"epoch", "minibatch"}, "epoch", "Unit of `every`.") == "epoch";
  if (train.evaluate_within > 0 && train.evaluate_every != 1)
    evaluate.problem("every", concat("is ", train.evaluate_within, ", and train.evaluate_every is ",
                                     train.evaluate_every, "; expected one of the two"));
  evaluate.finish();
  Options checkpoint =
      o.section("checkpoint", "Checkpoints: the state that is saved while training, for --resume.");
  train.checkpoint_every =
      whole(checkpoint, "every", train.drain_each_epoch ? 1 : 0,
            "Number of epochs or mini-batches between checkpoints; 0 = none, which is the default "
            "with drain: never, because a checkpoint drains the pipeline.",
            {0, 1e9});
  train.checkpoint_unit_epoch =
      checkpoint.choice(
          "unit", {"epoch", "minibatch"}, "epoch",
          "Unit of `every`, which counts from the beginning of the training. A checkpoint within "
          "an epoch drains the pipeline, also in runs that are not interrupted.") == "epoch";
  checkpoint.finish();
  o.finish();
  return train;
}

OutputOptions read_output(Options& root) {
  Options o = root.section("output", "Files that the run writes besides epochs.csv.");
  OutputOptions output;
  output.steps = o.flag("steps", true, "Whether to write steps.csv, the loss of every mini-batch.");
  output.weights =
      o.flag("weights", true, "Whether to write final.safetensors, all parameters and buffers.");
  output.trace = o.flag("trace", false,
                        "Whether to write trace.json, which says when each action of the last "
                        "epoch ran, for chrome://tracing or Perfetto.");
  output.tensorboard = o.flag("tensorboard", false,
                              "Whether to write the curves to an event file while the run goes on: "
                              "`tensorboard --logdir DIR` shows those of all runs below DIR.");
  o.finish();
  return output;
}

std::vector<std::string> read_metrics(Options& root) {
  const Value given =
      root.any("metrics", Value::sequence(),
               "Metrics, which become columns of epochs.csv besides test_accuracy and those that "
               "the data set adds itself: a list of names that `pipewright list metrics` prints, "
               "such as [top5]. Of the losses mse and l1 it is mae, without being asked for.");
  std::vector<std::string> names;
  if (!given.is(Value::Kind::Sequence))
    root.problem("metrics", concat("is ", given.shown(), "; expected a list such as [top5]"));
  for (const Value& item : given.items) {
    if (item.is(Value::Kind::Text) && (item.text == kBleu || make_metric(item.text))) {
      names.push_back(item.text);
      continue;
    }
    auto known = Registry<Metric>::instance().names();
    known.push_back(kBleu);
    root.problem("metrics", concat("names ", item.shown(), ", which is no metric",
                                   suggestion(item.text, known), plugin_hint(item.text, known)));
  }
  return names;
}

TranslationOptions read_translation(Options& root) {
  Options o = root.section("translation", "Translation of the test samples for the metric bleu.");
  TranslationOptions t;
  t.search.beam =
      whole(o, "beam", 5, "Beam width: the number of hypotheses kept of each sentence.", {1, 1000});
  t.search.max_length =
      whole(o, "max_length", 80,
            "Largest number of tokens in a translation, start and end included.", {2, 1e5});
  t.search.length_exponent = o.number(
      "length_exponent", 0.6,
      "Exponent of the length normalization: scores are divided by ((5 + length) / 6) to it.",
      {0, 10});
  t.search.coverage_penalty =
      o.number("coverage_penalty", 0.1,
               "Weight of the penalty for source tokens that got little attention.", {0, 100});
  t.batch_size = whole(o, "batch_size", 128, "Number of sentences translated at once.", {1, 1e6});
  t.bleu.tokenizer = o.choice("tokenizer", {"13a", "intl", "none"}, "13a",
                              "Tokenizer of sacreBLEU for translations and references.");
  t.bleu.lowercase = o.flag("lowercase", false, "Whether texts are compared in lower case.");
  o.finish();
  return t;
}

}  // namespace pipewright
