//===- LiteralReader.h - Types and attributes from text ---------*- C++ -*-===//
//
//   type      ::= dtype '[' [dim {',' dim}] [';' dim {',' dim}] ']' ['@' device]
//               | 'i64' | 'f64' | 'bool' | 'rng' ['@' device] | '!' name ['<' string '>']
//   device    ::= ('host' | 'cuda') ':' integer | 'host'
//   dim       ::= ['-'] term {('+' | '-') term}
//   term      ::= (integer | symbol) {'*' (integer | symbol)}
//   attribute ::= 'none' | 'true' | 'false' | dim | ['-'] (float | 'inf') | 'nan' | string
//               | dtype | device | '[' [attribute {',' attribute}] ']'
//
//===----------------------------------------------------------------------===//

#pragma once

#include "TokenReader.h"

#include "rondo/ir/OpRegistry.h"

namespace rondo {

/// Brackets and bodies may be nested this deep: readers are recursive and must not run out of
/// stack.
inline constexpr unsigned maxNesting = 256;

class LiteralReader : public TokenReader {
public:
  LiteralReader(const SourceText &source, DiagnosticList &diagnostics, const OpRegistry &registry)
      : TokenReader(source, diagnostics), registry_(registry) {}

  std::optional<Type> readType();
  std::optional<Attribute> readAttribute() { return readAttribute(0); }
  /// Reports text behind what was read.
  bool expectEnd(const llvm::Twine &what);

protected:
  const OpRegistry &registry() const { return registry_; }

private:
  std::optional<Attribute> readAttribute(unsigned depth);
  std::optional<Attribute> readList(unsigned depth);
  std::optional<Attribute> readWord();
  std::optional<Attribute> readFloat(bool isNegative);
  std::optional<Dim> readDim();
  std::optional<Dim> readTerm(bool isNegative);
  std::optional<Device> readDevice();
  std::optional<Type> readTensor(DType dtype);
  std::optional<Type> readOpaqueType();
  bool readDims(Dims &dims, bool isShape);

  const OpRegistry &registry_;
};

} // namespace rondo
