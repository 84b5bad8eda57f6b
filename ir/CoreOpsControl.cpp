//===- CoreOpsControl.cpp - The host, control flow and structure ----------===//
//
// Effects and result types of an op with bodies come from its bodies.
//
//===----------------------------------------------------------------------===//

#include "CoreOpsTable.h"

#include "rondo/ir/CoreOps.h"

using namespace rondo;
using Kind = AttributeKind;

static llvm::Error inferItem(Inference &in) {
  RONDO_TRY(in.oneElement(0));
  DType dtype = in.tensor(0).dtype;
  in.results.emplace_back(isFloat(dtype)         ? ScalarKind::F64
                          : dtype == DType::Bool ? ScalarKind::Bool
                                                 : ScalarKind::I64);
  return llvm::Error::success();
}

/// Operand 0 of `if` is one bool.
static llvm::Error checkCondition(const OpContext &op) {
  const Type *condition = op.operand(0);
  if (condition && *condition == Type(ScalarKind::Bool))
    return llvm::Error::success();
  if (const TensorType *tensor = op.tensor(0))
    if (tensor->dtype == DType::Bool && tensor->numElements().isConstant(1))
      return llvm::Error::success();
  return expects("operand 'condition' to be one bool, a scalar or a tensor, got " +
                 (condition ? condition->str() : std::string("none")));
}

static void addHostOps(OpTable &table) {
  table.add(OpDef("item", "the one element of x, on the host; waits for the device")
                .in("x")
                .resource(ResourceKind::Host, /*writes=*/false)
                .infer(inferItem));
  table.add(OpDef("print", "prints x after an optional message; waits for the device")
                .in("x:number")
                .optional("message", Kind::String)
                .resource(ResourceKind::Host, /*writes=*/true)
                .out("")
                .infer(inferNothing));
}

static void addMarkers(OpTable &table) {
  table.add(OpDef(core::returnOp, "ends a body and gives its results")
                .in("values*:any")
                .out("")
                .terminator()
                .noLaunch()
                .noReads()
                .infer(inferNothing, DevicePolicy::Any));
  table.add(OpDef(core::delOp, "ends names; a storage dies with its last name")
                .in("values*:any")
                .out("")
                .noLaunch()
                .noReads()
                .infer(inferNothing, DevicePolicy::Any));
}

void rondo::addControlOps(OpTable &table) {
  addHostOps(table);
  addMarkers(table);
  table.add(OpDef(core::cudaGraphOp, "a region that is captured once and replayed")
                .in("inputs*:any")
                .attr("region", Kind::Int)
                .optional("inputs", Kind::StringList)
                .atLeast("region", 0)
                .variadicOut("")
                .bodies(BodyKind::Region));
  table.add(OpDef(core::fusedOp, "ops that one executor runs as one")
                .in("inputs*:any")
                .variadicOut("")
                .bodies(BodyKind::Region));
  table.add(OpDef(core::checkpointOp, "ops to be computed again in the backward rather than saved")
                .in("inputs*:any")
                .variadicOut("")
                .bodies(BodyKind::Region));
  table.add(OpDef("if", "the first body when the condition is true, else the second")
                .in("condition:any, arguments*:any")
                .variadicOut("")
                .verify(checkCondition)
                .bodies(BodyKind::If));
  table.add(OpDef("while", "the second body again and again as long as the first gives true")
                .in("arguments*:any")
                .variadicOut("")
                .bodies(BodyKind::While));
}
