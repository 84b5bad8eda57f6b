//===- Buckets.cpp - Sizes that calls are padded to -----------------------===//

#include "Buckets.h"

#include "ProgramImpl.h"

#include "rondo/executors/FloatSemantics.h"
#include "rondo/executors/LoopNest.h"
#include "rondo/ir/Diagnostic.h"

#include "llvm/ADT/APSInt.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace rondo;

//===----------------------------------------------------------------------===//
// What the caller declares
//===----------------------------------------------------------------------===//

static std::string bucketsText(llvm::ArrayRef<int64_t> sizes) {
  std::vector<std::string> texts;
  for (int64_t size : sizes)
    texts.push_back(std::to_string(size));
  return llvm::join(texts, ", ");
}

static bool hasBuckets(const ProgramOptions &options, const Dim &dim) {
  llvm::SmallVector<std::string, 2> symbols;
  dim.collectSymbols(symbols);
  return llvm::any_of(symbols,
                      [&](const std::string &symbol) { return options.buckets.count(symbol); });
}

static bool hasBuckets(const ProgramOptions &options, const Type &type) {
  const TensorType *tensor = type.asTensor();
  return tensor &&
         llvm::any_of(tensor->shape, [&](const Dim &dim) { return hasBuckets(options, dim); });
}

static double paddingOf(const ProgramOptions &options, const ParameterInfo &input) {
  auto found = options.padding.find(input.name);
  return found == options.padding.end() ? 0 : found->second;
}

static std::string numberText(double number) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", number);
  return text;
}

