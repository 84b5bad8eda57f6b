//===- RunOp.h - One op, run by the host executor ---------------*- C++ -*-===//

#pragma once

#include "support/RunOp.h"
#include "support/TensorTesting.h"

#include "rondo/host/HostDevice.h"
#include "rondo/host/HostExecutor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace rondo {

/// What `op` gives on the host (support/RunOp.h). Anything wrong is an error of the test.
inline std::vector<Value> runOp(llvm::StringRef op, const std::vector<OperandInit> &operands,
                                llvm::ArrayRef<AttributeInit> attributes = {},
                                RNGState *state = nullptr, llvm::ArrayRef<Type> resultTypes = {}) {
  llvm::Expected<OpResults> results =
      runOpOn(hostOpTarget(), op, operands, attributes, state, resultTypes);
  if (results)
    return std::move(results->values);
  ADD_FAILURE() << op.str() << ": " << llvm::toString(results.takeError());
  return {};
}

} // namespace rondo
