//===- Figures.cpp - What benchmarks measured -----------------------------===//

#include "Figures.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

#include <nlohmann/json.hpp>

#include <array>
#include <vector>

using namespace rondo;

static std::string number(double value) {
  std::string text;
  const char *format = value >= 100 ? "%.0f" : value >= 10 ? "%.1f" : "%.2f";
  llvm::raw_string_ostream(text) << llvm::format(format, value);
  return text;
}

using Row = std::array<std::string, 7>;

static Row rowOf(const Figure &figure) {
  Row row = {figure.bench, figure.what, number(figure.value), figure.unit, "", "", ""};
  if (figure.baseline)
    row[4] = number(*figure.baseline) + " " + figure.baselineName;
  if (std::optional<double> ratio = figure.ratio())
    row[5] = number(*ratio);
  if (figure.bar)
    row[6] = (figure.meetsBar() ? "within " : "ABOVE ") + number(*figure.bar);
  return row;
}

void rondo::printFigures(llvm::ArrayRef<Figure> figures, llvm::raw_ostream &os) {
  std::vector<Row> rows = {{"bench", "what", "figure", "unit", "against", "ratio", "bar"}};
  for (const Figure &figure : figures)
    rows.push_back(rowOf(figure));
  constexpr std::array<bool, 7> isRight = {false, false, true, false, true, true, false};
  for (const Row &row : rows) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      size_t width = 0;
      for (const Row &other : rows)
        width = std::max(width, other[c].size());
      std::string padding(width - row[c].size(), ' ');
      line += (c ? "  " : "") + (isRight[c] ? padding + row[c] : row[c] + padding);
    }
    os << llvm::StringRef(line).rtrim() << '\n';
  }
}

void rondo::writeFigures(llvm::ArrayRef<Figure> figures, llvm::StringRef device,
                         llvm::StringRef description, llvm::raw_ostream &os) {
  nlohmann::ordered_json figureList = nlohmann::ordered_json::array();
  for (const Figure &figure : figures) {
    nlohmann::ordered_json &entry = figureList.emplace_back();
    entry["bench"] = figure.bench;
    entry["what"] = figure.what;
    entry["unit"] = figure.unit;
    entry["value"] = figure.value;
    if (figure.baseline) {
      entry["baseline"] = *figure.baseline;
      entry["baseline_name"] = figure.baselineName;
    }
    if (std::optional<double> ratio = figure.ratio())
      entry["ratio"] = *ratio;
    if (figure.bar) {
      entry["bar"] = *figure.bar;
      entry["bar_on"] = figure.baseline && !figure.barIsOnValue ? "ratio" : "value";
      entry["meets_bar"] = figure.meetsBar();
    }
  }
  nlohmann::ordered_json json = {{"tool", "rondo-bench"},
                                 {"device", device.str()},
                                 {"description", description.str()},
                                 {"figures", std::move(figureList)}};
  os << json.dump(2) << '\n';
}
