//===- CuBLASKernel.cpp - A plan made ready to run ------------------------===//
//
// The library's descriptors are plain memory, which a run copies to put its addresses in: runs from
// several threads do not meet.
//
//===----------------------------------------------------------------------===//

#include "CuBLASKernel.h"

#include "llvm/ADT/STLExtras.h"

using namespace rondo;
using namespace rondo::cuda;

//===----------------------------------------------------------------------===//
// Descriptors
//===----------------------------------------------------------------------===//

static cudaDataType dataType(DType dtype) {
  switch (dtype) {
  case DType::F16:
    return CUDA_R_16F;
  case DType::BF16:
    return CUDA_R_16BF;
  case DType::F64:
    return CUDA_R_64F;
  default:
    assert(dtype == DType::F32 && "a dtype that is not multiplied");
    return CUDA_R_32F;
  }
}

/// Both gelu and its gradient read or write a matrix beside the result.
static bool hasAux(const CuBLASPlan &plan) {
  return plan.aux.isValid();
}

namespace {

using ProductDescriptor = cublasLtMatmulDescOpaque_t;
using LayoutDescriptor = cublasLtMatrixLayoutOpaque_t;

/// Fills in descriptors until a call fails.
class Describer {
public:
  explicit Describer(const CuBLASLibrary &library) : library_(library) {}

  ProductDescriptor product(const CuBLASPlan &plan) {
    ProductDescriptor descriptor;
    bool isDouble = plan.product.dtype == DType::F64;
    take(library_.initProduct(&descriptor, sizeof(descriptor),
                              isDouble ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
                              isDouble ? CUDA_R_64F : CUDA_R_32F),
         "cublasLtMatmulDescInit");
    auto set = [&](cublasLtMatmulDescAttributes_t attribute, auto value) {
      take(library_.setProduct(&descriptor, attribute, &value, sizeof(value)),
           "cublasLtMatmulDescSetAttribute");
    };
    auto operation = [](const StoredMatrix &matrix) {
      return int32_t(matrix.isTransposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    };
    set(CUBLASLT_MATMUL_DESC_TRANSA, operation(plan.product.left));
    set(CUBLASLT_MATMUL_DESC_TRANSB, operation(plan.product.right));
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t(plan.epilogue));
    if (hasAux(plan))
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, int64_t(plan.product.m));
    return descriptor;
  }

  LayoutDescriptor layout(const CuBLASProduct &product, const StoredMatrix &matrix) {
    LayoutDescriptor descriptor;
    take(library_.initLayout(&descriptor, sizeof(descriptor), dataType(product.dtype),
                             uint64_t(matrix.rows), uint64_t(matrix.columns),
                             matrix.leadingDimension),
         "cublasLtMatrixLayoutInit");
    auto set = [&](cublasLtMatrixLayoutAttribute_t attribute, auto value) {
      take(library_.setLayout(&descriptor, attribute, &value, sizeof(value)),
           "cublasLtMatrixLayoutSetAttribute");
    };
    set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, int32_t(product.batches));
    set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, int64_t(matrix.batchStride));
    return descriptor;
  }

  /// Of algorithms for addresses that are multiples of `alignment`. Parts of a sum are never
  /// rounded to a 16-bit type on the way.
  cublasLtMatmulPreferenceOpaque_t preference(uint64_t workspaceBytes, uint32_t alignment) {
    cublasLtMatmulPreferenceOpaque_t descriptor;
    take(library_.initPreference(&descriptor, sizeof(descriptor)), "cublasLtMatmulPreferenceInit");
    auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
      take(library_.setPreference(&descriptor, attribute, &value, sizeof(value)),
           "cublasLtMatmulPreferenceSetAttribute");
    };
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspaceBytes);
    set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
        uint32_t(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
    for (auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      set(attribute, alignment);
    return descriptor;
  }

  /// What the first failing call answered.
  llvm::Error takeError() { return library_.check(status_, call_); }

private:
  void take(cublasStatus_t status, const char *call) {
    if (status_ != CUBLAS_STATUS_SUCCESS)
      return;
    status_ = status;
    call_ = call;
  }

  const CuBLASLibrary &library_;
  cublasStatus_t status_ = CUBLAS_STATUS_SUCCESS;
  const char *call_ = "";
};

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

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

  /// To be called once, before anything else.
  llvm::Error initialize();
  llvm::Error enqueue(CommandSink &sink, const KernelArgs &args) const override;

