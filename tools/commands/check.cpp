// SPDX-License-Identifier: Apache-2.0
// `pipewright check`: plans an experiment or all runs of a sweep without training.
#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "core/base/error.h"
#include "core/base/printed.h"
#include "core/base/text.h"
#include "core/base/text_table.h"
#include "core/base/wording.h"
#include "core/config/merge.h"
#include "core/drawing/render_profile.h"
#include "core/experiment/dynamics.h"
#include "core/experiment/experiment.h"
#include "core/experiment/grouped_parameters.h"
#include "core/experiment/named_keys.h"
#include "core/experiment/reading.h"
#include "core/experiment/stage_layout.h"
#include "core/measuring/hardware_fit.h"
#include "core/measuring/hardware_source.h"
#include "core/measuring/measured_balance.h"
#include "core/measuring/measured_layout.h"
#include "core/nn/numerics.h"
#include "core/schedule/remarks.h"
#include "core/simulation/shipped_hardware.h"
#include "core/stability/stability_report.h"
#include "core/sweep/sweep_check.h"
#include "core/sweep/sweep_duration.h"
#include "core/sweep/sweep_plan.h"
#include "core/system/terminal.h"
#include "core/tables/claims.h"
#include "core/tables/pilot.h"
#include "core/tables/plot_spec.h"
#include "core/tables/table_spec.h"
#include "core/training/assembly.h"
#include "core/training/memory_need.h"
#include "core/training/plan.h"
#include "tools/command.h"
#include "tools/results.h"
#include "tools/start/libtorch.h"

namespace pipewright {
namespace {

constexpr const char* kRuns = "runs";  // default folder of run folders

void tell(const std::string& text) {
  print_error("%s\n", text.c_str());
}

/// The cut as Megatron-Core writes it, of models that it has, too: those that continue texts, and
/// those of which such a layout was given.
void print_layout(const Experiment& e) {
  const Value* const given = e.resolved.find_path("pipeline.balance");
  const bool wanted =
      e.model->task() == Task::Continue ||
      (given != nullptr && given->is(Value::Kind::Text) && looks_like_layout(given->text));
  if (!wanted) return;
  if (const std::string layout = layout_of_balance(e.layout.balance, e.layers); !layout.empty())
    print("layout      %s, in Megatron-Core's letters\n", layout.c_str());
}

void print_plan(const Plan& plan, const std::optional<HardwareFit>& fit) {
  const Experiment& e = *plan.experiment;
  const auto layers = plan.experiment->stage_layers();
  print("data        %zu training and %zu %s samples, %s of %lld an epoch\n", plan.train.size(),
        plan.test.size(), plan.test_split == Split::Test ? "test" : "held-out",
        counted(plan.minibatches, "mini-batch").c_str(),
        static_cast<long long>(e.loader.batch_size));
  if (const std::int64_t vocabulary = plan.dataset->vocabulary(); vocabulary > 0)
    print("            %s in the vocabulary\n", counted(vocabulary, "token").c_str());
  print("schedule    valid: %s, %s, %s\n", counted(plan.training.workers.size(), "worker").c_str(),
        counted(plan.training.actions, "action").c_str(),
        counted(plan.training.messages, "message").c_str());
  print(
      "\n stage  layers                          parameters  copies   stale F/B   memory without "
      "activations\n");
  double all = 0;
  for (int stage = 0; stage < e.pipeline.stages; ++stage) {
    const auto& own = layers[static_cast<std::size_t>(stage)];
    const StageNeed need = stage_need(plan, stage);
    all += need.parameters;
    const StageVersions& versions =
        plan.training.versions.stages[static_cast<std::size_t>(stage)][0];
    const std::string names = own.size() == 1
                                  ? own.front()->name()
                                  : concat(own.front()->name(), " … ", own.back()->name());
    print(" %5d  %-30s  %10s  %6d   %3d / %-3d   %s\n", stage, names.c_str(),
          count_text(need.parameters).c_str(), versions.copies, versions.forward_staleness,
          versions.backward_staleness, bytes_text(need.bytes).c_str());
  }
  print(" total  %-30s  %10.0f\n\n", "", all);
  print_layout(e);
  print("memory      %s\n",
        fit ? concat("worker ", fit->worker, " needs most: ", fit->text()).c_str()
            : memory_text(plan).c_str());
}

/// What each group of the optimizer has.
void print_groups(const Experiment& e) {
  const auto groups = e.optimizer->groups();
  const std::vector<GroupShare> shares = group_shares(e);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::string name = e.resolved.find_path(dotted(groups[i].option) + ".name")->text;
    const std::string which =
        groups[i].option == "optimizer" ? "the others" : join(groups[i].match, ", ");
    print("%-11s %s: %s of %s, %s\n", i == 0 ? "optimizer" : "", which.c_str(), name.c_str(),
          counted(shares[i].tensors, "tensor").c_str(),
          counted(shares[i].parameters, "parameter").c_str());
  }
}

/// A line on the edges of stability of an optimizer that has them.
void print_edges(const Experiment& e) {
  try {
    const std::vector<GroupDynamics> all = dynamics_of_groups(e);
    if (all.empty()) return;
    const std::string of = e.optimizer->groups().empty() ? "" : all.front().option + ": ";
    print("stability   %s%s\n", of.c_str(),
          stability_line(stability_report(all.front().dynamics)).c_str());
  } catch (const Error& error) {  // the training needs no edges
    if (error.kind() != ErrorKind::Experiment) throw;
    print("stability   %s\n", error.what());
  }
}

void print_notes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes)
    if (!note.empty()) print("\nnote: %s\n", note.c_str());
}

