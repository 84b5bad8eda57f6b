//===- CoreOps.cpp - The ops that come with Rondo -------------------------===//
//
// Each family of ops has a file CoreOps<Family>.cpp that adds its rows to the table.
//
//===----------------------------------------------------------------------===//

#include "rondo/ir/CoreOps.h"

#include "CoreOpsTable.h"

using namespace rondo;

llvm::Error rondo::registerCoreOps(OpRegistry &registry) {
  OpTable table(registry);
  addConstantOps(table);
  addPointwiseOps(table);
  addReductionOps(table);
  addMatmulOps(table);
  addNormalizationOps(table);
  addConvolutionOps(table);
  addAttentionOps(table);
  addLossOps(table);
  addRandomOps(table);
  addViewOps(table);
  addDataMovementOps(table);
  addIndexOps(table);
  addGradientOps(table);
  addOptimizerOps(table);
  addCollectiveOps(table);
  addInPlaceOps(table);
  addControlOps(table);
  return table.takeError();
}
