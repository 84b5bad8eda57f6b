//===- ErrorText.h - The text of an error within another --------*- C++ -*-===//

#pragma once

#include "llvm/Support/Error.h"

#include <string>

namespace rondo {

/// What `error` says, to be put into the message of another: of diagnostics the messages, without
/// severity and location, separated by "; ".
std::string errorText(llvm::Error error);

} // namespace rondo