/// `here`: the plan is for this machine.
void print_remarks(const Plan& plan, bool here) {
  const Experiment& e = *plan.experiment;
  const bool on_cpu = here && std::ranges::any_of(plan.devices, &at::Device::is_cpu);
  const bool on_gpu = std::ranges::any_of(
      e.pipeline.devices, [](const std::string& name) { return name.starts_with("cuda"); });
  std::vector<std::string> remarks{
      e.scheme->remark(), e.optimizer->remark(), precision_remark(e.train.precision, on_cpu),
      numerics_remark(numerics_of(e.resolved), on_cpu, on_gpu), memory_format_remark(e)};
  for (const ScheduleRewrite& rewrite : e.pipeline.rewrites)
    remarks.push_back(rewrite.remark(plan.training.schedule));
  remarks.insert(remarks.end(),
                 {update_remark(plan.training), edges_remark(rules_beyond_edges(e))});
  for (const NamedGradientRule& rule : e.gradient_rules) remarks.push_back(rule.rule->remark());
  std::ranges::move(plan.remarks(), std::back_inserter(remarks));
  print_notes(remarks);
}

/// Explains the cut if there is a profile of the layers: the one it names, or one beside the run
/// folders.
void print_cut(const Experiment& e) {
  const at::Device device = profiled_device(e);
  const bool named = e.measured_balance && !e.measured_balance->profile.empty();
  const auto file = named ? e.measured_balance->profile : profile_path(e, device, kRuns);
  if (!std::filesystem::exists(file)) return;
  const Profile profile = load_profile(file, e, device, {});
  const int stages = e.pipeline.stages;
  print("\nas profiled on %s (%s), for a micro-batch of %s:\n%s", profile.device.c_str(),
        file.c_str(), counted(profile.samples, "sample").c_str(),
        render_cut(profile, stage_memories(e, profile, stages), cut_rules(e, stages),
                   e.layout.balance)
            .c_str());
}

/// The machine that a plan is for: as the document describes it, on the file that was given; none
/// without, as it is then this one. Devices of that machine need not be here.
std::optional<Hardware> other_machine(const CommandLine& line, Value& document) {
  if (!line.given("hardware")) return std::nullopt;
  Problems none;
  set_path(document, "pipeline.device", Value::of("cpu"), none);
  return HardwareSource(hardware_file(line.text("hardware"))).of(document, PipelineShape());
}

