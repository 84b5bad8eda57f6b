//===- RunOp.cpp - One op, run on a device --------------------------------===//

#include "support/RunOp.h"

#include "rondo/host/HostDevice.h"
#include "rondo/host/HostExecutor.h"
#include "rondo/ir/Diagnostic.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallSet.h"

#include <cstring>

using namespace rondo;

const OpTarget &rondo::hostOpTarget() {
  static const HostExecutor executor;
  static const OpTarget target{createHostDevice(), {&executor}};
  return target;
}

const OpRegistry &rondo::coreOps() {
  static const std::unique_ptr<OpRegistry> registry = [] {
    auto ops = std::make_unique<OpRegistry>();
    cantFail(registerCoreOps(*ops));
    return ops;
  }();
  return *registry;
}

StorageRef rondo::poisonedStorage(size_t bytes) {
  auto *data = static_cast<std::byte *>(::operator new(bytes + 1, std::align_val_t(256)));
  std::memset(data, 0xff, bytes + 1);
  return Storage::borrow(data, bytes, Device::host(),
                         [data] { ::operator delete(data, std::align_val_t(256)); });
}

Tensor rondo::poisonedTensor(const TensorType &type) {
  auto shape = constantDims(type.shape), strides = constantDims(type.strides);
  return Tensor(poisonedStorage(stridedExtentBytes(type.dtype, shape, strides)), 0, type.dtype,
                shape, strides);
}

//===----------------------------------------------------------------------===//
// Memory of the device
//===----------------------------------------------------------------------===//

namespace {

/// Blocks of device memory, each between guards, all poisoned.
class GuardedMemory {
public:
  GuardedMemory(DeviceRef device, Stream &stream) : device_(std::move(device)), stream_(stream) {}
  GuardedMemory(const GuardedMemory &) = delete;
  ~GuardedMemory() {
    for (Block &block : blocks_)
      device_->deallocate(block.base, block.bytes());
  }

  /// The number of a new block of `size` bytes.
  llvm::Expected<unsigned> add(size_t size) {
    Block block{nullptr, std::vector<std::byte>(size + 2 * guard, std::byte(0xff))};
    llvm::Expected<void *> base = device_->allocate(block.bytes());
    if (!base)
      return base.takeError();
    block.base = static_cast<std::byte *>(*base);
    blocks_.push_back(std::move(block));
    if (llvm::Error error = stream_.fill(*base, 0xff, blocks_.back().bytes()))
      return error;
    return blocks_.size() - 1;
  }
  /// The number of a new block that holds a copy of `size` bytes.
  llvm::Expected<unsigned> addCopy(const void *data, size_t size) {
    llvm::Expected<unsigned> block = add(size);
    if (!block || size == 0)
      return block;
    if (llvm::Error error = stream_.copy(address(*block), data, size))
      return error;
    return block;
  }
  std::byte *address(unsigned block) const { return blocks_[block].base + guard; }
  /// What is between the guards, by block.
  std::vector<llvm::ArrayRef<std::byte>> ranges() const {
    std::vector<llvm::ArrayRef<std::byte>> ranges;
    for (const Block &block : blocks_)
      ranges.push_back({block.base + guard, block.bytes() - 2 * guard});
    return ranges;
  }

  /// Waits for all work and copies every block back. Errors: the device's; a guard that changed.
  llvm::Error fetch() {
    for (Block &block : blocks_)
      if (llvm::Error error = stream_.copy(block.copy.data(), block.base, block.bytes()))
        return error;
    if (llvm::Error error = stream_.synchronize())
      return error;
    auto isPoison = [](std::byte byte) { return byte == std::byte(0xff); };
    for (const Block &block : blocks_) {
      llvm::ArrayRef<std::byte> bytes = block.copy;
      if (!llvm::all_of(bytes.take_front(guard), isPoison) ||
          !llvm::all_of(bytes.take_back(guard), isPoison))
        return makeError("bytes beside an operand, a result or the workspace were written");
    }
    return llvm::Error::success();
  }
  /// What `fetch` found in the block.
  llvm::ArrayRef<std::byte> fetched(unsigned block) const {
    return llvm::ArrayRef<std::byte>(blocks_[block].copy).drop_front(guard).drop_back(guard);
  }

private:
  static constexpr size_t guard = DeviceAPI::allocationAlignment;
  struct Block {
    std::byte *base;
    std::vector<std::byte> copy; ///< guards, too
    size_t bytes() const { return copy.size(); }
  };

