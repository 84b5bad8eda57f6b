//===- FXMapShapes.cpp - ATen's views and movement of data ------------------===//
//
// Dimensions are counted from the front and sizes are explicit in what is made.
//
//===----------------------------------------------------------------------===//

#include "FXCall.h"
#include "FXOpMapping.h"

#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"

using namespace rondo;
using namespace rondo::fx;

using Ints = llvm::SmallVector<int64_t, 4>;

static Attribute list(const Ints &values) {
  return llvm::ArrayRef<int64_t>(values);
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

/// `sizes` with a -1 replaced by what the recorded result has there.
static Ints explicitSizes(Call &call, Ints sizes) {
  const TensorType *type = call.recorded();
  std::optional<Ints> shape = type ? asConstants(type->shape) : std::nullopt;
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] == -1 && shape && shape->size() == sizes.size())
      sizes[i] = (*shape)[i];
  return sizes;
}

void rondo::fx::lowerReshape(Call &call, llvm::StringRef core) {
  call.emit(core, {call.tensor("self")},
            {{"shape", list(explicitSizes(call, call.integers("size")))}});
}

void rondo::fx::lowerPermute(Call &call, llvm::StringRef core) {
  ValueId self = call.tensor("self");
  call.emit(core, {self}, {{"dims", list(call.dims("dims", call.type(self).rank()))}});
}

/// The dimensions of a tensor of `rank` with two of them exchanged.
static Attribute exchanged(unsigned rank, int64_t a, int64_t b) {
  auto all = llvm::seq<int64_t>(0, rank);
  Ints dims(all.begin(), all.end());
  if (rank)
    std::swap(dims[a], dims[b]);
  return list(dims);
}

/// A matrix transposed; other tensors have at most one dimension and stay as they are.
void rondo::fx::lowerT(Call &call, llvm::StringRef core) {
  ValueId self = call.tensor("self");
  unsigned rank = call.type(self).rank();
  if (rank > 2)
    return call.fail();
  call.emit(core, {self}, {{"dims", exchanged(rank, 0, rank == 2)}});
}

void rondo::fx::lowerTranspose(Call &call, llvm::StringRef core) {
  ValueId self = call.tensor("self");
  unsigned rank = call.type(self).rank();
  int64_t a = call.dim("dim0", rank), b = call.dim("dim1", rank);
  call.emit(core, {self}, {{"dims", exchanged(rank, a, b)}});
}

void rondo::fx::lowerExpand(Call &call, llvm::StringRef core) {
  call.ignore("implicit");
  call.emit(core, {call.tensor("self")},
            {{"shape", list(explicitSizes(call, call.integers("size")))}});
}

/// Start and end of a slice, counted from the front and within `size`, and the step.
static AttributeList sliceAttributes(Call &call, const Ints &shape) {
  int64_t dim = call.dim("dim", shape.size(), 0);
  if (shape.empty()) {
    call.fail();
    return {};
  }
  int64_t size = shape[dim];
  auto bound = [&](llvm::StringRef parameter, int64_t ifAbsent) {
    int64_t index = call.integer(parameter, ifAbsent);
    return std::clamp<int64_t>(index < 0 ? index + size : index, 0, size);
  };
  int64_t start = bound("start", 0), end = std::max(bound("end", size), start);
  return {{"dim", dim}, {"start", start}, {"end", end}, {"step", call.integer("step", 1)}};
}

void rondo::fx::lowerSlice(Call &call, llvm::StringRef core) {
  ValueId self = call.tensor("self");
  call.emit(core, {self}, sliceAttributes(call, call.shape(self)));
}

/// Dimension and index of a selection, both counted from the front.
static AttributeList selectAttributes(Call &call, const Ints &shape) {
  int64_t dim = call.dim("dim", shape.size()), index = call.integer("index");
  if (shape.empty()) {
    call.fail();
    return {};
  }
  return {{"dim", dim}, {"index", index < 0 ? index + shape[dim] : index}};
}

