//===- Binding.cpp - The arguments of a call ------------------------------===//

#include "Binding.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace rondo;

std::string rondo::argumentText(const ParameterInfo &info, unsigned i, Side side) {
  std::string text = "argument #" + std::to_string(i) + " '%" + info.name + "'";
  if (!info.path.empty())
    text += " (" + info.path + ")";
  return text + " of the " + sideName(side).str();
}

/// Strides matter where a dimension has more than one index.
static bool fits(const TensorType &type, const Tensor &tensor) {
  if (type.dtype != tensor.dtype() || type.rank() != tensor.rank())
    return false;
  for (unsigned i = 0; i < type.rank(); ++i)
    if (!type.shape[i].isConstant(tensor.shape()[i]))
      return false;
  if (tensor.numElements() == 0)
    return true;
  for (unsigned i = 0; i < type.rank(); ++i)
    if (tensor.shape()[i] > 1 && !type.strides[i].isConstant(tensor.strides()[i]))
      return false;
  return true;
}

bool rondo::shareMemory(const Tensor &a, const Tensor &b) {
  return a.device() == b.device() && a.numElements() != 0 && b.numElements() != 0 &&
         a.data() < b.data() + b.extentBytes() && b.data() < a.data() + a.extentBytes();
}

static std::string typeText(const Type &type) {
  return type.asRNGState() ? type.str() + " (seed and offset, as i64[2])" : type.str();
}

std::string rondo::problemOfTensor(const Type &type, const Value &value) {
  std::optional<TensorType> tensorType = tensorTypeOf(type);
  const Tensor *tensor = value.asTensor();
  if (!tensorType)
    return "programs take no values of type " + type.str();
  if (!tensor || tensor->isNull())
    return "expected " + typeText(type) + ", got " + value.description();
  if (tensor->device() != tensorType->device)
    return "expected a tensor on " + deviceName(tensorType->device) + ", got one on " +
           deviceName(tensor->device()) + "; copyTo moves it";
  if (!fits(*tensorType, *tensor))
    return "expected " + typeText(type) + ", got " + value.description();
  return "";
}

static llvm::Error numberError(llvm::ArrayRef<ParameterInfo> inputs, Side side,
                               llvm::ArrayRef<Value> values) {
  return makeError("the " + sideName(side) + " takes " + llvm::Twine(inputs.size()) +
                   " arguments, got " + llvm::Twine(values.size()));
}

/// Are all arguments the tensors of the last call, which fitted, or views with the same layout of
/// the same bytes? What most replays find out about their arguments, and nothing else.
static bool areAsTheyWere(llvm::ArrayRef<Value> inputs, const BoundArguments &bound) {
  if (!bound.isBound || !bound.misaligned.empty() || inputs.size() != bound.arguments.size())
    return false;
  const BoundArgument *known = bound.arguments.data();
  // Neither waits for the other.
  uintptr_t addresses = 0, layouts = 0;
  for (const Value &input : inputs) {
    const Tensor *tensor = input.asTensor();
    if (!tensor)
      return false;
    addresses |=
        reinterpret_cast<uintptr_t>(tensor->data()) ^ reinterpret_cast<uintptr_t>(known->address);
    layouts |= reinterpret_cast<uintptr_t>(tensor->layout().get()) ^
               reinterpret_cast<uintptr_t>(known->layout.get());
    ++known;
  }
  return (addresses | layouts) == 0;
}

namespace {

class Binder {
public:
  Binder(const Schedule &schedule, llvm::ArrayRef<Value> inputs, BoundArguments &bound)
      : schedule_(schedule), inputs_(inputs), bound_(bound) {}