  DeviceRef device_;
  Stream &stream_;
  std::vector<Block> blocks_;
};

//===----------------------------------------------------------------------===//
// One run
//===----------------------------------------------------------------------===//

/// One op in a trace of its own, and who runs it.
struct ClaimedOp {
  Trace trace;
  OpId id;
  const Executor *executor = nullptr;
  uint64_t workspaceBytes = 0;

  llvm::ArrayRef<ValueId> results() const { return trace.op(id).results(); }
};

/// The run of one op: puts operands and results on the device and takes them back.
class OpRun {
public:
  OpRun(const OpTarget &target, const ClaimedOp &op, llvm::ArrayRef<OperandInit> operands,
        Stream &stream)
      : target_(target), op_(op), effects_(getEffects(op.trace, op.id)), operands_(operands),
        stream_(stream), memory_(target.device, stream) {}

  llvm::Expected<OpResults> run(RNGState *state) {
    if (llvm::Error error = placeOperands())
      return error;
    auto kernel = op_.executor->compile(op_.trace, op_.id, target_.device);
    if (!kernel)
      return kernel.takeError();
    kernel_ = std::move(*kernel);
    if (llvm::Error error = placeResults())
      return error;
    if (llvm::Error error = placeGenerators(state))
      return error;
    if (llvm::Error error = launch())
      return error;
    if (llvm::Error error = memory_.fetch())
      return error;
    if (llvm::Error error = takeOperands())
      return error;
    for (unsigned block : generatorBlocks_)
      std::memcpy(static_cast<void *>(state), memory_.fetched(block).data(), sizeof(RNGState));
    return takeResults();
  }

private:
  llvm::Error placeOperands() {
    for (const OperandInit &operand : operands_) {
      Slot slot;
      if (operand.rng) {
        auto block = memory_.addCopy(operand.rng, sizeof(RNGState));
        if (!block)
          return block.takeError();
        slot.address = memory_.address(*block);
      } else if (const Tensor *tensor = operand.value.asTensor()) {
        auto block = blockOf(*tensor);
        if (!block)
          return block.takeError();
        slot.address = memory_.address(*block) + tensor->byteOffset();
      } else if (const int64_t *value = operand.value.asInt()) {
        slot.i64 = *value;
      } else if (const double *value = operand.value.asFloat()) {
        slot.f64 = *value;
      } else if (const bool *value = operand.value.asBool()) {
        slot.boolean = *value;
      }
      operandSlots_.push_back(slot);
    }
    return llvm::Error::success();
  }

  /// The block with the tensor's storage, which tensors share as they do on the host.
  llvm::Expected<unsigned> blockOf(const Tensor &tensor) {
    const Storage *storage = tensor.storage().get();
    if (auto found = blocks_.find(storage); found != blocks_.end())
      return found->second;
    llvm::Expected<unsigned> block = memory_.addCopy(storage->data(), storage->bytes());
    if (block)
      blocks_[storage] = *block;
    return block;
  }