void rondo::fx::lowerSelect(Call &call, llvm::StringRef core) {
  ValueId self = call.tensor("self");
  call.emit(core, {self}, selectAttributes(call, call.shape(self)));
}

/// `dims` without those whose size is not 1; all of size 1 when none are given.
void rondo::fx::lowerSqueeze(Call &call, llvm::StringRef core) {
  ValueId self = call.tensor("self");
  Ints shape = call.shape(self), dims;
  if (call.isAbsent("dim")) {
    auto all = llvm::seq<int64_t>(0, shape.size());
    dims.assign(all.begin(), all.end());
  } else {
    dims = call.dims("dim", shape.size());
  }
  llvm::erase_if(dims,
                 [&](int64_t dim) { return dim >= int64_t(shape.size()) || shape[dim] != 1; });
  call.emit(core, {self}, {{"dims", list(dims)}});
}

void rondo::fx::lowerUnsqueeze(Call &call, llvm::StringRef core) {
  ValueId self = call.tensor("self");
  call.emit(core, {self}, {{"dim", call.dim("dim", call.type(self).rank() + 1)}});
}

/// Without an offset it is that of `self`, which is not recorded.
void rondo::fx::lowerAsStrided(Call &call, llvm::StringRef core) {
  call.emit(core, {call.tensor("self")},
            {{"shape", list(call.integers("size"))},
             {"strides", list(call.integers("stride"))},
             {"offset", call.integer("storage_offset")}});
}

void rondo::fx::lowerDiagonal(Call &call, llvm::StringRef core) {
  ValueId self = call.tensor("self");
  unsigned rank = call.type(self).rank();
  call.emit(core, {self},
            {{"offset", call.integer("offset", 0)},
             {"dim1", call.dim("dim1", rank, 0)},
             {"dim2", call.dim("dim2", rank, 1)}});
}

/// Equal parts, but for a smaller last one.
void rondo::fx::lowerSplit(Call &call, llvm::StringRef core) {
  ValueId self = call.tensor("self");
  Ints shape = call.shape(self), sizes;
  int64_t part = call.integer("split_size"), dim = call.dim("dim", shape.size(), 0);
  if (shape.empty() || part <= 0 || shape[dim] / part > (1 << 16))
    return call.fail();
  for (int64_t start = 0; start < shape[dim]; start += part)
    sizes.push_back(std::min(part, shape[dim] - start));
  if (sizes.empty())
    sizes.push_back(0);
  call.emit(core, {self}, {{"sizes", list(sizes)}, {"dim", dim}});
}

void rondo::fx::lowerSplitWithSizes(Call &call, llvm::StringRef core) {
  ValueId self = call.tensor("self");
  call.emit(core, {self},
            {{"sizes", list(call.integers("split_sizes"))},
             {"dim", call.dim("dim", call.type(self).rank(), 0)}});
}

void rondo::fx::lowerUnbind(Call &call, llvm::StringRef core) {
  ValueId self = call.tensor("self");
  call.emit(core, {self}, {{"dim", call.dim("dim", call.type(self).rank(), 0)}});
}

//===----------------------------------------------------------------------===//
// Movement of data
//===----------------------------------------------------------------------===//

void rondo::fx::lowerClone(Call &call, llvm::StringRef core) {
  ValueId self = call.tensor("self");
  llvm::StringRef format = call.name("memory_format");
  bool keepsStrides = format.empty() || format == "torch.preserve_format";
  if (!keepsStrides && format != "torch.contiguous_format")
    return call.fail();
  bool contiguous = !keepsStrides || call.type(self).isContiguous();
  call.emit(core, {self}, {{"contiguous", contiguous}});
}

void rondo::fx::lowerConcatenation(Call &call, llvm::StringRef core) {
  llvm::SmallVector<ValueId, 4> tensors = call.tensors("tensors");
  unsigned rank = tensors.empty() ? 0 : call.type(tensors[0]).rank();
  call.emit(core, tensors, {{"dim", call.dim("dim", core == "stack" ? rank + 1 : rank, 0)}});
}