  llvm::Error run() {
    if (inputs_.size() != schedule_.inputs.size())
      return numberError(schedule_.inputs, schedule_.side, inputs_);
    if (!bound_.isBound || !bound_.misaligned.empty())
      reset();
    bound_.isBound = false;
    for (unsigned i = 0; i < inputs_.size(); ++i)
      bind(i, inputs_[i].asTensor());
    if (!isBad_ && haveMoved_)
      checkOverlaps();
    if (isBad_)
      return diagnostics_.takeError();
    bound_.isBound = true;
    return llvm::Error::success();
  }

private:
  void error(unsigned i, const llvm::Twine &message) {
    isBad_ = true;
    diagnostics_.error({}, argumentText(schedule_.inputs[i], i, schedule_.side) + ": " + message);
  }

  void reset() {
    LayoutRef ofScalars(new TensorLayout(Device(), DType::Bool, {}, {}));
    bound_.arguments.assign(inputs_.size(), {nullptr, ofScalars});
    bound_.misaligned.clear();
    bound_.scalars.assign(schedule_.scalarKinds.size(), Slot());
    for (const auto &[scalar, value] : schedule_.constants)
      bound_.scalars[scalar] = value;
    ++bound_.version;
    haveMoved_ = true;
  }

  void bind(unsigned i, const Tensor *tensor) {
    if (!tensor || tensor->isNull() || tensor->layout() != bound_.arguments[i].layout)
      bindSlowly(i, tensor);
    else if (tensor->data() != bound_.arguments[i].address)
      move(i, *tensor);
  }

  /// The argument, which fits, is elsewhere than before.
  void move(unsigned i, const Tensor &tensor) {
    bound_.arguments[i] = {tensor.data(), tensor.layout()};
    haveMoved_ = true;
    ++bound_.version;
    checkAlignment(i, tensor);
  }

  void bindSlowly(unsigned i, const Tensor *tensor) {
    const ParameterInfo &info = schedule_.inputs[i];
    if (const ScalarType *scalar = info.type.asScalar()) {
      if (!bindScalar(scalar->kind, inputs_[i], bound_.scalars[schedule_.inputPlaces[i].scalar]))
        error(i, "expected a host scalar " + info.type.str() + ", got " + inputs_[i].description());
      return;
    }
    std::string problem = problemOfTensor(info.type, inputs_[i]);
    if (problem.empty())
      move(i, *tensor);
    else
      error(i, problem);
  }

  static bool bindScalar(ScalarKind kind, const Value &value, Slot &slot) {
    if (kind == ScalarKind::I64 && value.asInt())
      slot.i64 = *value.asInt();
    else if (kind == ScalarKind::F64 && value.asFloat())
      slot.f64 = *value.asFloat();
    else if (kind == ScalarKind::Bool && value.asBool())
      slot.boolean = *value.asBool();
    else
      return false;
    return true;
  }

  void checkAlignment(unsigned i, const Tensor &tensor) {
    uintptr_t address = reinterpret_cast<uintptr_t>(tensor.data());
    if (address % DeviceAPI::minAlignment == 0 || tensor.numElements() == 0)
      return;
    if (address % dtypeSize(tensor.dtype()) != 0)
      error(i, "its address is not a multiple of the size of an element, " +
                   llvm::Twine(dtypeSize(tensor.dtype())) + " bytes");
    else if (schedule_.storages[schedule_.inputPlaces[i].storage].isStatic)
      error(i, "it is static, so its address has to be a multiple of " +
                   llvm::Twine(DeviceAPI::minAlignment) + " bytes");
    else
      bound_.misaligned.push_back(i);
  }

  /// Do two arguments share bytes, one of them written?
  bool haveOverlaps() {
    std::vector<BoundArguments::Range> &ranges = bound_.ranges;
    ranges.clear();
    for (unsigned i = 0; i < inputs_.size(); ++i)
      if (const Tensor *tensor = inputs_[i].asTensor(); tensor && tensor->numElements() != 0)
        ranges.push_back({tensor->data(), tensor->data() + tensor->extentBytes(),
                          schedule_.storages[schedule_.inputPlaces[i].storage].isWritten});
    llvm::sort(ranges, [](const auto &a, const auto &b) { return a.begin < b.begin; });
    // The furthest end of those that begin before, of all and of the written ones.
    const std::byte *end = nullptr, *writtenEnd = nullptr;
    for (const BoundArguments::Range &range : ranges) {
      if (range.begin < writtenEnd || (range.isWritten && range.begin < end))
        return true;
      end = std::max(end, range.end);
      if (range.isWritten)
        writtenEnd = std::max(writtenEnd, range.end);
    }
    return false;
  }

