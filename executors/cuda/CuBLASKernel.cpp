//===- CuBLASKernel.cpp - A plan made ready to run ------------------------===//
//
// The library's descriptors are plain memory, which a run copies to put its addresses in: runs from
// several threads do not meet.
//
//===----------------------------------------------------------------------===//

#include "CuBLASKernel.h"

#include "CuBLASDescriptors.h"

#include "llvm/ADT/STLExtras.h"

using namespace rondo;
using namespace rondo::cuda;

namespace {

/// Which address of a run a value has.
struct ArgPosition {
  bool isResult = false;
  int index = -1; ///< -1: nothing

  std::byte *of(const KernelArgs &args) const {
    if (index < 0)
      return nullptr;
    return static_cast<std::byte *>((isResult ? args.results : args.operands)[index].address);
  }
};

class CuBLASKernel : public Kernel {
public:
  CuBLASKernel(std::shared_ptr<const CuBLASHandle> handle, const CuBLASPlan &plan,
               llvm::ArrayRef<ValueId> operands, llvm::ArrayRef<ValueId> results,
               uint64_t workspaceBytes)
      : handle_(std::move(handle)), plan_(plan), workspaceBytes_(workspaceBytes) {
    auto position = [&](ValueId value) -> ArgPosition {
      if (!value)
        return {};
      if (llvm::is_contained(results, value))
        return {true, int(llvm::find(results, value) - results.begin())};
      if (!llvm::is_contained(operands, value))
        llvm::report_fatal_error("cublas: a plan names a value that its runs do not get");
      return {false, int(llvm::find(operands, value) - operands.begin())};
    };
    left_ = position(plan.left);
    right_ = position(plan.right);
    out_ = position(plan.out);
    addend_ = position(plan.addend);
    vector_ = position(plan.vector);
    aux_ = position(plan.aux);
  }

  /// To be called once, before anything else. `algorithm` serves all runs; without one, they are
  /// chosen.
  llvm::Error initialize(const std::optional<cublasLtMatmulAlgo_t> &algorithm);
  llvm::Error enqueue(CommandSink &sink, const KernelArgs &args) const override;

private:
  bool needsLibrary() const { return !plan_.product.isEmpty() && plan_.product.k != 0; }
  llvm::Error chooseAlgorithms();
  llvm::Error submit(Stream &stream, const KernelArgs &args) const;

  std::shared_ptr<const CuBLASHandle> handle_;
  CuBLASPlan plan_;
  uint64_t workspaceBytes_;
  ArgPosition left_, right_, out_, addend_, vector_, aux_;
  /// The library takes layouts without `const`, and does not write them.
  mutable CuBLASDescriptors descriptors_;
  /// For addresses that are multiples of 16, and for others.
  std::optional<cublasLtMatmulAlgo_t> aligned_, unaligned_;
};

} // namespace

llvm::Error CuBLASKernel::initialize(const std::optional<cublasLtMatmulAlgo_t> &algorithm) {
  if (!needsLibrary())
    return llvm::Error::success();
  llvm::Expected<CuBLASDescriptors> descriptors = CuBLASDescriptors::get(handle_->library(), plan_);
  if (!descriptors)
    return descriptors.takeError();
  descriptors_ = *descriptors;
  if (!algorithm)
    return chooseAlgorithms();
  aligned_ = unaligned_ = algorithm;
  return llvm::Error::success();
}

/// Leaves out an algorithm that the library does not have, but one for aligned addresses must be.
llvm::Error CuBLASKernel::chooseAlgorithms() {
  const CuBLASLibrary &library = handle_->library();
  uint32_t elementSize = dtypeSize(plan_.product.dtype), wide = DeviceAPI::minAlignment;
  for (uint32_t alignment : {wide, elementSize}) {
    auto preference = describePreference(library, workspaceBytes_, alignment);
    if (!preference)
      return preference.takeError();
    // The library looks at the alignment of these, not at what is there.
    const void *example = reinterpret_cast<const void *>(uintptr_t(1 << 20) + alignment);
    CuBLASDescriptors used = descriptors_;
    if (llvm::Error error = setPointers(library, plan_, used.product, example, example))
      return error;
    cublasLtMatmulHeuristicResult_t found = {};
    int numFound = 0;
    auto find = [&] {
      return library.findAlgorithms(handle_->get(), &used.product, &used.left, &used.right,
                                    &used.addend, &used.out, &*preference, 1, &found, &numFound);
    };
    llvm::Error error = handle_->run("cublasLtMatmulAlgoGetHeuristic", find);
    bool isFound = !error && numFound == 1 && found.state == CUBLAS_STATUS_SUCCESS;
    if (isFound)
      (alignment == wide ? aligned_ : unaligned_) = found.algo;
    else if (alignment == wide)
      return error ? std::move(error)
                   : makeDeviceError(DeviceErrorKind::InvalidArgument,
                                     "cuBLASLt has no algorithm for this product");
    llvm::consumeError(std::move(error));
  }
  return llvm::Error::success();
}