private:
  bool needsLibrary() const { return !plan_.product.isEmpty() && plan_.product.k != 0; }
  llvm::Error chooseAlgorithms();
  llvm::Error setPointers(ProductDescriptor &descriptor, const void *vector, const void *aux) const;
  llvm::Error submit(Stream &stream, const KernelArgs &args) const;

  std::shared_ptr<const CuBLASHandle> handle_;
  CuBLASPlan plan_;
  uint64_t workspaceBytes_;
  ArgPosition left_, right_, out_, addend_, vector_, aux_;
  ProductDescriptor descriptor_ = {};
  /// The library takes them without `const`, and does not write them.
  mutable LayoutDescriptor leftLayout_ = {}, rightLayout_ = {}, addendLayout_ = {}, outLayout_ = {};
  /// For addresses that are multiples of 16, and for others.
  std::optional<cublasLtMatmulAlgo_t> aligned_, unaligned_;
};

} // namespace

llvm::Error CuBLASKernel::initialize() {
  if (!needsLibrary())
    return llvm::Error::success();
  Describer describer(handle_->library());
  const CuBLASProduct &product = plan_.product;
  descriptor_ = describer.product(plan_);
  leftLayout_ = describer.layout(product, product.left);
  rightLayout_ = describer.layout(product, product.right);
  outLayout_ = describer.layout(product, product.out);
  addendLayout_ = product.addend ? describer.layout(product, *product.addend) : outLayout_;
  if (llvm::Error error = describer.takeError())
    return error;
  return chooseAlgorithms();
}

/// Leaves out an algorithm that the library does not have, but one for aligned addresses must be.
llvm::Error CuBLASKernel::chooseAlgorithms() {
  const CuBLASLibrary &library = handle_->library();
  uint32_t elementSize = dtypeSize(plan_.product.dtype), wide = DeviceAPI::minAlignment;
  for (uint32_t alignment : {wide, elementSize}) {
    Describer describer(library);
    auto preference = describer.preference(workspaceBytes_, alignment);
    if (llvm::Error error = describer.takeError())
      return error;
    // The library looks at the alignment of these, not at what is there.
    const void *example = reinterpret_cast<const void *>(uintptr_t(1 << 20) + alignment);
    ProductDescriptor descriptor = descriptor_;
    if (llvm::Error error = setPointers(descriptor, example, example))
      return error;
    cublasLtMatmulHeuristicResult_t found = {};
    int numFound = 0;
    auto find = [&] {
      return library.findAlgorithms(handle_->get(), &descriptor, &leftLayout_, &rightLayout_,
                                    &addendLayout_, &outLayout_, &preference, 1, &found, &numFound);
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

llvm::Error CuBLASKernel::setPointers(ProductDescriptor &descriptor, const void *vector,
                                      const void *aux) const {
  const CuBLASLibrary &library = handle_->library();
  auto set = [&](cublasLtMatmulDescAttributes_t attribute, const void *pointer) {
    return library.check(library.setProduct(&descriptor, attribute, &pointer, sizeof(pointer)),
                         "cublasLtMatmulDescSetAttribute");
  };
  if (plan_.vector)
    if (llvm::Error error = set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector))
      return error;
  if (hasAux(plan_))
    return set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux);
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
  ProductDescriptor descriptor = descriptor_;
  if (llvm::Error error = setPointers(descriptor, vector_.of(args), aux_.of(args)))
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
      return handle_->library().matmul(handle_->get(), &descriptor, alpha, left, &leftLayout_,
                                       right, &rightLayout_, beta, addend, &addendLayout_, out,
                                       &outLayout_, &*algorithm, args.workspace, workspaceBytes_,
                                       static_cast<cudaStream_t>(stream.nativeHandle()));
    });
    if (error)
      return error;
  }
  return llvm::Error::success();
}

llvm::Expected<KernelRef> rondo::cuda::makeCuBLASKernel(std::shared_ptr<const CuBLASHandle> handle,
                                                        const CuBLASPlan &plan,
                                                        llvm::ArrayRef<ValueId> operands,
                                                        llvm::ArrayRef<ValueId> results,
                                                        uint64_t workspaceBytes) {
  auto kernel =
      std::make_shared<CuBLASKernel>(std::move(handle), plan, operands, results, workspaceBytes);
  if (llvm::Error error = kernel->initialize())
    return error;
  return KernelRef(std::move(kernel));
}