  /// No other argument may share bytes with one that is written.
  void checkOverlaps() {
    if (schedule_.writtenInputs.empty() || !haveOverlaps())
      return;
    for (uint32_t storage : schedule_.writtenInputs) {
      if (schedule_.storages[storage].space != Space::Argument)
        continue;
      unsigned written = schedule_.storages[storage].index;
      const Tensor &a = *inputs_[written].asTensor();
      for (unsigned i = 0; i < inputs_.size(); ++i) {
        const Tensor *b = inputs_[i].asTensor();
        if (b && i != written && shareMemory(a, *b))
          error(i, "it shares memory with " +
                       argumentText(schedule_.inputs[written], written, schedule_.side) +
                       ", which is written");
      }
    }
  }

  const Schedule &schedule_;
  llvm::ArrayRef<Value> inputs_;
  BoundArguments &bound_;
  DiagnosticList diagnostics_;
  bool isBad_ = false, haveMoved_ = false;
};

} // namespace

llvm::Error rondo::bindArguments(const Schedule &schedule, llvm::ArrayRef<Value> inputs,
                                 BoundArguments &bound) {
  if (areAsTheyWere(inputs, bound))
    return llvm::Error::success();
  return Binder(schedule, inputs, bound).run();
}

//===----------------------------------------------------------------------===//
// Outputs
//===----------------------------------------------------------------------===//

static std::string resultText(const Schedule &schedule, unsigned i) {
  return "output #" + std::to_string(i) + " for result '%" + schedule.results[i].name +
         "' of the " + sideName(schedule.side).str();
}

static bool shareBytes(ByteRange a, ByteRange b) {
  return !a.empty() && !b.empty() && a.begin() < b.end() && b.begin() < a.end();
}

static ByteRange bytesOf(const Tensor &tensor) {
  return {tensor.data(), tensor.extentBytes()};
}

/// Why no tensor can take the place of result `i`; empty if one can.
static std::string problemOfResult(const Schedule &schedule, unsigned i) {
  const ResultPlan &plan = schedule.resultPlans[i];
  if (schedule.results[i].isMissing)
    return "the result is missing";
  if (!plan.place.isTensor())
    return "the result is a host scalar";
  const PlannedStorage &storage = schedule.storages[plan.place.storage];
  if (storage.space != Space::Results)
    return "the result shares memory with " + storage.name + ", which the call is given";
  if (plan.place.byteOffset != 0 || plan.layout->extentBytes != storage.bytes)
    return "the result is a part of " + storage.name;
  return "";
}

/// What is wrong with `output` for result `i`, which can be placed; empty if nothing.
static std::string problemOfOutput(const Schedule &schedule, unsigned i, const Tensor &output) {
  const TensorLayout &layout = *schedule.resultPlans[i].layout;
  if (output.device() != layout.device)
    return "expected a tensor on " + deviceName(layout.device) + ", got one on " +
           deviceName(output.device());
  bool fits = output.dtype() == layout.dtype && output.shape() == llvm::makeArrayRef(layout.shape);
  for (unsigned d = 0; fits && d < output.rank(); ++d)
    fits = output.shape()[d] <= 1 || output.strides()[d] == layout.strides[d] ||
           output.numElements() == 0;
  if (!fits)
    return "expected " + schedule.results[i].type.str() + ", got " + Value(output).description();
  if (reinterpret_cast<uintptr_t>(output.data()) % DeviceAPI::minAlignment != 0)
    return "its address has to be a multiple of " + std::to_string(DeviceAPI::minAlignment) +
           " bytes";
  return "";
}