/// `remark` says which point of a sweep the document is.
void check_one(const CommandLine& line, Value document, const std::string& remark,
               const Problems& faults) {
  const std::optional<Hardware> machine = other_machine(line, document);
  std::optional<Experiment> experiment;
  check_all({[&] { experiment = read_experiment(document, faults); },
             [&] { read_table_spec(document); }, [&] { read_plot_spec(document); },
             [&] { read_claims(document); }, [&] { check_hardware(document); }});
  RunRecord only;
  only.config = experiment->resolved;
  check_named_keys(document, {only});
  if (remark.empty()) check_tables(document, {only});
  need_libtorch();
  if (!remark.empty()) tell(remark);
  print("experiment  %s\n", experiment->name.c_str());
  Team alone;
  CostSource costs({});
  std::optional<HardwareFit> fit;
  if (machine) fit = fit_on(*experiment, *machine, costs);
  const Experiment settled = experiment->with(
      fit ? fit->layout : settle_layout(*experiment, {.runs = kRuns, .tell = tell}, alone));
  const Plan plan = make_plan(settled);
  check_weights(plan);
  print_plan(plan, fit);
  print_groups(settled);
  print_edges(settled);
  if (!fit) print_cut(settled);
  print_remarks(plan, !fit);
  print_notes({fit ? fit->remark : "", hardware_remark(read_table_spec(document))});
  fit ? fit->require() : check_memory(plan);
}

/// "0" or "−3…0".
std::string range_text(int least, int most) {
  const auto number = [](int n) { return n < 0 ? concat("−", -n) : std::to_string(n); };
  return least == most ? number(least) : concat(number(least), "…", number(most));
}

/// The smallest edge with its stage: "0.0158 (0)"; why there is none in a word.
std::string edge_cell(const Experiment& e) {
  try {
    const auto dynamics = dynamics_of(e);
    if (!dynamics) return "–";
    const StabilityReport report = stability_report(*dynamics);
    const int stage = tightest_stage(report);
    return concat(rounded_text(report.stages[static_cast<std::size_t>(stage)].edge), " (", stage,
                  ")");
  } catch (const Error& error) {  // the training needs no edges
    if (error.kind() != ErrorKind::Experiment) throw;
    return "–";
  }
}

/// A line about runs that differ only in their seed: the most of any stage, and ranges over stages.
std::vector<std::string> line_of(const std::string& title, std::size_t runs, const Plan& plan,
                                 const std::optional<HardwareFit>& fit) {
  const Experiment& e = *plan.experiment;
  double most = 0;
  int copies = 0;
  std::vector<int> forward, backward;
  for (int stage = 0; stage < e.pipeline.stages; ++stage) {
    const StageVersions& versions =
        plan.training.versions.stages[static_cast<std::size_t>(stage)][0];
    most = std::max(most, stage_need(plan, stage).bytes);
    copies = std::max(copies, versions.copies);
    forward.push_back(versions.forward_staleness);
    backward.push_back(versions.backward_staleness);
  }
  const auto range = [](const std::vector<int>& of) {
    const auto [least, largest] = std::ranges::minmax(of);
    return range_text(least, largest);
  };
  return {title,
          concat(runs),
          concat(e.pipeline.stages),
          concat(plan.training.workers.size()),
          concat(plan.minibatches),
          concat(plan.training.actions),
          concat(copies),
          concat(range(forward), " / ", range(backward)),
          edge_cell(e),
          bytes_text(fit ? static_cast<double>(fit->need) : most)};
}

