//===- HandoverProgram.cpp - A program whose inputs move ------------------===//

#include "HandoverProgram.h"

#include "rondo/ir/Text.h"
#include "rondo/passes/PassManager.h"
#include "rondo/passes/Passes.h"

using namespace rondo;

static std::string sizeText(uint64_t bytes) {
  for (auto [unit, name] :
       {std::pair(uint64_t(1) << 20, " MiB"), std::pair(uint64_t(1) << 10, " KiB")})
    if (bytes % unit == 0)
      return std::to_string(bytes / unit) + name;
  return std::to_string(bytes) + " B";
}

std::string HandoverShape::name() const {
  std::string size = sizeText(bytes), users = std::to_string(consumers) + " consumer";
  if (consumers != 1)
    users += 's';
  if (inputs == 1)
    return size + ", " + users;
  return std::to_string(inputs) + " x " + size + ", " + users + " each";
}

/// A chain of ops, the last of which uses no input: so there are two even for one consumer.
///
///   %s0 = slice(%x0) {dim = 0, end = 64}
///   %k0 = addcmul(%w, %s0, %w)
///   %k1 = addcmul(%k0, %s0, %w)
///   %y = addcmul(%k1, %w, %w)
static std::string traceText(const HandoverShape &shape, Device device) {
  constexpr unsigned length = HandoverShape::leastBytes / 4;
  const std::string suffix = device.isHost() ? "" : "@" + deviceName(device),
                    part = "f32[" + std::to_string(length) + "]" + suffix,
                    whole = "f32[" + std::to_string(shape.bytes / 4) + "]" + suffix;
  std::string inputs = "%w: " + part + " static", body, last = "%w";
  unsigned numKernels = 0;
  for (unsigned i = 0; i < shape.inputs; ++i) {
    std::string number = std::to_string(i), slice = "%s" + number;
    inputs += ", %x" + number + ": " + whole;
    body += slice + ": " + part + " = slice(%x" + number +
            ") {dim = 0, end = " + std::to_string(length) + "}\n";
    for (unsigned k = 0; k < shape.consumers; ++k) {
      std::string next = "%k" + std::to_string(numKernels++);
      body += next + ": " + part + " = addcmul(" + last + ", " + slice + ", %w)\n";
      last = next;
    }
  }
  return "trace @handover(" + inputs + ") {\n" + body + "%y: " + part + " = addcmul(" + last +
         ", %w, %w)\nreturn(%y)\n}";
}

llvm::Expected<HandoverArguments>
HandoverArguments::create(const BenchSetup &setup, const HandoverShape &shape, Stream &stream) {
  auto zeros = [&](uint64_t bytes) -> llvm::Expected<Tensor> {
    llvm::Expected<Tensor> tensor = Tensor::empty(setup.device, DType::F32, {int64_t(bytes / 4)});
    if (tensor)
      if (llvm::Error error = stream.fill(tensor->data(), 0, bytes))
        return error;
    return tensor;
  };
  HandoverArguments arguments;
  llvm::Expected<Tensor> constant = zeros(HandoverShape::leastBytes);
  if (!constant)
    return constant.takeError();
  for (std::vector<Value> &place : arguments.places_) {
    place.emplace_back(*constant);
    for (unsigned i = 0; i < shape.inputs; ++i) {
      llvm::Expected<Tensor> input = zeros(shape.bytes);
      if (!input)
        return input.takeError();
      place.emplace_back(std::move(*input));
    }
  }
  return arguments;
}

llvm::Expected<std::unique_ptr<HandoverProgram>>
HandoverProgram::create(const BenchSetup &setup, const HandoverShape &shape, InputPolicy inputs,
                        const BufferCosts &costs, const HandoverArguments &arguments,
                        Stream &stream) {
  llvm::Expected<TracePair> pair =
      parsePair(traceText(shape, setup.device->device()), "handover", setup.registry);
  if (!pair)
    return pair.takeError();
  auto manager = std::make_shared<PassManager>();
  std::vector<const ClaimSource *> sources(setup.executors.begin(), setup.executors.end());
  CUDAGraphOptions graphs;
  graphs.inputs = inputs;
  manager->add(createExecutionTransform(std::move(sources)))
      .add(std::make_unique<CUDAGraphTransform>(graphs))
      .add(createDelPass());
  ProgramOptions options;
  options.costs = costs;
  llvm::Expected<Program> compiled = compile(
      std::move(*pair), setup.device, setup.executors,
      [manager](TracePair pair, const SymbolBindings &) { return manager->run(std::move(pair)); },
      std::move(options));
  if (!compiled)
    return compiled.takeError();
  std::unique_ptr<HandoverProgram> program(
      new HandoverProgram(std::move(*compiled), arguments, stream));
  if (llvm::Error error = program->checkRegion(shape))
    return error;
  for (unsigned i = 0; i < 3; ++i)
    if (llvm::Error error = program->callMoved())
      return error;
  if (llvm::Error error = stream.synchronize())
    return error;
  return program;
}

std::vector<BufferInfo> HandoverProgram::inputBuffers() const {
  std::vector<BufferInfo> inputs;
  for (const RegionInfo &region : program_.regions())
    llvm::copy_if(region.buffers, std::back_inserter(inputs), [](const BufferInfo &buffer) {
      return llvm::StringRef(buffer.name).startswith("%x");
    });
  return inputs;
}

llvm::Error HandoverProgram::checkRegion(const HandoverShape &shape) const {
  std::vector<BufferInfo> inputs = inputBuffers();
  bool areUsed = llvm::all_of(inputs, [&](const BufferInfo &buffer) {
    return buffer.bytes == shape.bytes && buffer.consumers == shape.consumers;
  });
  if (program_.regions().size() == 1 && inputs.size() == shape.inputs && areUsed)
    return llvm::Error::success();
  return makeError("the program is not one region with inputs of " + shape.name() + ": " +
                   llvm::Twine(program_.regions().size()) + " regions, " +
                   llvm::Twine(inputs.size()) + " inputs");
}

std::string HandoverProgram::policies() const {
  std::vector<BufferInfo> inputs = inputBuffers();
  std::string text;
  for (BufferPolicy policy : {BufferPolicy::Patched, BufferPolicy::Copied}) {
    auto count =
        llvm::count_if(inputs, [&](const BufferInfo &buffer) { return buffer.policy == policy; });
    std::string name = bufferPolicyName(policy).str();
    if (count == ptrdiff_t(inputs.size()))
      return name;
    if (count != 0)
      text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + name;
  }
  return text;
}
