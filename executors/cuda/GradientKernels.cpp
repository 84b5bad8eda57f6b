//===- GradientKernels.cpp - Loss scaling and clipping --------------------===//
//
// Gradients of one dtype share launches, as many as parameters hold; one whose elements have gaps
// has a launch of its own.
//
//===----------------------------------------------------------------------===//

#include "GradientDevice.h"
#include "KernelTypes.h"

#include <algorithm>
#include <cmath>

using namespace rondo;
using namespace rondo::cuda;

namespace {

/// A group but for addresses.
struct PlannedGroup {
  GradientGroup group;
  llvm::SmallVector<unsigned, 0> operands; ///< of its gradients

  /// With the addresses of a run.
  GradientGroup at(const TypedArgs &args) const {
    GradientGroup run = group;
    size_t vectorBytes = std::min<size_t>(16, dtypeSize(DType(run.type)) * gradientVector);
    for (size_t i = 0; i < operands.size(); ++i) {
      run.data[i] = args.operand(operands[i]).data;
      run.isVector[i] =
          run.layout.rank == 0 && reinterpret_cast<uintptr_t>(run.data[i]) % vectorBytes == 0;
    }
    return run;
  }
  CUDAGrid grid() const { return {{group.numBlocks, 1, 1}, {gradientBlock, 1, 1}, 0}; }
  /// Of the kernels for this dtype: 0 is for f64, 1 for the others.
  unsigned function() const { return group.type == ElementType::F64 ? 0 : 1; }
};

/// All gradients of an op: its operands from `first`.
class PlannedGroups {
public:
  static llvm::Expected<PlannedGroups> get(const OpContext &op, unsigned first) {
    PlannedGroups planned;
    for (unsigned i = first; i < op.numOperands(); ++i)
      if (llvm::Error error = planned.add(i, TensorSizes(*op.tensor(i))))
        return error;
    return planned;
  }

  int64_t numBlocks() const {
    int64_t sum = 0;
    for (const PlannedGroup &planned : groups_)
      sum += planned.group.numBlocks;
    return sum;
  }

  /// Launches the kernel of each group with `params`, in which `set(params, firstBlock)` may change
  /// what depends on the blocks of the groups before.
  template <typename Params, typename Set>
  llvm::Error launch(const CUDAWork &work, const TypedArgs &args, Params params, Set set) const {
    int64_t firstBlock = 0;
    for (const PlannedGroup &planned : groups_) {
      params.gradients = planned.at(args);
      set(params, firstBlock);
      if (llvm::Error error = work.launch(planned.function(), planned.grid(), params))
        return error;
      firstBlock += planned.group.numBlocks;
    }
    return llvm::Error::success();
  }
  template <typename Params>
  llvm::Error launch(const CUDAWork &work, const TypedArgs &args, const Params &params) const {
    return launch(work, args, params, [](Params &, int64_t) {});
  }

private:
  llvm::Error add(unsigned operand, const TensorSizes &gradient) {
    llvm::Expected<Layout<1>> layout =
        makeLayout<1>(gradient.shape, {gradient.strides}, memoryOrder(gradient.strides));
    if (!layout)
      return layout.takeError();
    if (layout->count == 0)
      return llvm::Error::success();
    bool hasGaps = layout->rank != 1 || layout->strides[0][0] != 1;
    PlannedGroup &planned = groupFor(elementType(gradient.dtype), hasGaps);
    GradientGroup &group = planned.group;
    if (hasGaps)
      group.layout = *layout;
    group.counts[group.numGradients] = layout->count;
    group.firstBlock[group.numGradients++] = group.numBlocks;
    group.numBlocks += blocksFor(layout->count, gradientChunk);
    planned.operands.push_back(operand);
    return llvm::Error::success();
  }

  /// The group that the next gradient goes to.
  PlannedGroup &groupFor(ElementType type, bool hasGaps) {
    auto isOpen = [&](const PlannedGroup &planned) {
      return planned.group.type == type && planned.group.layout.rank == 0 &&
             planned.group.numGradients < maxGroupedGradients;
    };
    if (!hasGaps)
      if (auto found = llvm::find_if(groups_, isOpen); found != groups_.end())
        return *found;
    groups_.emplace_back();
    groups_.back().group.type = type;
    return groups_.back();
  }

