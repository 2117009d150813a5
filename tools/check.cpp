// `pipewright check`: everything short of training.
#include <cstdio>
#include <optional>

#include "core/base/error.h"
#include "core/config/merge.h"
#include "core/experiment/experiment.h"
#include "core/experiment/measured_balance.h"
#include "core/experiment/plan.h"
#include "core/experiment/table_spec.h"
#include "core/runtime/device.h"
#include "tools/command.h"

namespace pipewright {
namespace {

/// Bytes of one stage replica: parameter copies, gradient and optimizer state.
double stage_bytes(const Plan& plan, int stage, double parameters) {
  const Experiment& e = *plan.experiment;
  const int copies = plan.training.versions.stages[static_cast<std::size_t>(stage)][0].copies;
  const double state = static_cast<double>(e.optimizer->slot_names(false).size());
  return parameters * (e.train.float64 ? 8 : 4) * (copies + 1 + state);
}

void print_plan(const Plan& plan) {
  const Experiment& e = *plan.experiment;
  const auto layers = plan.stage_layers();
  std::printf("data        %zu training and %zu %s samples, %d mini-batches of %lld an epoch\n",
              plan.train.size(), plan.test.size(),
              plan.test_split == Split::Test ? "test" : "held-out", plan.minibatches,
              static_cast<long long>(e.loader.batch_size));
  std::printf("schedule    valid: %d workers, %zu actions, %d messages\n",
              static_cast<int>(plan.training.workers.size()), plan.training.serial_order.size(),
              plan.training.messages);
  std::printf(
      "\n stage  layers                          parameters  copies   stale F/B   memory without "
      "activations\n");
  double all = 0;
  for (int stage = 0; stage < e.pipeline.stages; ++stage) {
    const auto& of = layers[static_cast<std::size_t>(stage)];
    double parameters = 0;
    for (const auto& [name, shape] : parameter_shapes(of, plan.head_of(stage))) {
      double size = 1;
      for (const auto extent : shape) size *= static_cast<double>(extent);
      parameters += size;
    }
    all += parameters;
    const StageVersions& versions =
        plan.training.versions.stages[static_cast<std::size_t>(stage)][0];
    const std::string names =
        of.size() == 1 ? of.front()->name() : concat(of.front()->name(), " … ", of.back()->name());
    std::printf(" %5d  %-30s  %10s  %6d   %3d / %-3d   %s\n", stage, names.c_str(),
                count_text(parameters).c_str(), versions.copies, versions.forward_staleness,
                versions.backward_staleness,
                bytes_text(stage_bytes(plan, stage, parameters)).c_str());
  }
  std::printf(" total  %-30s  %10.0f\n", "", all);
}

/// The experiment; its sweep and table are read too, so that all that is wrong is said at once.
Experiment checked(const Value& document, const Problems& faults) {
  std::optional<Experiment> experiment;
  std::vector<std::string> wrong;
  auto attempt = [&](const auto& read) {
    try {
      read();
    } catch (const Error& error) {
      wrong.emplace_back(error.what());
    }
  };
  attempt([&] { experiment = read_experiment(document, faults); });
  attempt([&] {
    if (document.find("sweep") != nullptr) expand_sweep(document);
  });
  attempt([&] { read_table_spec(document); });
  if (!wrong.empty()) throw Error(ErrorKind::Experiment, join(wrong, "\n"));
  return std::move(*experiment);
}

constexpr const char* kRuns = "runs";  // where `run` puts its folders

/// Of the experiment's layers, where one has been measured.
std::optional<Profile> stored_profile(const Experiment& e) {
  const at::Device device =
      resolve_devices({e.pipeline.devices.front()}, e.where("pipeline.device")).front();
  const auto file = profile_path(e, device, kRuns);
  if (!std::filesystem::exists(file)) return {};
  return load_profile(file, e, device, {});
}

void print_cut(const Experiment& e, const Profile& profile) {
  const int stages = e.pipeline.stages;
  std::printf(
      "\nas profiled on %s, for a micro-batch of %lld samples:\n%s", profile.device.c_str(),
      static_cast<long long>(profile.samples),
      render_cut(profile, stage_memories(e, profile, stages), cut_rules(e, stages), e.balance)
          .c_str());
}

int run(const std::vector<std::string>& arguments) {
  CommandLine line(
      kCheck,
      "Does everything short of training: reads the options, opens the data, cuts the model, "
      "proves the schedule and says what a stage holds.");
  line.experiment(false);
  if (!line.parse(arguments)) return 0;
  Problems faults;
  const Value document = line.experiment_arguments().document(faults);
  Experiment experiment = checked(document, faults);
  std::printf("experiment  %s\n", experiment.name.c_str());
  Team alone;
  const auto tell = [](const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); };
  std::optional<Profile> profile =
      settle_balance(experiment, {.runs = kRuns, .recorded = {}, .tell = tell}, alone);
  const Plan plan = make_plan(experiment);
  check_weights(plan);
  print_plan(plan);
  if (!profile) profile = stored_profile(experiment);
  if (profile) print_cut(experiment, *profile);
  for (const std::string& remark : {experiment.scheme->remark(), plan.drains.remark()})
    if (!remark.empty()) std::printf("\nnote: %s\n", remark.c_str());
  return 0;
}

}  // namespace

const Command kCheck{"check", "check FILE [--set key=value]… [--profile P]",
                     "everything short of training", run};

}  // namespace pipewright