  llvm::Error placeResults() {
    scalars_.resize(op_.results().size());
    resultBlocks_.resize(op_.results().size());
    for (unsigned i = 0; i < op_.results().size(); ++i) {
      const Type &type = op_.trace.type(op_.results()[i]);
      auto viewed = effects_.viewedBy(i);
      Slot slot;
      if (!viewed.empty()) {
        slot = operandSlots_[viewed.front()];
      } else if (type.asScalar()) {
        slot.address = &scalars_[i];
      } else if (const Storage *storage = findReusable(i)) {
        resultBlocks_[i] = blocks_.lookup(storage);
        slot.address = memory_.address(resultBlocks_[i]);
        reused_.insert(storage);
      } else {
        size_t bytes = sizeof(RNGState);
        if (const TensorType *tensor = type.asTensor())
          bytes = poisonedBytes(*tensor);
        auto block = memory_.add(bytes);
        if (!block)
          return block.takeError();
        resultBlocks_[i] = *block;
        slot.address = memory_.address(*block);
      }
      resultSlots_.push_back(slot);
    }
    return llvm::Error::success();
  }
  /// The storage of the operand that the result is to lie in; null if it gets memory of its own.
  const Storage *findReusable(unsigned result) const {
    const TensorType *type = op_.trace.type(op_.results()[result]).asTensor();
    if (!target_.reusesOperands || !type)
      return nullptr;
    for (unsigned i = 0; i < operands_.size(); ++i) {
      const Tensor *tensor = operands_[i].value.asTensor();
      if (!tensor || tensor->byteOffset() != 0 || !kernel_->canReuse(i, result) ||
          tensor->storage()->bytes() != poisonedBytes(*type))
        continue;
      const Storage *storage = tensor->storage().get();
      bool isAlone = llvm::count_if(operands_, [&](const OperandInit &other) {
                       const Tensor *named = other.value.asTensor();
                       return named && named->storage().get() == storage;
                     }) == 1;
      if (isAlone && !reused_.contains(storage))
        return storage;
    }
    return nullptr;
  }
  static size_t poisonedBytes(const TensorType &type) {
    return stridedExtentBytes(type.dtype, constantDims(type.shape), constantDims(type.strides));
  }

  llvm::Error placeGenerators(const RNGState *state) {
    for (const ResourceEffect &effect : effects_.resources) {
      if (effect.kind != ResourceKind::Generator)
        continue;
      auto block = memory_.addCopy(state, sizeof(RNGState));
      if (!block)
        return block.takeError();
      generatorBlocks_.push_back(*block);
    }
    return llvm::Error::success();
  }

  llvm::Error launch() {
    KernelArgs args;
    args.operands = operandSlots_;
    args.results = resultSlots_;
    if (op_.workspaceBytes > 0) {
      auto block = memory_.add(op_.workspaceBytes);
      if (!block)
        return block.takeError();
      args.workspace = memory_.address(*block);
    }
    llvm::SmallVector<RNGState *, 1> generators;
    for (unsigned block : generatorBlocks_)
      generators.push_back(reinterpret_cast<RNGState *>(memory_.address(block)));
    args.generators = generators;
    if (llvm::Error error = target_.launch
                                ? target_.launch(*kernel_, args, memory_.ranges(), stream_)
                                : kernel_->enqueue(stream_, args))
      return error;
    return stream_.synchronize();
  }

  /// Copies storages back that the op writes; the others must be as they were, unless results lie
  /// there.
  llvm::Error takeOperands() {
    llvm::SmallSet<const Storage *, 4> written;
    for (unsigned i : effects_.writes)
      written.insert(operands_[i].value.asTensor()->storage().get());
    for (auto [storage, block] : blocks_) {
      llvm::ArrayRef<std::byte> bytes = memory_.fetched(block);
      if (bytes.empty() || reused_.contains(storage))
        continue;
      if (written.contains(storage))
        std::memcpy(storage->data(), bytes.data(), bytes.size());
      else if (std::memcmp(storage->data(), bytes.data(), bytes.size()) != 0)
        return makeError("an operand that the op does not write was changed");
    }
    return llvm::Error::success();
  }

  OpResults takeResults() {
    OpResults results;
    results.states.resize(op_.results().size());
    for (unsigned i = 0; i < op_.results().size(); ++i) {
      const Type &type = op_.trace.type(op_.results()[i]);
      auto viewed = effects_.viewedBy(i);
      if (!viewed.empty()) {
        results.values.push_back(operands_[viewed.front()].value);
      } else if (const TensorType *tensor = type.asTensor()) {
        Tensor result = poisonedTensor(*tensor);
        llvm::copy(memory_.fetched(resultBlocks_[i]), result.storage()->data());
        results.values.emplace_back(result);
      } else if (const ScalarType *scalar = type.asScalar()) {
        results.values.push_back(valueOf(scalars_[i], scalar->kind));
      } else {
        results.values.emplace_back();
        std::memcpy(static_cast<void *>(&results.states[i]),
                    memory_.fetched(resultBlocks_[i]).data(), sizeof(RNGState));
      }
    }
    return results;
  }
  static Value valueOf(Slot slot, ScalarKind kind) {
    switch (kind) {
    case ScalarKind::I64:
      return slot.i64;
    case ScalarKind::F64:
      return slot.f64;
    case ScalarKind::Bool:
      break;
    }
    return slot.boolean;
  }