  std::vector<PlannedGroup> groups_;
};

} // namespace

static llvm::Expected<CUDAKernelFn> makeUnscale(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  llvm::Expected<PlannedGroups> groups = PlannedGroups::get(op, 2);
  if (!groups)
    return groups.takeError();
  CUDAKernelFn kernel;
  kernel.functions = {{gradient::unscale(true)}, {gradient::unscale(false)}};
  kernel.enqueue = [groups = std::move(*groups)](const CUDAWork &work, const TypedArgs &args) {
    UnscaleParams params;
    params.foundInf = args.operand(0).as<float>();
    params.inverse = args.operand(1).as<float>();
    return groups.launch(work, args, params);
  };
  return kernel;
}

static llvm::Expected<CUDAKernelFn> makeGlobalNorm(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  llvm::Expected<PlannedGroups> groups = PlannedGroups::get(op, 0);
  if (!groups)
    return groups.takeError();
  bool isGreatest = std::isinf(op.numberAttribute("p"));
  CUDAKernelFn kernel;
  kernel.functions = {
      {gradient::partialNorm(true)}, {gradient::partialNorm(false)}, {gradient::globalNorm()}};
  kernel.workspaceBytes = uint64_t(groups->numBlocks()) * sizeof(double);
  kernel.enqueue = [groups = std::move(*groups), isGreatest](const CUDAWork &work,
                                                             const TypedArgs &args) -> llvm::Error {
    auto *partials = static_cast<double *>(args.workspace());
    PartialNormParams params;
    params.isGreatest = isGreatest;
    auto setPartials = [&](PartialNormParams &run, int64_t firstBlock) {
      run.partials = partials + firstBlock;
    };
    if (llvm::Error error = groups.launch(work, args, params, setPartials))
      return error;
    GlobalNormParams finish;
    finish.partials = partials;
    finish.count = groups.numBlocks();
    finish.out = args.result().data;
    finish.outType = elementType(args.result().dtype);
    finish.isGreatest = isGreatest;
    return work.launch(2, {{1, 1, 1}, {gradientBlock, 1, 1}, 0}, finish);
  };
  return kernel;
}

static llvm::Expected<CUDAKernelFn> makeClip(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  llvm::Expected<PlannedGroups> groups = PlannedGroups::get(op, 1);
  if (!groups)
    return groups.takeError();
  CUDAKernelFn kernel;
  kernel.functions = {{gradient::clip(true)}, {gradient::clip(false)}};
  kernel.enqueue = [groups = std::move(*groups), maxNorm = op.numberAttribute("max_norm")](
                       const CUDAWork &work, const TypedArgs &args) {
    ClipParams params;
    params.norm = args.operand(0).data;
    params.normType = elementType(args.operand(0).dtype);
    params.maxNorm = maxNorm;
    return groups.launch(work, args, params);
  };
  return kernel;
}

static llvm::Expected<CUDAKernelFn> makeUpdateScale(const OpContext &op) {
  UpdateScaleParams params;
  params.growth = op.numberAttribute("growth_factor");
  params.backoff = op.numberAttribute("backoff_factor");
  params.interval = int32_t(op.intAttribute("growth_interval"));
  CUDAKernelFn kernel;
  kernel.functions = {{gradient::updateScale()}};
  kernel.enqueue = [params](const CUDAWork &work, const TypedArgs &args) {
    UpdateScaleParams run = params;
    run.scale = args.operand(0).as<float>();
    run.tracker = args.operand(1).as<int32_t>();
    run.foundInf = args.operand(2).as<float>();
    return work.launch(0, CUDAGrid(), run);
  };
  return kernel;
}

void cuda::addGradientKernels(CUDAExecutor &executor) {
  addKernel(executor, {.op = "unscale_", .make = makeUnscale});
  addKernel(executor, {.op = "global_norm", .make = makeGlobalNorm});
  addKernel(executor, {.op = "clip_", .make = makeClip});
  addKernel(executor, {.op = "update_scale_", .make = makeUpdateScale});
}
