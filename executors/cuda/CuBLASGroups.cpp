//===- CuBLASGroups.cpp - Ops that one call of cuBLASLt does --------------===//
//
// Gradients of GELU are looked for first, then activations, then weight gradients: a sum that fits
// two groups goes to the gradient of GELU, whose other ops then need not be launched either.
//
//===----------------------------------------------------------------------===//

#include "CuBLASPlan.h"
#include "ValueAlignment.h"

#include "rondo/ir/CoreOps.h"
#include "rondo/ir/StorageRoots.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

using namespace rondo;
using namespace rondo::cuda;

static bool isTanhGELU(const Op &op) {
  const Attribute *form = op.attribute("approximate");
  return form && form->asString() && *form->asString() == "tanh";
}

namespace {

class GroupFinder {
public:
  GroupFinder(const Trace &trace, BodyId body) : trace_(trace), body_(body) {
    for (OpId id : trace.ops(body)) {
      const Op &op = trace.op(id);
      position_[id] = position_.size();
      if (op.name() == core::delOp)
        continue;
      for (ValueId operand : op.operands())
        if (operand)
          users_[operand].push_back(id);
    }
  }

  std::vector<CuBLASGroup> run() {
    for (OpId id : trace_.ops(body_))
      if (isFree(id, "gelu_backward"))
        findGELUGradient(id);
    for (OpId id : trace_.ops(body_))
      if (isFree(id, "gelu") || isFree(id, "relu"))
        findActivation(id);
    for (OpId id : trace_.ops(body_))
      if (isFree(id, "sum"))
        findBiasGradient(id);
    return std::move(groups_);
  }

private:
  using Chain = llvm::SmallVector<OpId, 4>;

  bool isFree(OpId id) const {
    const Claim *claim = trace_.op(id).claim();
    return !taken_.contains(id) && (!claim || claim->executor == cublasName);
  }
  bool isFree(OpId id, llvm::StringRef name) const {
    return trace_.op(id).name() == name && isFree(id);
  }

  llvm::ArrayRef<OpId> users(ValueId value) const {
    auto found = users_.find(value);
    return found == users_.end() ? llvm::ArrayRef<OpId>() : llvm::ArrayRef<OpId>(found->second);
  }
  /// Returns true if an op that is not in `ops` uses `value`.
  bool isUsedOutside(ValueId value, llvm::ArrayRef<OpId> ops) const {
    return llvm::any_of(users(value), [&](OpId user) { return !llvm::is_contained(ops, user); });
  }

  /// The type of a tensor without gaps, in row-major order and without symbols; else null.
  const TensorType *dense(ValueId value) const {
    const TensorType *type = value ? trace_.type(value).asTensor() : nullptr;
    return type && !type->hasSymbols() && type->isContiguous() ? type : nullptr;
  }
  bool isDense(ValueId value, DType dtype, int64_t count) const {
    const TensorType *type = dense(value);
    return type && type->dtype == dtype && type->numElements().value() == count;
  }

  /// Returns true if `id` gives another shape to the same elements in the same order.
  bool isReshape(OpId id) const {
    const Op &op = trace_.op(id);
    if (!op.spec().isView() || op.spec().countsFromStorageStart || op.results().size() != 1)
      return false;
    const TensorType *from = dense(op.operand(0)), *to = dense(op.result());
    return from && to && from->dtype == to->dtype && from->numElements() == to->numElements() &&
           viewOffset(trace_, id, 0) == Dim(0);
  }

  /// The single product whose result `value` is, through reshapes; `ops` receives it and them.
  std::optional<CuBLASPlan> productBehind(ValueId value, Chain &ops) const {
    OpId definer = trace_.definingOp(value);
    for (; definer && trace_.op(definer).body() == body_ && isFree(definer) && isReshape(definer);
         definer = trace_.definingOp(trace_.op(definer).operand(0)))
      ops.push_back(definer);
    if (!definer || trace_.op(definer).body() != body_ || !isFree(definer))
      return std::nullopt;
    ops.push_back(definer);
    return singleProduct(definer);
  }