llvm::Error rondo::placeOutputs(
    const Schedule &schedule, llvm::ArrayRef<Value> inputs, llvm::ArrayRef<Tensor> outputs,
    llvm::function_ref<void(llvm::function_ref<void(const std::string &, ByteRange)>)> saved,
    llvm::SmallVectorImpl<PlacedResult> &placed) {
  if (outputs.size() != schedule.results.size())
    return makeError("the " + sideName(schedule.side) + " gives " +
                     llvm::Twine(schedule.results.size()) + " results, got " +
                     llvm::Twine(outputs.size()) + " outputs for them");
  DiagnosticList diagnostics;
  for (unsigned i = 0; i < outputs.size(); ++i) {
    const Tensor &output = outputs[i];
    if (output.isNull())
      continue;
    auto error = [&](const llvm::Twine &message) {
      diagnostics.error({}, resultText(schedule, i) + ": " + message);
    };
    std::string problem = problemOfResult(schedule, i);
    if (problem.empty())
      problem = problemOfOutput(schedule, i, output);
    if (!problem.empty()) {
      error(problem);
      continue;
    }
    for (unsigned k = 0; k < inputs.size(); ++k)
      if (const Tensor *input = inputs[k].asTensor(); input && input->device() == output.device() &&
                                                      shareBytes(bytesOf(*input), bytesOf(output)))
        error("it shares memory with " + argumentText(schedule.inputs[k], k, schedule.side));
    for (unsigned k = 0; k < i; ++k)
      if (!outputs[k].isNull() && outputs[k].device() == output.device() &&
          shareBytes(bytesOf(outputs[k]), bytesOf(output)))
        error("it shares memory with " + resultText(schedule, k));
    saved([&](const std::string &name, ByteRange bytes) {
      if (shareBytes(bytes, bytesOf(output)))
        error("it shares memory with what is saved for '" + name + "'");
    });
    placed.push_back(
        {uint32_t(schedule.resultPlans[i].place.storage), {output.storage(), output.data()}});
  }
  return diagnostics.takeError();
}

//===----------------------------------------------------------------------===//
// Symbols
//===----------------------------------------------------------------------===//

llvm::Expected<SymbolBindings> rondo::bindSymbols(llvm::ArrayRef<ParameterInfo> inputs, Side side,
                                                  llvm::ArrayRef<Value> values) {
  if (values.size() != inputs.size())
    return numberError(inputs, side, values);
  SymbolBindings bindings;
  llvm::StringMap<unsigned> boundBy; // argument, by symbol
  llvm::SmallVector<std::string, 4> symbols;
  for (unsigned i = 0; i < inputs.size(); ++i) {
    const TensorType *type = inputs[i].type.asTensor();
    if (!type || !type->hasSymbols())
      continue;
    inputs[i].type.collectSymbols(symbols);
    const Tensor *tensor = values[i].asTensor();
    if (!tensor || tensor->isNull() || tensor->rank() != type->rank())
      return makeError(argumentText(inputs[i], i, side) + ": expected " + inputs[i].type.str() +
                       ", got " + values[i].description());
    for (unsigned d = 0; d < type->rank(); ++d) {
      llvm::SmallVector<std::string, 2> names;
      type->shape[d].collectSymbols(names);
      if (names.size() != 1 || type->shape[d] != Dim::symbol(names.front()))
        continue; // an expression: checked when its symbols are known
      boundBy.try_emplace(names.front(), i);
      auto [found, isNew] = bindings.try_emplace(names.front(), tensor->shape()[d]);
      if (isNew || found->second == tensor->shape()[d])
        continue;
      unsigned other = boundBy.lookup(names.front());
      return makeError(argumentText(inputs[i], i, side) + ": by its dimension " + llvm::Twine(d) +
                       " " + names.front() + " is " + llvm::Twine(tensor->shape()[d]) + ", by " +
                       argumentText(inputs[other], other, side) + " it is " +
                       llvm::Twine(found->second));
    }
  }
  for (const std::string &symbol : symbols)
    if (!bindings.count(symbol))
      return makeError("no argument has a dimension that says what symbol '" + symbol + "' is");
  return bindings;
}