  const OpTarget &target_;
  const ClaimedOp &op_;
  Effects effects_;
  llvm::ArrayRef<OperandInit> operands_;
  Stream &stream_;
  KernelRef kernel_;
  GuardedMemory memory_;
  llvm::DenseMap<const Storage *, unsigned> blocks_;
  std::vector<Slot> operandSlots_, resultSlots_;
  std::vector<Slot> scalars_; ///< receive results that are host scalars
  std::vector<unsigned> resultBlocks_, generatorBlocks_;
  llvm::SmallSet<const Storage *, 2> reused_; ///< by results
};

} // namespace

//===----------------------------------------------------------------------===//
// Claiming
//===----------------------------------------------------------------------===//

/// Nothing for an operand that is absent.
static std::optional<Type> typeOf(const OperandInit &operand, Device device) {
  if (operand.rng)
    return Type(RNGStateType{device});
  if (const Tensor *tensor = operand.value.asTensor()) {
    TensorType type = tensor->type();
    type.device = device;
    return Type(type);
  }
  if (operand.value.asInt())
    return Type(ScalarKind::I64);
  if (operand.value.asFloat())
    return Type(ScalarKind::F64);
  if (operand.value.asBool())
    return Type(ScalarKind::Bool);
  return std::nullopt;
}

/// The op in a trace, claimed by the first executor that takes it.
static llvm::Expected<ClaimedOp> claimOp(const OpTarget &target, llvm::StringRef op,
                                         llvm::ArrayRef<OperandInit> operands,
                                         llvm::ArrayRef<AttributeInit> attributes,
                                         llvm::ArrayRef<Type> resultTypes) {
  Device device = target.device->device();
  TraceBuilder builder(coreOps());
  std::vector<ValueId> values;
  for (const OperandInit &operand : operands) {
    std::optional<Type> type = typeOf(operand, device);
    values.push_back(type ? builder.argument("x", *type) : ValueId());
  }
  std::vector<Type> types(resultTypes.begin(), resultTypes.end());
  for (Type &type : types)
    if (const TensorType *tensor = type.asTensor())
      type = TensorType(tensor->dtype, tensor->shape, tensor->strides, device);
  auto made = types.empty() ? builder.ops(op, values, attributes)
                            : builder.opWithTypes(op, values, types, attributes);
  OpId id = builder.lastOp();
  builder.returnValues(made);
  llvm::Expected<Trace> trace = std::move(builder).finish();
  if (!trace)
    return trace.takeError();
  std::string reasons;
  for (const Executor *executor : target.executors) {
    ClaimAnswer answer = executor->claim(*trace, id);
    if (answer.accepted)
      return ClaimedOp{std::move(*trace), id, executor, answer.workspaceBytes};
    reasons += "; " + executor->name().str() + ": " + answer.why;
  }
  return makeError("no executor claims '" + op + "'" + reasons);
}

llvm::Expected<OpResults> rondo::runOpOn(const OpTarget &target, llvm::StringRef op,
                                         llvm::ArrayRef<OperandInit> operands,
                                         llvm::ArrayRef<AttributeInit> attributes, RNGState *state,
                                         llvm::ArrayRef<Type> resultTypes) {
  llvm::Expected<ClaimedOp> claimed = claimOp(target, op, operands, attributes, resultTypes);
  if (!claimed)
    return claimed.takeError();
  llvm::Expected<std::unique_ptr<Stream>> stream = target.device->createStream();
  if (!stream)
    return stream.takeError();
  return OpRun(target, *claimed, operands, **stream).run(state);
}
