//===- RecordedValues.cpp - The values of a run elsewhere -----------------===//

#include "rondo/executors/RecordedValues.h"

using namespace rondo;

llvm::Expected<RecordedValues> RecordedValues::open(llvm::StringRef path,
                                                    llvm::ArrayRef<FXOutput> outputs) {
  llvm::Expected<Safetensors> file = Safetensors::open(path);
  if (!file)
    return file.takeError();
  RecordedValues values(std::move(*file));
  values.hasOutputs_ = !outputs.empty();
  for (unsigned i = 0; i < outputs.size(); ++i) {
    switch (outputs[i].kind) {
    case FXOutput::Kind::User:
      values.results_.push_back(i);
      break;
    case FXOutput::Kind::Saved:
      values.saved_[outputs[i].name] = i;
      break;
    case FXOutput::Kind::Mutated:
      values.mutated_[outputs[i].name] = i;
      values.mutatedInputs_.push_back(outputs[i].name);
      break;
    }
  }
  return values;
}

const Tensor *RecordedValues::input(Side side, llvm::StringRef name) const {
  return file_.find((sideName(side) + ".in." + name).str());
}

static std::string outputName(Side side, unsigned i) {
  return sideName(side).str() + ".out." + std::to_string(i);
}

const Tensor *RecordedValues::result(Side side, unsigned i) const {
  if (side == Side::Backward || !hasOutputs_)
    return file_.find(outputName(side, i));
  return i < results_.size() ? file_.find(outputName(side, results_[i])) : nullptr;
}

const Tensor *RecordedValues::saved(llvm::StringRef name) const {
  auto found = saved_.find(name);
  return found == saved_.end() ? nullptr : file_.find(outputName(Side::Forward, found->second));
}

const Tensor *RecordedValues::mutated(llvm::StringRef name) const {
  auto found = mutated_.find(name);
  return found == mutated_.end() ? nullptr : file_.find(outputName(Side::Forward, found->second));
}