  /// The plan of one product to which an epilogue can be added.
  std::optional<CuBLASPlan> singleProduct(OpId id) const {
    llvm::Expected<CuBLASPlan> plan = planOp(trace_, id);
    if (!plan) {
      llvm::consumeError(plan.takeError());
      return std::nullopt;
    }
    bool fits = plan->product.isSingle() && !plan->product.addend && plan->product.isSwapped &&
                plan->product.dtype != DType::F64 && liesAligned(trace_, plan->left) &&
                liesAligned(trace_, plan->right) &&
                (!plan->vector || liesAligned(trace_, plan->vector));
    return fits ? std::optional<CuBLASPlan>(std::move(*plan)) : std::nullopt;
  }

  void add(Chain ops, CuBLASPlan plan) {
    llvm::sort(ops, [&](OpId a, OpId b) { return position_.lookup(a) < position_.lookup(b); });
    taken_.insert(ops.begin(), ops.end());
    groups_.push_back({{ops.begin(), ops.end()}, std::move(plan)});
  }

  //===--- Activations ----------------------------------------------------===//

  void findActivation(OpId id) {
    const Op &op = trace_.op(id);
    bool isGELU = op.name() == "gelu";
    if (isGELU && !isTanhGELU(op))
      return;
    Chain ops = {id};
    std::optional<CuBLASPlan> plan = productBehind(op.operand(0), ops);
    if (!plan || !isDense(op.result(), plan->product.dtype, plan->product.m * plan->product.n) ||
        !isUsedOutside(op.result(), ops))
      return;
    for (OpId member : llvm::drop_begin(ops)) {
      ValueId value = trace_.op(member).result();
      if (!isUsedOutside(value, ops))
        continue;
      if (plan->aux || !isGELU || plan->product.m % auxDivisor != 0)
        return;
      plan->aux = value;
    }
    plan->out = op.result();
    bool hasBias = plan->product.hasVector;
    if (!isGELU)
      plan->epilogue = hasBias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    else if (plan->aux)
      plan->epilogue = hasBias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    else
      plan->epilogue = hasBias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    add(std::move(ops), std::move(*plan));
  }

  /// Leading dimensions of what goes into GELU are multiples of it.
  static constexpr int64_t auxDivisor = 8;

  //===--- The gradient of GELU -------------------------------------------===//

  void findGELUGradient(OpId id) {
    const Op &op = trace_.op(id);
    if (!isTanhGELU(op))
      return;
    Chain ops = {id};
    std::optional<CuBLASPlan> plan = productBehind(op.operand(0), ops);
    if (!plan || plan->vector || plan->product.m % auxDivisor != 0)
      return;
    int64_t count = plan->product.m * plan->product.n;
    plan->aux = op.operand(1);
    if (!isDense(plan->aux, plan->product.dtype, count) || !liesAligned(trace_, plan->aux) ||
        !isDense(op.result(), plan->product.dtype, count))
      return;
    for (OpId member : llvm::drop_begin(ops)) {
      ValueId value = trace_.op(member).result();
      if (isUsedOutside(value, ops) || value == plan->aux)
        return;
    }
    plan->out = op.result();
    plan->epilogue = CUBLASLT_EPILOGUE_DGELU;
    if (!isUsedOutside(op.result(), ops))
      return;
    addRowSum(op.result(), ops, *plan);
    add(std::move(ops), std::move(*plan));
  }

  /// Adds to `ops` a sum over the rows of `value`, through reshapes, if one of their results at
  /// most is used by others: that one becomes the product's result.
  void addRowSum(ValueId value, Chain &ops, CuBLASPlan &plan) const {
    Chain longer = ops;
    llvm::SmallVector<ValueId, 4> names = {value};
    for (ValueId last = value;;) {
      OpId next;
      for (OpId user : users(last)) {
        if (isRowSum(user, plan.product.m, plan.product.dtype)) {
          longer.push_back(user);
          return takeRowSum(trace_.op(user).result(), names, longer, ops, plan);
        }
        if (!next && isFree(user) && isReshape(user))
          next = user;
      }
      if (!next)
        return;
      longer.push_back(next);
      names.push_back(last = trace_.op(next).result());
    }
  }

