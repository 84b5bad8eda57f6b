//===- OpCases.cpp - The table of cases -----------------------------------===//

#include "support/OpCases.h"
#include "support/TensorTesting.h"

using namespace rondo;

const OpCaseTable &rondo::opCaseTable() {
  static const OpCaseTable table = [] {
    OpCaseTable result;
    addCreationCases(result);
    addPointwiseCases(result);
    addUnaryCases(result);
    addReductionCases(result);
    addSoftmaxCases(result);
    addDataMovementCases(result);
    addIndexCases(result);
    addMatmulCases(result);
    addNormalizationCases(result);
    addAttentionCases(result);
    addLossCases(result);
    addRandomCases(result);
    addOptimizerCases(result);
    addHostEffectCases(result);
    return result;
  }();
  return table;
}

std::vector<std::vector<double>> op_cases::hostResults(llvm::StringRef op,
                                                       const std::vector<Arg> &args,
                                                       const Attributes &attributes) {
  std::vector<OperandInit> operands;
  for (const Arg &arg : args)
    operands.push_back(arg.isTensor()
                           ? OperandInit(tensorOf(dtypeOf(arg, DType::F64), arg.shape, arg.values))
                           : OperandInit());
  llvm::Expected<OpResults> results = runOpOn(hostOpTarget(), op, operands, attributes);
  std::vector<std::vector<double>> values;
  if (!results) {
    ADD_FAILURE() << op.str() << ": " << llvm::toString(results.takeError());
    return values;
  }
  for (const Value &value : results->values)
    values.push_back(valuesOf(value));
  return values;
}