void rondo::fx::lowerRepeat(Call &call, llvm::StringRef core) {
  call.emit(core, {call.tensor("self")}, {{"repeats", list(call.integers("repeats"))}});
}

void rondo::fx::lowerFlip(Call &call, llvm::StringRef core) {
  ValueId self = call.tensor("self");
  call.emit(core, {self}, {{"dims", list(call.dims("dims", call.type(self).rank()))}});
}

void rondo::fx::lowerRoll(Call &call, llvm::StringRef core) {
  ValueId self = call.tensor("self");
  AttributeList attributes{{"shifts", list(call.integers("shifts"))}};
  if (!call.isAbsent("dims"))
    attributes.emplace_back("dims", list(call.dims("dims", call.type(self).rank())));
  call.emit(core, {self}, attributes);
}

void rondo::fx::lowerPad(Call &call, llvm::StringRef core) {
  AttributeList attributes{{"pads", list(call.integers("pad"))}};
  if (std::optional<Attribute> value = call.optionalNumber("value"))
    attributes.emplace_back("value", *value);
  call.emit(core, {call.tensor("self")}, attributes);
}

void rondo::fx::lowerTriangle(Call &call, llvm::StringRef core) {
  call.emit(core, {call.tensor("self")}, {{"diagonal", call.integer("diagonal", 0)}});
}

void rondo::fx::lowerGather(Call &call, llvm::StringRef core) {
  ValueId self = call.tensor("self"), index = call.tensor("index");
  call.ignore("sparse_grad"); // of its backward
  call.emit(core, {self, index}, {{"dim", call.dim("dim", call.type(self).rank())}});
}

void rondo::fx::lowerScatter(Call &call, llvm::StringRef core) {
  ValueId self = call.tensor("self"), index = call.tensor("index");
  ValueId source = call.tensor(call.isAbsent("source") ? "src" : "source");
  AttributeList attributes{{"dim", call.dim("dim", call.type(self).rank())}};
  if (std::optional<Attribute> alpha = call.optionalNumber("alpha"))
    attributes.emplace_back("alpha", *alpha);
  call.emit(core, {self, index, source}, attributes);
}

void rondo::fx::lowerIndex(Call &call, llvm::StringRef core) {
  llvm::SmallVector<ValueId, 4> operands{call.tensor("self")};
  operands.append(call.optionalTensors("indices"));
  call.emit(core, operands);
}

void rondo::fx::lowerIndexPut(Call &call, llvm::StringRef core) {
  llvm::SmallVector<ValueId, 4> operands{call.tensor("self"), call.tensor("values")};
  operands.append(call.optionalTensors("indices"));
  call.emit(core, operands, {{"accumulate", call.boolean("accumulate")}});
}

void rondo::fx::lowerSelectScatter(Call &call, llvm::StringRef core) {
  ValueId self = call.tensor("self"), source = call.tensor("src");
  call.emit(core, {self, source}, selectAttributes(call, call.shape(self)));
}

void rondo::fx::lowerSliceScatter(Call &call, llvm::StringRef core) {
  ValueId self = call.tensor("self"), source = call.tensor("src");
  call.emit(core, {self, source}, sliceAttributes(call, call.shape(self)));
}

void rondo::fx::lowerTopK(Call &call, llvm::StringRef core) {
  ValueId self = call.tensor("self");
  call.emit(core, {self},
            {{"k", call.integer("k")},
             {"dim", call.dim("dim", call.type(self).rank(), -1)},
             {"largest", call.boolean("largest", true)},
             {"sorted", call.boolean("sorted", true)}});
}

void rondo::fx::lowerSort(Call &call, llvm::StringRef core) {
  ValueId self = call.tensor("self");
  call.emit(core, {self},
            {{"dim", call.dim("dim", call.type(self).rank(), -1)},
             {"descending", call.boolean("descending")}});
}