/// The bits of an element that holds `value`, rounded if the dtype has fractions. Nothing if it has
/// no such number; of 8-bit floats only 0 is known.
static std::optional<llvm::APInt> elementOf(DType dtype, double value) {
  llvm::APFloat number(value);
  if (const llvm::fltSemantics *semantics = floatSemantics(dtype)) {
    bool losesInfo;
    auto status = number.convert(*semantics, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    if (status & llvm::APFloat::opOverflow)
      return std::nullopt;
    return number.bitcastToAPInt();
  }
  unsigned bits = 8 * dtypeSize(dtype);
  if (value == 0)
    return llvm::APInt(bits, 0);
  if (dtype == DType::Bool)
    return value == 1 ? std::optional(llvm::APInt(bits, 1)) : std::nullopt;
  if (!isInteger(dtype))
    return std::nullopt;
  llvm::APSInt integer(bits, /*isUnsigned=*/dtype == DType::U8);
  bool isExact;
  number.convertToInteger(integer, llvm::APFloat::rmTowardZero, &isExact);
  return isExact ? std::optional<llvm::APInt>(integer) : std::nullopt;
}

namespace {

class BucketChecker {
public:
  BucketChecker(const ProgramOptions &options, llvm::ArrayRef<ParameterInfo> inputs, Device device)
      : options_(options), inputs_(inputs), device_(device) {}

  void checkSizes(llvm::ArrayRef<std::string> symbols) {
    for (const auto &[symbol, sizes] : options_.buckets) {
      if (!llvm::is_contained(symbols, symbol))
        error("buckets are given for symbol '" + symbol + "', which no argument has");
      bool isAscending = !sizes.empty() && sizes.front() > 0;
      for (size_t i = 1; i < sizes.size(); ++i)
        isAscending &= sizes[i - 1] < sizes[i];
      if (!isAscending)
        error("the buckets of symbol '" + symbol + "' have to be positive and ascending, got " +
              (sizes.empty() ? "none" : bucketsText(sizes)));
    }
  }

  /// Only where a size is a symbol by itself is it known where the padding is.
  void checkShape(const Type &type, const std::string &text) {
    if (const TensorType *tensor = type.asTensor())
      for (unsigned d = 0; d < tensor->rank(); ++d)
        if (const Dim &dim = tensor->shape[d]; hasBuckets(options_, dim) && !isSymbol(dim))
          error(text + ": its dimension " + llvm::Twine(d) + " is " + dim.str() +
                ", but one with buckets has to be the symbol alone");
  }

  void checkInput(unsigned i) {
    const ParameterInfo &input = inputs_[i];
    std::string text = argumentText(input, i, Side::Forward);
    checkShape(input.type, text);
    if (!hasBuckets(options_, input.type))
      return;
    const TensorType &type = *input.type.asTensor();
    if (type.device != device_)
      error(text + ": it is on " + deviceName(type.device) +
            ", but only arguments on the program's first device, " + deviceName(device_) +
            ", are padded");
    if (any(input.tags & staticTags) && options_.onStaticMove == StaticMove::Error)
      error(text + ": it is static, but where it is padded its address is not the caller's: "
                   "StaticMove::Error cannot hold");
    double padding = paddingOf(options_, input);
    if (!elementOf(type.dtype, padding))
      error(text + ": no " + dtypeName(type.dtype) + " is " + numberText(padding) +
            ", the padding");
  }

  void checkPaddingNames() {
    for (const auto &entry : options_.padding)
      if (llvm::none_of(inputs_, [&, &name = entry.first](const ParameterInfo &input) {
            return input.name == name && hasBuckets(options_, input.type);
          }))
        error("padding is given for '" + entry.first +
              "', but no argument of that name has a size with buckets");
  }

  void error(const llvm::Twine &message) { diagnostics_.error({}, message); }
  llvm::Error takeError() { return diagnostics_.takeError(); }

private:
  static bool isSymbol(const Dim &dim) {
    llvm::SmallVector<std::string, 2> symbols;
    dim.collectSymbols(symbols);
    return symbols.size() == 1 && dim == Dim::symbol(symbols.front());
  }

  const ProgramOptions &options_;
  llvm::ArrayRef<ParameterInfo> inputs_;
  const Device device_;
  DiagnosticList diagnostics_;
};

} // namespace

llvm::Error rondo::checkBuckets(const ProgramOptions &options, llvm::ArrayRef<std::string> symbols,
                                llvm::ArrayRef<ParameterInfo> inputs,
                                llvm::ArrayRef<ParameterInfo> results, bool hasBackward,
                                Device device) {
  BucketChecker checker(options, inputs, device);
  if (hasBackward && !options.buckets.empty())
    checker.error("a pair with a backward cannot have buckets: gradients would count the padding");
  checker.checkSizes(symbols);
  for (unsigned i = 0; i < inputs.size(); ++i)
    checker.checkInput(i);
  for (unsigned i = 0; i < results.size(); ++i)
    checker.checkShape(results[i].type, "result #" + std::to_string(i) + " '%" + results[i].name +
                                            "' of the forward");
  checker.checkPaddingNames();
  return checker.takeError();
}

llvm::Error rondo::roundUpToBuckets(const ProgramOptions &options, SymbolBindings &bindings) {
  for (const auto &[symbol, sizes] : options.buckets) {
    int64_t &size = bindings[symbol];
    auto bucket = llvm::lower_bound(sizes, size);
    if (bucket == sizes.end())
      return makeError("symbol '" + symbol + "' is " + llvm::Twine(size) +
                       ", which is above the greatest of its buckets: " + bucketsText(sizes));
    size = *bucket;
  }
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

/// Makes `plan` write elements of `bits`.
static llvm::Error setPattern(PaddedInput &plan, const llvm::APInt &bits, const DeviceRef &device) {
  unsigned size = dtypeSize(plan.layout->dtype);
  std::vector<uint8_t> bytes(plan.layout->extentBytes);
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = uint8_t(bits.extractBitsAsZExtValue(8, 8 * (i % size)));
  plan.byte = bytes.empty() ? 0 : bytes.front();
  if (llvm::all_of(bytes, [&](uint8_t byte) { return byte == plan.byte; }))
    return llvm::Error::success();
  llvm::Expected<StorageRef> pattern = Storage::allocate(device, bytes.size());
  if (!pattern)
    return pattern.takeError();
  llvm::Expected<std::unique_ptr<Stream>> stream = device->createStream();
  if (!stream)
    return stream.takeError();
  if (llvm::Error error = (*stream)->copy((*pattern)->data(), bytes.data(), bytes.size()))
    return error;
  plan.pattern = std::move(*pattern);
  return (*stream)->synchronize();
}

/// What is padded is a copy, so a view of it would not share the caller's memory.
static llvm::Error checkResultViews(const Padding &padding, const Schedule &schedule,
                                    llvm::ArrayRef<ParameterInfo> inputs,
                                    llvm::ArrayRef<ParameterInfo> results) {
  DiagnosticList diagnostics;
  for (unsigned i = 0; i < results.size(); ++i) {
    const Place &place = schedule.resultPlans[i].place;
    if (!place.isTensor() || schedule.storages[place.storage].space != Space::Argument)
      continue;
    unsigned input = schedule.storages[place.storage].index;
    bool isPadded =
        llvm::any_of(padding.inputs, [&](const PaddedInput &plan) { return plan.input == input; });
    bool isWhole = place.byteOffset == 0 && results[i].type == inputs[input].type;
    if (isPadded && !isWhole)
      diagnostics.error({}, "result #" + llvm::Twine(i) + " '%" + results[i].name +
                                "' of the forward is a view of " +
                                argumentText(inputs[input], input, Side::Forward) +
                                ", which may be padded: return that itself, or a copy");
  }
  return diagnostics.takeError();
}

llvm::Expected<Padding> rondo::planPadding(const ProgramOptions &options, const Schedule &schedule,
                                           llvm::ArrayRef<ParameterInfo> inputs,
                                           llvm::ArrayRef<ParameterInfo> results,
                                           llvm::ArrayRef<DeviceRef> devices) {
  Padding padding;
  padding.blockBytes.assign(devices.size(), 0);
  uint64_t &bytes = padding.blockBytes.front();
  for (unsigned i = 0; i < inputs.size(); ++i) {
    if (!hasBuckets(options, inputs[i].type))
      continue;
    PaddedInput &plan = padding.inputs.emplace_back();
    plan.input = i;
    plan.layout = TensorLayout::get(*schedule.inputs[i].type.asTensor());
    plan.offset = bytes;
    bytes += llvm::alignTo(plan.layout->extentBytes, DeviceAPI::allocationAlignment);
    std::optional<llvm::APInt> element =
        elementOf(plan.layout->dtype, paddingOf(options, inputs[i]));
    assert(element && "checkBuckets refuses it");
    if (llvm::Error error = setPattern(plan, *element, devices.front()))
      return error;
  }
  if (llvm::Error error = checkResultViews(padding, schedule, inputs, results))
    return error;
  return padding;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// The bytes of a tensor's elements as they lie in two layouts with its shape: rows have no gaps in
/// either, and the first one starts at 0 in both.
static LoopNest runsOf(const TensorLayout &a, llvm::ArrayRef<int64_t> stridesOfB) {
  int64_t elementBytes = dtypeSize(a.dtype);
  llvm::SmallVector<unsigned, 5> order(a.shape.size());
  for (unsigned d = 0; d < order.size(); ++d)
    order[d] = d;
  llvm::stable_sort(order, [&](unsigned x, unsigned y) { return stridesOfB[x] > stridesOfB[y]; });
  llvm::SmallVector<int64_t, 6> shape, inA, inB;
  for (unsigned d : order) {
    shape.push_back(a.shape[d]);
    inA.push_back(a.strides[d] * elementBytes);
    inB.push_back(stridesOfB[d] * elementBytes);
  }
  // The innermost dimension is the bytes of an element.
  shape.push_back(elementBytes);
  inA.push_back(1);
  inB.push_back(1);
  return LoopNest(shape, {inA, inB});
}

/// Calls `visit(a, b)` for every run: where it starts in the two layouts.
static llvm::Error forEachRun(const LoopNest &runs,
                              llvm::function_ref<llvm::Error(int64_t, int64_t)> visit) {
  llvm::Error error = llvm::Error::success();
  runs.forEachRow([&](llvm::ArrayRef<int64_t> offsets) {
    if (!error)
      error = visit(offsets[0], offsets[1]);
  });
  return error;
}

llvm::Error PaddedCall::run(llvm::ArrayRef<Value> inputs, llvm::ArrayRef<Tensor> outputs,
                            llvm::SmallVectorImpl<Value> &results,
                            llvm::function_ref<llvm::Error(llvm::ArrayRef<Value>)> call) {
  if (llvm::Error error = checkOutputs(outputs))
    return error;
  for (const PaddedInput &plan : variant_.padding.inputs)
    if (const Tensor &real = *inputs[plan.input].asTensor();
        real.shape() != llvm::makeArrayRef(plan.layout->shape))
      padded_.push_back({&plan, &real});
  if (padded_.empty())
    return call(inputs);
  sizes_ = llvm::cantFail(bindSymbols(program_.inputs(Side::Forward), Side::Forward, inputs));
  if (llvm::Error error = check(inputs, outputs))
    return error;
  if (llvm::Error error = lease())
    return error;
  llvm::Error error = runPadded(inputs, call);
  // What was submitted uses the block, also after an error.
  if (llvm::Error releaseError = release()) {
    if (!error)
      return releaseError;
    llvm::consumeError(std::move(releaseError));
  }
  if (error)
    return error;
  giveResults(results);
  return llvm::Error::success();
}

llvm::Error PaddedCall::runPadded(llvm::ArrayRef<Value> inputs,
                                  llvm::function_ref<llvm::Error(llvm::ArrayRef<Value>)> call) {
  std::vector<Value> bucketed(inputs.begin(), inputs.end());
  for (const Padded &padded : padded_) {
    if (llvm::Error error = pad(padded))
      return error;
    bucketed[padded.plan->input] =
        Tensor(block_->storage(0), int64_t(padded.plan->offset), padded.plan->layout);
  }
  if (llvm::Error error = call(bucketed))
    return error;
  for (const Padded &padded : padded_)
    if (isWritten(padded.plan->input))
      if (llvm::Error error = copyBack(padded))
        return error;
  return llvm::Error::success();
}

/// The caller's memory has no room for what a bucket adds.
llvm::Error PaddedCall::checkOutputs(llvm::ArrayRef<Tensor> outputs) const {
  llvm::ArrayRef<ParameterInfo> results = program_.results(Side::Forward);
  DiagnosticList diagnostics;
  for (unsigned i = 0; i < std::min(outputs.size(), results.size()); ++i)
    if (!outputs[i].isNull() && hasBuckets(program_.options_, results[i].type))
      diagnostics.error({}, "output #" + llvm::Twine(i) + " for result '%" + results[i].name +
                                "' of the forward: its size has buckets, so it has to lie in "
                                "memory of the program's");
  return diagnostics.takeError();
}

/// What the call checks of arguments, of those that it does not see.
llvm::Error PaddedCall::check(llvm::ArrayRef<Value> inputs, llvm::ArrayRef<Tensor> outputs) const {
  DiagnosticList diagnostics;
  for (const Padded &padded : padded_) {
    unsigned i = padded.plan->input;
    auto error = [&](const llvm::Twine &message) {
      diagnostics.error({}, text(i) + ": " + message);
    };
    std::string problem = problemOfTensor(info(i).type.substitute(sizes_), inputs[i]);
    if (!problem.empty()) {
      error(problem);
      continue;
    }
    for (unsigned k = 0; k < inputs.size(); ++k)
      if (const Tensor *other = inputs[k].asTensor(); other && *other && k != i &&
                                                      (isWritten(i) || isWritten(k)) &&
                                                      shareMemory(*padded.real, *other))
        error("it shares memory with " + text(k) + ", and one of them is written");
    for (unsigned k = 0; k < outputs.size(); ++k)
      if (!outputs[k].isNull() && shareMemory(*padded.real, outputs[k]))
        error("it shares memory with output #" + llvm::Twine(k));
  }
  return diagnostics.takeError();
}

llvm::Error PaddedCall::lease() {
  {
    std::lock_guard<std::mutex> lock(program_.mutex_);
    Padding &padding = variant_.padding;
    llvm::Expected<BlockRef> block =
        program_.leaseBlock(padding.blocks, padding.blockBytes, stream_, false);
    if (!block)
      return block.takeError();
    block_ = std::move(*block);
    if (isCaptured_)
      keepForCapture();
  }
  return isCaptured_ ? llvm::Error::success() : block_->lastUse().acquire(stream_);
}

void PaddedCall::keepForCapture() const {
  auto kept = std::make_unique<Retired>();
  kept->blocks.push_back(block_);
  for (const PaddedInput &plan : variant_.padding.inputs)
    if (plan.pattern)
      kept->storages.push_back(plan.pattern);
  program_.keepForCapture(stream_, std::move(kept));
}

llvm::Error PaddedCall::release() {
  return isCaptured_ ? llvm::Error::success() : program_.releaseUse(*block_, stream_);
}

llvm::Error PaddedCall::pad(const Padded &padded) {
  const PaddedInput &plan = *padded.plan;
  const Tensor &real = *padded.real;
  LoopNest runs = runsOf(*real.layout(), plan.layout->strides);
  size_t runBytes = runs.rowLength();
  // Padding first, everywhere but under the first run: what has gaps is covered by the runs.
  size_t begin = real.numElements() == 0 ? 0 : runBytes, bytes = plan.layout->extentBytes - begin;
  std::byte *data = dataOf(plan);
  program_.paddedBytes_ += bytes + real.numElements() * dtypeSize(real.dtype());
  if (bytes != 0)
    if (llvm::Error error = plan.pattern ? stream_.copy(data + begin, plan.pattern->data(), bytes)
                                         : stream_.fill(data + begin, plan.byte, bytes))
      return error;
  return forEachRun(runs, [&](int64_t fromReal, int64_t fromData) {
    return stream_.copy(data + fromData, real.data() + fromReal, runBytes);
  });
}

llvm::Error PaddedCall::copyBack(const Padded &padded) {
  const Tensor &real = *padded.real;
  LoopNest runs = runsOf(*real.layout(), padded.plan->layout->strides);
  std::byte *data = dataOf(*padded.plan);
  program_.paddedBytes_ += real.numElements() * dtypeSize(real.dtype());
  return forEachRun(runs, [&](int64_t fromReal, int64_t fromData) {
    return stream_.copy(real.data() + fromReal, data + fromData, runs.rowLength());
  });
}

void PaddedCall::giveResults(llvm::MutableArrayRef<Value> results) const {
  const Schedule &schedule = variant_.forward.schedule;
  for (unsigned i = 0; i < results.size(); ++i) {
    const ParameterInfo &info = program_.results(Side::Forward)[i];
    if (!hasBuckets(program_.options_, info.type))
      continue;
    const PlannedStorage &storage = schedule.storages[schedule.resultPlans[i].place.storage];
    auto argument = llvm::find_if(padded_, [&](const Padded &padded) {
      return storage.space == Space::Argument && storage.index == padded.plan->input;
    });
    if (argument != padded_.end()) {
      results[i] = *argument->real;
      continue;
    }
    const Tensor &whole = *results[i].asTensor();
    llvm::SmallVector<int64_t, 5> shape;
    for (const Dim &dim : info.type.asTensor()->shape)
      shape.push_back(dim.substitute(sizes_).value());
    LayoutRef layout(new TensorLayout(whole.device(), whole.dtype(), shape, whole.strides()));
    results[i] = Tensor(whole.storage(), whole.byteOffset(), std::move(layout));
  }
}

bool PaddedCall::isWritten(unsigned input) const {
  const Schedule &schedule = variant_.forward.schedule;
  const Place &place = schedule.inputPlaces[input];
  return place.isTensor() && schedule.storages[place.storage].isWritten;
}

std::byte *PaddedCall::dataOf(const PaddedInput &plan) const {
  return block_->base(0) + plan.offset;
}

const ParameterInfo &PaddedCall::info(unsigned input) const {
  return program_.inputs(Side::Forward)[input];
}

std::string PaddedCall::text(unsigned input) const {
  return argumentText(info(input), input, Side::Forward);
}