llvm::Error CuBLASKernel::enqueue(CommandSink &sink, const KernelArgs &args) const {
  const CuBLASProduct &product = plan_.product;
  if (product.isEmpty())
    return llvm::Error::success();
  if (product.k == 0)
    return sink.fill(out_.of(args), 0,
                     product.m * product.n * product.batches * dtypeSize(product.dtype));
  return sink.call([&](Stream &stream) -> llvm::Error {
    llvm::Error error = submit(stream, args);
    if (!error || stream.captureStatus() != CaptureStatus::Invalidated)
      return error;
    // The library's answer does not tell that it was the capture.
    return makeDeviceError(DeviceErrorKind::CaptureInvalidated, llvm::toString(std::move(error)));
  });
}

llvm::Error CuBLASKernel::submit(Stream &stream, const KernelArgs &args) const {
  const CuBLASProduct &product = plan_.product;
  const int64_t size = dtypeSize(product.dtype);
  cublasLtMatmulDescOpaque_t descriptor = descriptors_.product;
  if (llvm::Error error =
          setPointers(handle_->library(), plan_, descriptor, vector_.of(args), aux_.of(args)))
    return error;
  const float alpha32 = float(product.alpha), beta32 = float(product.beta);
  bool isDouble = product.dtype == DType::F64;
  const void *alpha = isDouble ? static_cast<const void *>(&product.alpha) : &alpha32;
  const void *beta = isDouble ? static_cast<const void *>(&product.beta) : &beta32;
  for (const CuBLASProduct::Offsets &at : product.calls) {
    const std::byte *left = left_.of(args) + at.left * size;
    const std::byte *right = right_.of(args) + at.right * size;
    std::byte *out = out_.of(args) + at.out * size;
    const std::byte *addend = product.addend ? addend_.of(args) + at.addend * size : out;
    const std::byte *all[] = {left, right, out, addend, vector_.of(args), aux_.of(args)};
    bool isAligned = llvm::all_of(all, [](const std::byte *address) {
      return reinterpret_cast<uintptr_t>(address) % DeviceAPI::minAlignment == 0;
    });
    const auto &algorithm = isAligned ? aligned_ : unaligned_;
    if (!algorithm)
      return makeDeviceError(DeviceErrorKind::InvalidArgument,
                             "cuBLASLt has no algorithm for this product with tensors that do not "
                             "lie at multiples of 16 bytes");
    llvm::Error error = handle_->run("cublasLtMatmul", [&] {
      return handle_->library().matmul(
          handle_->get(), &descriptor, alpha, left, &descriptors_.left, right, &descriptors_.right,
          beta, addend, &descriptors_.addend, out, &descriptors_.out, &*algorithm, args.workspace,
          workspaceBytes_, static_cast<cudaStream_t>(stream.nativeHandle()));
    });
    if (error)
      return error;
  }
  return llvm::Error::success();
}

llvm::Expected<KernelRef>
rondo::cuda::makeCuBLASKernel(std::shared_ptr<const CuBLASHandle> handle, const CuBLASPlan &plan,
                              llvm::ArrayRef<ValueId> operands, llvm::ArrayRef<ValueId> results,
                              uint64_t workspaceBytes,
                              const std::optional<cublasLtMatmulAlgo_t> &algorithm) {
  auto kernel =
      std::make_shared<CuBLASKernel>(std::move(handle), plan, operands, results, workspaceBytes);
  if (llvm::Error error = kernel->initialize(algorithm))
    return error;
  return KernelRef(std::move(kernel));
}
