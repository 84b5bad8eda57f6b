//===- KernelTesting.h - Checks that all kernels share ----------*- C++ -*-===//
//
// A kernel is compared with a formula once, on row-major f64. What is checked here then carries
// that over to the other dtypes and to all layouts of operands and results.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "RunOp.h"

#include "support/OpCase.h"

#include <functional>

namespace rondo {

/// The operands in `dtype`, row-major.
inline std::vector<OperandInit> operandsOf(const std::vector<Arg> &args, DType dtype) {
  std::vector<OperandInit> operands;
  for (const Arg &arg : args)
    operands.push_back(arg.kind == ArgKind::None ? OperandInit()
                                                 : OperandInit(tensorOf(dtypeOf(arg.kind, dtype),
                                                                        arg.shape, arg.values)));
  return operands;
}

/// The values of all results of `op` on f64.
inline std::vector<std::vector<double>> resultsOf(llvm::StringRef op, const std::vector<Arg> &args,
                                                  llvm::ArrayRef<AttributeInit> attributes = {}) {
  std::vector<std::vector<double>> values;
  for (const Value &value : runOp(op, operandsOf(args, DType::F64), attributes))
    values.push_back(valuesOf(value));
  return values;
}

/// Every element differs by at most `tolerance`, nan and infinities by nothing.
inline void expectNear(const std::vector<double> &actual, const std::vector<double> &expected,
                       double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i)
    EXPECT_TRUE(actual[i] == expected[i] || std::abs(actual[i] - expected[i]) <= tolerance ||
                (std::isnan(actual[i]) && std::isnan(expected[i])))
        << "element " << i << " is " << actual[i] << ", expected " << expected[i];
}

/// `op` gives the same for operands of every dtype in every layout as for the same values in f64,
/// row-major, up to `slack` roundings. Operands that the op writes are not expanded.
inline void expectSameInAllDTypesAndLayouts(llvm::StringRef op, const std::vector<Arg> &args,
                                            llvm::ArrayRef<AttributeInit> attributes = {},
                                            llvm::ArrayRef<unsigned> written = {},
                                            double slack = 1) {
  for (DType dtype : floatDTypes) {
    for (Layout layout : allLayouts) {
      SCOPED_TRACE(op.str() + " " + dtypeName(dtype).str() + " " + layoutName(layout).str());
      std::vector<Arg> rounded = args;
      std::vector<OperandInit> operands = operandsOf(args, dtype);
      for (unsigned i = 0; i < args.size(); ++i) {
        if (args[i].kind == ArgKind::None)
          continue;
        bool keeps = layout == Layout::Expanded && llvm::is_contained(written, i);
        Tensor tensor = withLayout(*operands[i].value.asTensor(), keeps ? Layout::Sliced : layout);
        rounded[i].values = valuesOf(tensor);
        operands[i] = OperandInit(tensor);
      }
      std::vector<std::vector<double>> expected = resultsOf(op, rounded, attributes);
      std::vector<Value> actual = runOp(op, operands, attributes);
      ASSERT_EQ(actual.size(), expected.size());
      for (unsigned i = 0; i < actual.size(); ++i)
        EXPECT_LE(relativeError(valuesOf(actual[i]), expected[i]),
                  slack * toleranceOf(actual[i].asTensor()->dtype()))
            << "result " << i;
    }
  }
}

