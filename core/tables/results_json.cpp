// SPDX-License-Identifier: Apache-2.0
#include "core/tables/results_json.h"

#include "core/config/json.h"
#include "core/config/value.h"
#include "core/tables/run_keys.h"
#include "core/tables/time_to.h"

namespace pipewright {
namespace {

Value whole(std::size_t count) {
  return Value::of(static_cast<std::int64_t>(count));
}

/// A sequence of texts or numbers.
template <class Item>
Value listed_values(const std::vector<Item>& items) {
  Value list = Value::sequence();
  for (const Item& item : items) list.items.push_back(Value::of(item));
  return list;
}

Value cell_value(const Table& table, const std::vector<std::string>& row, const std::string& column,
                 const TableCell& cell) {
  Value value = mapping_of({{"metric", Value::of(table.metric)},
                            {"row", listed_values(row)},
                            {"column", Value::of(column)},
                            {"n", whole(cell.values.size())},
                            {"mean", Value::of(cell.mean())},
                            {"std", Value::of(cell.std())},
                            {"values", listed_values(cell.values)},
                            {"seeds", listed_values(cell.seeds)},
                            {"failed", Value::of(cell.failed)},
                            {"missing", Value::of(cell.missing)},
                            {"interrupted", Value::of(cell.interrupted)},
                            {"running", Value::of(cell.running)},
                            {"without", Value::of(cell.without)}});
  if (const std::string unit = unit_of(table.metric); !unit.empty())
    value.at_or_add("unit") = Value::of(unit);
  if (is_time_to(table.metric)) value.at_or_add("not_reached") = whole(cell.not_reached());
  if (cell.learned) value.at_or_add("learned") = Value::of(*cell.learned);
  if (!cell.chosen.empty()) value.at_or_add("chosen") = Value::of(cell.chosen);
  if (cell.published) value.at_or_add("published") = Value::of(cell.published->text);
  return value;
}

void add_cells(const Table& table, Value& cells) {
  for (std::size_t r = 0; r < table.cells.size(); ++r)
    for (std::size_t c = 0; c < table.cells[r].size(); ++c)
      if (!table.cells[r][c].empty())
        cells.items.push_back(
            cell_value(table, table.row_names[r], table.column_names[c], table.cells[r][c]));
}

/// A condition on how runs end.
Value ending_value(const ClaimTest& test) {
  return mapping_of({{"kind", Value::of(test.kind)},
                     {"verdict", Value::of(words_of(test.outcome))},
                     {"why", Value::of(test.why)},
                     {"of", Value::of(test.of)},
                     {"n", whole(test.runs_of)},
                     {"hits", whole(test.hits)},
                     {"floor", Value::of(test.floor)},
                     {"interval", listed_values<double>({test.interval.low, test.interval.high})},
                     {"interval_kind", Value::of(test.interval_kind)},
                     {"level", Value::of(test.confidence)}});
}

/// What a comparison has shown. A difference from another row claims no direction.
std::string verdict_words(const ClaimTest& test) {
  if (test.kind != "against" || test.outcome == Outcome::NotShown) return words_of(test.outcome);
  return test.outcome == Outcome::Held ? "more" : "less";
}

/// A comparison of two means.
Value comparison_value(const ClaimTest& test) {
  const Value none;
  const auto of_pairs = [&](std::size_t count) { return test.paired ? whole(count) : none; };
  Value value =
      mapping_of({{"kind", Value::of(test.kind)},
                  {"verdict", Value::of(verdict_words(test))},
                  {"why", Value::of(test.why)},
                  {"metric", Value::of(test.metric)},
                  {"of", Value::of(test.of)},
                  {"minus", Value::of(test.minus)},
                  {"paired", test.compared ? Value::of(test.paired) : none},
                  {"n_of", whole(test.runs_of)},
                  {"n_minus", whole(test.runs_minus)},
                  {"mean_of", Value::of(test.mean_of)},
                  {"mean_minus", Value::of(test.mean_minus)},
                  {"effect", Value::of(test.effect)},
                  {"interval", listed_values<double>({test.interval.low, test.interval.high})},
                  {"interval_kind", Value::of(test.interval_kind)},
                  {"level", Value::of(test.confidence)},
                  {"std_of_differences", Value::of(test.deviation)},
                  {"correlation", Value::of(test.correlation)},
                  {"wins", of_pairs(test.wins)},
                  {"ties", of_pairs(test.ties)},
                  {"losses", of_pairs(test.losses)},
                  {"within", Value::of(test.within)},
                  {"p", Value::of(test.p)},
                  {"p_holm", Value::of(test.p_adjusted)},
                  {"p_sign_flips", Value::of(test.p_signs)},
                  {"detectable_effect", Value::of(test.detectable)},
                  {"detectable_effect_holm", Value::of(test.detectable_adjusted)}});
  if (test.ratio) value.at_or_add("ratio") = Value::of(true);
  return value;
}

Value claim_value(const Verdict& verdict) {
  Value tests = Value::sequence();
  for (const ClaimTest& test : verdict.tests)
    tests.items.push_back(test.minus.empty() ? ending_value(test) : comparison_value(test));
  return mapping_of({{"say", Value::of(verdict.say)},
                     {"verdict", Value::of(words_of(verdict.outcome))},
                     {"why", Value::of(verdict.why)},
                     {"tests", std::move(tests)}});
}

Value tradeoff_value(const TradeoffRow& row) {
  return mapping_of({{"name", Value::of(row.name)},
                     {"metric", Value::of(row.metric)},
                     {"std", Value::of(row.std)},
                     {"n", whole(row.runs)},
                     {"diverged", whole(row.diverged)},
                     {"failed", whole(row.failed)},
                     {"not_reached", whole(row.not_reached)},
                     {"hours", Value::of(row.time)},
                     {"samples_per_second", Value::of(row.samples_per_second)},
                     {"bubble", Value::of(row.bubble)},
                     {"worker_state_gib", Value::of(row.worker_gib)},
                     {"efficient", Value::of(row.efficient)}});
}

}  // namespace

std::string results_json(const Table& table, const std::vector<Verdict>& verdicts,
                         const std::vector<ClaimTest>& differences,
                         const std::vector<TradeoffRow>& tradeoff) {
  Value cells = Value::sequence(), claims = Value::sequence(), against = Value::sequence(),
        rows = Value::sequence();
  add_cells(table, cells);
  for (const Table& other : table.beside) add_cells(other, cells);
  for (const Verdict& verdict : verdicts) claims.items.push_back(claim_value(verdict));
  for (const ClaimTest& test : differences) against.items.push_back(comparison_value(test));
  for (const TradeoffRow& row : tradeoff) rows.items.push_back(tradeoff_value(row));
  return to_json(mapping_of({{"metric", Value::of(table.metric)},
                             {"caption", Value::of(table.caption)},
                             {"row_keys", listed_values(table.row_keys)},
                             {"cells", std::move(cells)},
                             {"notes", listed_values(table.notes)},
                             {"mixed", listed_values(table.mixed)},
                             {"choices", listed_values(table.choices)},
                             {"tradeoff", std::move(rows)},
                             {"against", std::move(against)},
                             {"claims", std::move(claims)}})) +
         "\n";
}

}  // namespace pipewright