  void takeRowSum(ValueId sum, llvm::ArrayRef<ValueId> names, Chain &longer, Chain &ops,
                  CuBLASPlan &plan) const {
    ValueId used;
    for (ValueId name : names) {
      if (!isUsedOutside(name, longer))
        continue;
      if (used)
        return;
      used = name;
    }
    if (!used || !isUsedOutside(sum, longer))
      return;
    plan.out = used;
    plan.vector = sum;
    plan.epilogue = CUBLASLT_EPILOGUE_DGELU_BGRAD;
    ops = std::move(longer);
  }

  /// Returns true if the op sums over all dimensions but the last, which has `size` elements.
  bool isRowSum(OpId id, int64_t size, DType dtype) const {
    if (!isFree(id, "sum") || trace_.op(id).body() != body_)
      return false;
    const Op &op = trace_.op(id);
    const TensorType *from = dense(op.operand(0));
    if (!from || from->rank() < 2 || from->shape.back() != Dim(size) || from->dtype != dtype ||
        !isDense(op.result(), dtype, size))
      return false;
    const Attribute *attribute = op.attribute("dims");
    auto dims = attribute ? attribute->asInts() : std::nullopt;
    if (!dims || dims->empty())
      return false;
    llvm::SmallDenseSet<int64_t, 4> summed;
    for (int64_t dim : *dims)
      summed.insert(dim < 0 ? dim + from->rank() : dim);
    return summed.size() == from->rank() - 1 && !summed.contains(from->rank() - 1);
  }

  //===--- The gradient of a bias, with that of a weight ------------------===//

  void findBiasGradient(OpId id) {
    const Op &op = trace_.op(id);
    ValueId gradient = op.operand(0);
    const TensorType *type = dense(gradient);
    if (!type || type->rank() != 2 || !type->shape[1].isConstant() ||
        !isRowSum(id, type->shape[1].value(), type->dtype) || !liesAligned(trace_, gradient))
      return;
    for (OpId user : users(gradient)) {
      if (!isFree(user))
        continue;
      const Op &other = trace_.op(user);
      if (other.name() == "mm" && other.operand(1) == gradient && other.operand(0) != gradient)
        if (addBiasGradient(id, {user}, user, CUBLASLT_EPILOGUE_BGRADA))
          return;
      if (other.name() != "permute" || users(other.result()).size() != 1)
        continue;
      OpId product = users(other.result()).front();
      if (isFree(product, "mm") && trace_.op(product).operand(0) == other.result())
        if (addBiasGradient(id, {user, product}, product, CUBLASLT_EPILOGUE_BGRADB))
          return;
    }
  }

  /// The gradient is the left factor for BGRADA, and the right one for BGRADB; summing it over `k`
  /// is what is asked for if both factors lie with `k` as their columns.
  bool addBiasGradient(OpId sum, Chain ops, OpId product, cublasLtEpilogue_t epilogue) {
    std::optional<CuBLASPlan> plan = singleProduct(product);
    if (!plan || plan->product.left.isTransposed || !plan->product.right.isTransposed ||
        users(plan->out).empty() || users(trace_.op(sum).result()).empty())
      return false;
    int64_t size = epilogue == CUBLASLT_EPILOGUE_BGRADA ? plan->product.m : plan->product.n;
    if (!isDense(trace_.op(sum).result(), plan->product.dtype, size))
      return false;
    plan->epilogue = epilogue;
    plan->vector = trace_.op(sum).result();
    // A factor that is a view made in the group lies where the viewed one does.
    for (ValueId *factor : {&plan->left, &plan->right})
      if (OpId definer = trace_.definingOp(*factor); definer && llvm::is_contained(ops, definer))
        *factor = trace_.op(definer).operand(0);
    ops.push_back(sum);
    add(std::move(ops), std::move(*plan));
    return true;
  }

  const Trace &trace_;
  BodyId body_;
  llvm::DenseMap<OpId, size_t> position_;
  llvm::DenseMap<ValueId, llvm::SmallVector<OpId, 4>> users_; ///< in the body; no `del`
  llvm::DenseSet<OpId> taken_;
  std::vector<CuBLASGroup> groups_;
};

} // namespace

std::vector<CuBLASGroup> rondo::cuda::findGroups(const Trace &trace, BodyId body) {
  return GroupFinder(trace, body).run();
}
