//===- VerifierBodies.cpp - What goes into bodies and comes out of them -----===//

#include "VerifierImpl.h"

using namespace rondo;
using namespace rondo::verifier;

static unsigned numBodies(BodyKind kind) {
  switch (kind) {
  case BodyKind::None:
    return 0;
  case BodyKind::Region:
    return 1;
  case BodyKind::If:
  case BodyKind::While:
    return 2;
  }
  return 0;
}

static bool isOneBool(const Type &type) {
  if (const TensorType *tensor = type.asTensor())
    return tensor->dtype == DType::Bool && tensor->numElements().isConstant(1);
  return type.asScalar() && type.asScalar()->kind == ScalarKind::Bool;
}

void BodyVerifier::verifyKind(const Op &op, bool fitsSpec) {
  unsigned expected = numBodies(op.spec().bodies);
  if (op.bodies().size() != expected)
    report_.error(op, "'", op.name(), "' op has ", op.bodies().size(),
                  op.bodies().size() == 1 ? " body" : " bodies", ", expected ", expected);
  if (fitsSpec && op.spec().bodies == BodyKind::If && !op.operands().empty())
    verifyCondition(op, 0, "the condition");
}

void BodyVerifier::verifyCondition(const Op &op, unsigned operand, llvm::StringRef role) {
  const Type *type = findType(trace_, op.operand(operand));
  if (type && isOneBool(*type))
    return;
  if (type) {
    report_.noteDefinition(report_.error(op, OperandOf{op, operand}, ", ", role, ", has type ",
                                         *type, ", expected one bool"),
                           op.operand(operand));
  } else if (!op.operand(operand)) {
    report_.error(op, "'", op.name(), "' op operand #", operand, ", ", role, ", is absent");
  }
}

void BodyVerifier::verifyArguments(const Op &op, BodyId body) {
  llvm::ArrayRef<ValueId> arguments = trace_.arguments(body);
  llvm::ArrayRef<ValueId> passed = passedOperands(op);
  if (op.spec().bodies == BodyKind::None)
    return; // verifyKind reports that there are bodies
  if (arguments.size() != passed.size()) {
    report_.error(op, BodyOf{&op, body}, " has ", Counted{arguments.size(), "argument"}, " for ",
                  Counted{passed.size(), "operand"});
    return;
  }
  for (unsigned i = 0; i < passed.size(); ++i) {
    unsigned operand = i + (op.operands().size() - passed.size());
    const Type &type = trace_.type(arguments[i]);
    const Type *given = findType(trace_, passed[i]);
    if (!passed[i])
      report_.error(op, "'", op.name(), "' op operand #", operand,
                    " is absent but is given to its body");
    else if (given && given != &type) {
      report_.noteDefinition(report_.error(op, "argument #", i, " (", Named{arguments[i]}, ") of ",
                                           BodyOf{&op, body}, " has type ", type, ", but operand #",
                                           operand, " (", Named{passed[i]}, ") has type ", *given),
                             passed[i]);
    }
  }
}

void BodyVerifier::verifyReturns(const Op &op) {
  if (op.bodies().size() != numBodies(op.spec().bodies))
    return;
  switch (op.spec().bodies) {
  case BodyKind::None:
    return;
  case BodyKind::Region:
  case BodyKind::If:
    for (BodyId body : op.bodies())
      verifyReturn(op, body, op.results(), "result");
    return;
  case BodyKind::While:
    verifyLoopResults(op);
    verifyReturn(op, op.bodies()[1], op.operands(), "operand");
    if (const Op *ret = findTerminator(trace_, op.bodies()[0])) {
      if (ret->operands().size() == 1)
        verifyCondition(*ret, 0, "the condition");
      else
        report_.error(*ret, "'", ret->name(), "' op gives ",
                      Counted{ret->operands().size(), "value"},
                      ", expected one: the condition of '", op.name(), "'");
    }
    return;
  }
}

/// Checks that what `body` returns has the types of `targets`, the results or operands of `op`.
void BodyVerifier::verifyReturn(const Op &op, BodyId body, llvm::ArrayRef<ValueId> targets,
                                llvm::StringRef role) {
  const Op *ret = findTerminator(trace_, body);
  if (!ret)
    return;
  if (ret->operands().size() != targets.size()) {
    Diagnostic *error = report_.error(*ret, "'", ret->name(), "' op gives ",
                                      Counted{ret->operands().size(), "value"}, ", but '",
                                      op.name(), "' op has ", Counted{targets.size(), role});
    report_.note(error, op, "the op is here");
    return;
  }
  for (unsigned i = 0; i < targets.size(); ++i) {
    const Type *expected = findType(trace_, targets[i]);
    const Type *given = findType(trace_, ret->operand(i));
    if (!expected || given == expected || (!given && ret->operand(i)))
      continue; // equal, or reported where it is undefined
    Diagnostic *error =
        given ? report_.error(*ret, OperandOf{*ret, i}, " has type ", *given, ", but ", role, " #",
                              i, " (", Named{targets[i]}, ") of '", op.name(), "' op has type ",
                              *expected)
              : report_.error(*ret, "'", ret->name(), "' op operand #", i, " is absent, but ", role,
                              " #", i, " (", Named{targets[i]}, ") of '", op.name(),
                              "' op has type ", *expected);
    report_.note(error, op, "the op is here");
  }
}

void BodyVerifier::verifyLoopResults(const Op &op) {
  if (op.results().size() != op.operands().size()) {
    report_.error(op, "'", op.name(), "' op has ", Counted{op.results().size(), "result"}, " for ",
                  Counted{op.operands().size(), "operand"});
    return;
  }
  for (unsigned i = 0; i < op.results().size(); ++i) {
    const Type &type = trace_.type(op.result(i));
    const Type *carried = findType(trace_, op.operand(i));
    if (carried && carried != &type) {
      report_.noteDefinition(report_.error(op, ResultOf{op, i}, " has type ", type,
                                           ", but operand #", i, " (", Named{op.operand(i)},
                                           ") has type ", *carried),
                             op.operand(i));
    }
  }
}