void print_duration(const SweepDuration& duration) {
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  if (const auto seconds = duration.seconds())
    print(
        "Time on this machine: about %s on %s that nothing else uses, estimated from the times of "
        "layers.\n",
        duration_text(*seconds / cores).c_str(), counted(cores, "core").c_str());
  else if (duration.operations() > 0)
    print("Work: %s operations, too many to be timed here.\n",
          rounded_text(duration.operations()).c_str());
}

/// What the rows of a pilot say about the claims.
void print_pilot(const Value& document, const std::vector<RunRecord>& planned,
                 const std::filesystem::path& pilot) {
  const std::string text = pilot_text(read_claims(document), read_table_spec(document), planned,
                                      read_result_rows(pilot));
  print("\nWhat the planned seeds can show, by the pilot's rows:\n%s",
        text.empty() ? "no claim compares means\n" : text.c_str());
}

void check_all_of(const CommandLine& line, Value document, const Problems& faults) {
  const std::optional<Hardware> machine = other_machine(line, document);
  const std::filesystem::path pilot = line.text("pilot");  // rows of results; "" without
  check_all({[&] { faults.throw_if_any(); }, [&] { check_hardware(document); },
             [&] { read_table_spec(document); }, [&] { read_plot_spec(document); },
             [&] { read_claims(document); }});
  TextTable table(
      {"run", "runs", "stages", "workers", "batches", "actions", "copies", "stale F / B",
       "smallest edge", machine ? "peak memory of a worker" : "memory without activations"},
      {0, 9});
  const std::string name = document.find("name")->text;
  std::vector<RunRecord> planned;
  SweepDuration duration;
  std::set<std::string> rules;
  std::map<std::string, std::vector<std::string>> remarks;  // with the runs that have each
  const std::size_t runs = check_sweep(
      document, {.runs = std::filesystem::path(kRuns) / name, .tell = tell, .of_sweep = true},
      machine,
      [&](const std::string& title, std::size_t of, const Plan& plan,
          const std::optional<HardwareFit>& fit) {
        table.add(line_of(title, of, plan, fit));
        planned.emplace_back().config = plan.experiment->resolved;
        duration.add(plan, of);
        for (const std::string& rule : rules_beyond_edges(*plan.experiment)) rules.insert(rule);
        for (const std::string& remark : plan.remarks()) remarks[remark].push_back(title);
      });
  check_named_keys(document, planned);
  const std::vector<RunRecord> records =
      records_of(plan_sweep(document, std::filesystem::path(kRuns) / name));
  check_tables(document, records);
  print("experiment  %s\n\n%s", name.c_str(), table.text().c_str());
  print(
      "\n%s valid. batches: mini-batches of an epoch; actions: from fill to drain;\n"
      "copies of weights and memory: of the stage that has the most; staleness: from the stage "
      "that\n"
      "has the least to the one that has the most, negative where weights are predicted beyond "
      "the\n"
      "update; smallest edge: the largest stable learning rate × curvature, and its stage.\n",
      runs == 1 ? "The only run is" : concat("All ", runs, " runs are").c_str());
  if (machine)
    print("Every worker fits into the memory of its device of %s.\n", machine->name.c_str());
  else
    print_duration(duration);
  std::vector<std::string> notes{edges_remark({rules.begin(), rules.end()}),
                                 few_runs_remark(document, records),
                                 hardware_remark(read_table_spec(document))};
  for (const auto& [remark, of] : remarks) {
    const std::string others = of.size() > 1 ? concat(" and ", of.size() - 1, " more") : "";
    notes.push_back(of.size() == planned.size()
                        ? remark
                        : concat(remark, " (run '", of.front(), "'", others, ")"));
  }
  print_notes(notes);
  if (!pilot.empty()) print_pilot(document, records, pilot);
}

/// The options of the file's first run, with a profile of it.
Value first_run(const ExperimentArguments& given, const std::string& profile) {
  Problems faults;
  const Value document = load_document(given.file, profile, given.sets, faults);
  return read_experiment(expand_sweep(document).front().document, faults).resolved;
}