/// `op`, whose results are fresh, gives the same into column-major results and into results with
/// gaps as into row-major ones, and writes nothing into the gaps.
inline void expectSameInAllResultLayouts(llvm::StringRef op, const std::vector<Arg> &args,
                                         llvm::ArrayRef<AttributeInit> attributes = {}) {
  OpRegistry registry;
  cantFail(registerCoreOps(registry));
  const OpSpec &spec = *registry.lookup(op);
  std::vector<OperandInit> operands = operandsOf(args, DType::F32);
  std::vector<Value> expected = runOp(op, operands, attributes);
  for (Layout layout : {Layout::Transposed, Layout::Sliced}) {
    SCOPED_TRACE(op.str() + " into " + layoutName(layout).str());
    std::vector<Type> types;
    llvm::SmallVector<bool, 8> present;
    llvm::SmallVector<TensorRef, 8> operandRefs, resultRefs;
    std::vector<Slot> slots(args.size() + expected.size());
    for (const OperandInit &operand : operands) {
      const Tensor *tensor = operand.value.asTensor();
      present.push_back(tensor);
      operandRefs.push_back(tensor ? tensor->ref() : TensorRef());
      types.emplace_back(tensor ? Type(tensor->type()) : Type(ScalarKind::I64));
    }
    std::vector<Tensor> results;
    for (const Value &value : expected)
      results.push_back(withLayout(poisonedTensor(value.asTensor()->type()), layout));
    for (const Tensor &result : results) {
      resultRefs.push_back(result.ref());
      std::memset(result.storage()->data(), 0xff, result.storage()->bytes());
      types.emplace_back(result.type());
    }
    llvm::SmallVector<const Type *, 8> operandTypes, resultTypes;
    for (unsigned i = 0; i < types.size(); ++i) {
      if (i >= args.size())
        resultTypes.push_back(&types[i]);
      else
        operandTypes.push_back(present[i] ? &types[i] : nullptr);
    }
    llvm::SmallVector<NamedAttribute, 8> named;
    for (const AttributeInit &attribute : attributes)
      named.push_back({attribute.first, attribute.second});
    OpContext context(spec, operandTypes, named, resultTypes);
    llvm::Expected<HostKernelFn> function = HostExecutor().find(op)->make(context);
    ASSERT_TRUE(bool(function)) << llvm::toString(function.takeError());
    KernelArgs raw;
    raw.operands = llvm::ArrayRef<Slot>(slots).take_front(args.size());
    raw.results = llvm::ArrayRef<Slot>(slots).drop_front(args.size());
    (*function)(HostArgs(operandRefs, resultRefs, present, raw));
    for (unsigned i = 0; i < results.size(); ++i) {
      EXPECT_EQ(relativeError(valuesOf(results[i]), valuesOf(expected[i])), 0) << "result " << i;
      // What is no element stays poisoned.
      const StorageRef &storage = results[i].storage();
      std::vector<bool> isElement(storage->bytes());
      size_t size = dtypeSize(results[i].dtype());
      host::forEachOffset<1>(results[i].shape(), {results[i].strides()}, [&](auto at) {
        for (size_t byte = 0; byte < size; ++byte)
          isElement[results[i].byteOffset() + at[0] * size + byte] = true;
      });
      for (size_t byte = 0; byte < storage->bytes(); ++byte)
        ASSERT_TRUE(isElement[byte] || storage->data()[byte] == std::byte(0xff))
            << "result " << i << ", byte " << byte;
    }
  }
}

/// By central differences: the gradient, with respect to the values of args[i], of the sum of
/// `incoming` times result 0 of `op`.
inline std::vector<double> numericGradient(llvm::StringRef op, std::vector<Arg> args, unsigned i,
                                           const std::vector<double> &incoming,
                                           llvm::ArrayRef<AttributeInit> attributes = {}) {
  auto loss = [&] {
    std::vector<double> result = resultsOf(op, args, attributes).at(0);
    double sum = 0;
    for (size_t k = 0; k < result.size(); ++k)
      sum += result[k] * incoming.at(k);
    return sum;
  };
  constexpr double step = 1e-5;
  std::vector<double> gradient;
  for (double &x : args[i].values) {
    double saved = x;
    x = saved + step;
    double above = loss();
    x = saved - step;
    double below = loss();
    x = saved;
    gradient.push_back((above - below) / (2 * step));
  }
  return gradient;
}
/// What central differences of smooth functions in f64 are good for.
inline constexpr double numericTolerance = 1e-7;

/// Why the host declines `op` on row-major tensors of these types; empty if it takes it.
inline std::string whyDeclined(llvm::StringRef op,
                               std::vector<std::pair<DType, std::vector<int64_t>>> operands,
                               llvm::ArrayRef<AttributeInit> attributes = {}) {
  OpRegistry registry;
  cantFail(registerCoreOps(registry));
  TraceBuilder builder(registry);
  std::vector<ValueId> values;
  for (const auto &[dtype, shape] : operands)
    values.push_back(builder.argument(
        "x", Type(TensorType(dtype, Dims(shape.begin(), shape.end()), Device::host()))));
  auto results = builder.ops(op, values, attributes);
  OpId id = builder.lastOp();
  builder.returnValues(results);
  llvm::Expected<Trace> trace = std::move(builder).finish();
  if (!trace)
    return "invalid: " + llvm::toString(trace.takeError());
  ClaimAnswer answer = HostExecutor().claim(*trace, id);
  llvm::StringRef why = answer.why;
  why.consume_front("error: ");
  return answer.accepted ? "" : why.str();
}

} // namespace rondo
