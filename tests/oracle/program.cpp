// SPDX-License-Identifier: Apache-2.0
#include "program.h"

#include "cases.h"
#include "safetensors.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <tuple>

namespace oracle {
namespace {

namespace fs = std::filesystem;

std::vector<double> values(const Matrix& matrix) {
  return {matrix.data(), matrix.data() + matrix.size()};
}

/// `labels`: so many for a sample, of which that with its number is 1; 0: its number.
void append(std::vector<NamedTensor>& tensors, const std::string& prefix, const Data& data,
            int labels) {
  const auto rows = static_cast<std::int64_t>(data.y.size());
  tensors.push_back({prefix + ".x", {rows, data.x.cols()}, values(data.x)});
  if (labels == 0) {
    tensors.push_back({prefix + ".y", {rows}, {data.y.begin(), data.y.end()}, true});
    return;
  }
  std::vector<double> holds;
  for (const int y : data.y)
    for (int label = 0; label < labels; ++label) holds.push_back(label == y ? 1 : 0);
  tensors.push_back({prefix + ".y", {rows, labels}, holds, true});
}

void write_inputs(const Experiment& experiment, const fs::path& folder) {
  std::vector<NamedTensor> data;
  const int labels = experiment.loss == "cross_entropy" ? 0 : experiment.widths.back();
  append(data, "train", training_data(experiment), labels);
  append(data, "test", test_data(experiment), labels);
  write_safetensors(folder / "data.safetensors", data);

  std::vector<NamedTensor> weights;
  const std::vector<Tensors> initial = initial_weights(experiment);
  for (int k = 0; k < experiment.stages(); ++k) {
    const std::vector<std::string> names = parameter_names(experiment, k);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const Matrix& tensor = initial[static_cast<std::size_t>(k)][i];
      std::vector<std::int64_t> shape{tensor.rows(), tensor.cols()};
      if (names[i].ends_with(".bias")) shape.erase(shape.begin());
      weights.push_back({names[i], shape, values(tensor)});
    }
  }
  write_safetensors(folder / "init.safetensors", weights);
  std::ofstream(folder / "experiment.yaml") << experiment_file(experiment);
}

/// Runs a command with its output in a file; 128 + signal if it was killed.
int spawn(std::vector<std::string> words, const fs::path& log) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t process = 0;
  const int error =
      posix_spawn(&process, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error("cannot start " + words[0]);
  int status = 0;
  if (waitpid(process, &status, 0) < 0) throw std::runtime_error("lost " + words[0]);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

StepLine parse(const std::string& line) {
  std::vector<double> cells;
  std::istringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(std::stod(cell));
  if (cells.size() < 3) throw std::runtime_error("steps.csv has the line '" + line + "'");
  return {static_cast<int>(cells[0]), static_cast<int>(cells[1]), {cells.begin() + 2, cells.end()}};
}

std::vector<StepLine> read_steps(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line) || !line.starts_with("epoch,minibatch,loss"))
    throw std::runtime_error(path.string() + " is not there or begins with '" + line + "'");
  std::vector<StepLine> steps;
  while (std::getline(file, line)) steps.push_back(parse(line));
  std::stable_sort(steps.begin(), steps.end(), [](const StepLine& a, const StepLine& b) {
    return std::tie(a.epoch, a.minibatch) < std::tie(b.epoch, b.minibatch);
  });
  const int first_epoch = steps.empty() ? 0 : steps.front().epoch;
  for (StepLine& step : steps) step.epoch -= first_epoch;
  return steps;
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Puts a run that is done into the state of one that was killed behind its last checkpoint.
void unfinish(const fs::path& run) {
  nlohmann::json state = nlohmann::json::parse(text_of(run / "run.json"));
  state.at("state") = "running";
  std::ofstream(run / "run.json") << state;
  for (const char* name : {"final.safetensors", "steps.csv", "epochs.csv", "traffic.csv"})
    fs::remove(run / name);
}

/// Adds the options of a section of the JSON Schema: its own and those of its parts.
void add_options(const std::string& section, const nlohmann::json& schema,
                 std::map<std::string, std::string>& all) {
  if (schema.contains("items")) return add_options(section, schema.at("items"), all);
  const auto add = [&](const std::string& place, const nlohmann::json& properties) {
    for (const auto& [option, facts] : properties.items())
      if (option != "name")
        all[place + "." + option] =
            facts.is_object() ? facts.value("default", nlohmann::json()).dump() : "null";
  };
  if (!schema.contains("allOf")) return add(section, schema.at("properties"));
  for (const nlohmann::json& part : schema.at("allOf")) {
    const std::string place =
        section + "." + part.at("if").at("properties").at("name").at("const").get<std::string>();
    all[place];
    add(place, part.at("then").at("properties"));
  }
}

}  // namespace

std::map<std::string, std::string> options_of_program(const fs::path& folder) {
  fs::create_directories(folder);
  const fs::path log = folder / "schema.json";
  if (spawn({PIPEWRIGHT_BINARY, "schema"}, log) != 0) throw std::runtime_error(text_of(log));
  const nlohmann::json schema = nlohmann::json::parse(text_of(log));
  std::map<std::string, std::string> all;
  for (const char* section :
       {"scheme", "optimizer", "gradient_rules", "perturb", "lr_schedule", "train"})
    add_options(section, schema.at("properties").at(section), all);
  return all;
}

ProgramRun run_program(const Experiment& experiment, const fs::path& folder) {
  fs::create_directories(folder);
  write_inputs(experiment, folder);
  const fs::path out = folder / "run", log = folder / "log.txt";
  ProgramRun run;
  std::vector<std::string> command{PIPEWRIGHT_BINARY, "run", (folder / "experiment.yaml").string(),
                                   "--out", out.string()};
  run.exit_code = spawn(command, log);
  if (run.exit_code == 0 && experiment.resumed) {
    unfinish(out);
    command.push_back("--resume");
    run.exit_code = spawn(command, log);
  }
  run.log = text_of(log);
  if (run.exit_code != 0) return run;
  for (auto& [name, tensor] : read_safetensors(out / "final.safetensors"))
    run.weights[name] = std::move(tensor.values);
  run.steps = read_steps(out / "steps.csv");
  return run;
}

}  // namespace oracle