/// Tells which profiles of the file no command could use.
void tell_faulty_profiles(const ExperimentArguments& given,
                          const std::vector<std::string>& profiles) {
  for (const std::string& name : profiles) try {
      first_run(given, name);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::Bug) throw;
      tell(concat("note: no command can use the profile '", name, "': ", error.what()));
    }
}

/// Whether a resolved option is as the file gave it, which may give a path in other words.
bool is_as_given(const Value& resolved, const Value& given) {
  if (resolved == given) return true;
  if (!resolved.is(Value::Kind::Text) || !given.is(Value::Kind::Text)) return false;
  const std::filesystem::path folder = std::filesystem::path(given.place.file).parent_path();
  try {
    return resolved.text == resolved_path(given.text, folder.empty() ? "." : folder).string();
  } catch (const Error&) {  // it is no path
    return false;
  }
}

/// Tells which options of extended files no longer hold, where that makes a difference.
void tell_dropped(const Value& resolved, const std::vector<DroppedOption>& dropped) {
  for (const DroppedOption& each : dropped) {
    const Value* const now = resolved.find_path(each.key);
    if (now != nullptr && !is_as_given(*now, each.value))
      tell(concat("note: ", each.by.text(), ": a section that gives its name replaces that of the ",
                  "extended file, so ", each.key, " is ", to_json(*now), " here, not ",
                  to_json(each.value), " as in ", each.value.place.text(),
                  "; give it again, or leave out the name"));
  }
}

/// Tells which options and profiles of the files do not do what a reader would expect. Says nothing
/// where a file cannot be read: the check itself does.
void tell_of_files(const ExperimentArguments& given) {
  Composition files;
  Value resolved;
  try {
    files = composition_of(given.file);
    resolved = first_run(given, "");
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Bug) throw;
    return;
  }
  tell_dropped(resolved, files.dropped);
  tell_faulty_profiles(given, files.profiles);
}

int run_check(const std::vector<std::string>& arguments) {
  CommandLine line(
      kCheck,
      "Validates an experiment without training it: reads the options, opens the data, cuts the "
      "model, "
      "proves the schedule and says what each stage holds. If the file has a sweep, it does so for "
      "every run, or for the one that --point names. With balance: time or memory it measures the "
      "layers once and writes the profile to runs/, or to the sweep's folder there, where later "
      "runs find it. Without --profile it also names profiles of the file that no command could "
      "use, and options of an extended file that no longer hold.\n\n"
      "With --hardware the plan is for that machine: every worker's peak, activations included, is "
      "simulated and held against the memory of its device. Then nothing is measured, the cut is "
      "that for its rates, and no device of pipeline.device need be here.");
  line.experiment(false);
  line.point();
  line.option("hardware", "FILE",
              "check the plan against the devices of this description instead of this machine: a "
              "file, or a name of `list hardware`");
  line.option(
      "pilot", "ROWS",
      "rows of results of a pilot with other seeds: print for each claim of the sweep which "
      "effect its seeds can find, and warn where none could show it, and where a setting lies at "
      "the "
      "edge of those that the pilot has tried");
  if (!line.parse(arguments)) return 0;
  const ExperimentArguments given = line.experiment_arguments();
  Problems faults;
  if (given.point.empty()) {
    const Value document = given.document(faults);
    try {
      document.find("sweep") != nullptr ? check_all_of(line, document, faults)
                                        : check_one(line, document, "", faults);
    } catch (const Error&) {
      if (given.profile.empty()) tell_of_files(given);
      throw;
    }
    if (given.profile.empty()) tell_of_files(given);
    return 0;
  }
  const OneExperiment one = one_experiment(given, faults);
  check_one(line, one.document, one.remark, faults);
  return 0;
}

}  // namespace

const Command kCheck{"check",
                     "check FILE [--hardware H] [--set key=value]… [--profile P] [--pilot ROWS]",
                     "validate an experiment without training it", run_check};

}  // namespace pipewright
