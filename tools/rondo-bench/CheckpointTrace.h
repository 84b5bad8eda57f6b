//===- CheckpointTrace.h - A step with checkpoints --------------*- C++ -*-===//
//
// Blocks of two linear layers with GELU between them and dropout behind them, one after the other,
// and their gradients. Of block 0, whose rows are x:
//
//   h = x wᵀ + b       a = gelu(h)       z = a vᵀ + c       y = dropout(z)
//
// With the gradient g of y, and dropout's numbers r, which are 0 or 1 / (1 - p):
//
//   d = g r            gc = Σ d          gv = dᵀ a          ga = d v
//   gh = ga gelu'(h)   gb = Σ gh         gw = ghᵀ x         gx = gh w
//
// What multiplies z does not depend on z: the backward draws it again, as dropout of the gradient,
// and needs neither a mask nor z. So all that a checkpoint has to compute again are h and a.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/ir/DType.h"

#include <string>

namespace rondo {

struct CheckpointShape {
  unsigned blocks = 8;
  int64_t batch = 2048, width = 1024, hidden = 4096; ///< rows, and their elements
  DType dtype = DType::F32;
  bool tanhGELU = false;   ///< GELU by tanh, else by the error function
  double dropped = 0.1;    ///< the share of elements
  bool checkpoints = true; ///< around each block; else what the backward needs is saved
};

/// Writes the trace of a shape, of a pair on the host.
class CheckpointTrace {
public:
  explicit CheckpointTrace(const CheckpointShape &shape) : shape_(shape) {}

  /// Arguments are %x0 and, for each block, %w, %b, %v, %c; the backward's is the gradient of the
  /// result. Its results are the gradients in the order of the forward's arguments.
  std::string text() const {
    std::string parameters, gradients, forward, backward, saved, savedArguments;
    unsigned numSaved = 0;
    auto save = [&](const std::string &name, const std::string &type, const char *tag = "") {
      std::string link = " saved #" + std::to_string(numSaved++);
      saved += ", " + name + link;
      savedArguments += name + ": " + type + tag + link + ", ";
    };
    save("%s", "rng");
    for (unsigned i = 0; i < shape_.blocks; ++i) {
      std::string n = std::to_string(i);
      parameters += ", %w" + n + ": " + wide() + " parameter, %b" + n + ": " + longBias() +
                    " parameter, %v" + n + ": " + tall() + " parameter, %c" + n + ": " +
                    shortBias() + " parameter";
      gradients += ", %gw" + n + ", %gb" + n + ", %gv" + n + ", %gc" + n;
      save("%x" + n, rows());
      save("%h" + n, hiddenRows());
      save("%a" + n, hiddenRows());
      save("%w" + n, wide(), " parameter");
      save("%v" + n, tall(), " parameter");
      forward += forwardOf(i);
      backward = backwardOf(i) + backward;
    }
    std::string last = std::to_string(shape_.blocks);
    return "pair @checkpoint {\nforward @forward(%x0: " + rows() + parameters +
           ") {\n%s: rng = generator_read() {device = host}\n" + forward +
           "generator_advance() {count = " + std::to_string(shape_.blocks * elements()) +
           ", device = host}\nreturn(%x" + last + saved + ")\n}\nbackward @backward(" +
           savedArguments + "%g" + last + ": " + rows() + ") {\n" + backward + "return(%g0" +
           gradients + ")\n}\n}\n";
  }

private:
  int64_t elements() const { return shape_.batch * shape_.width; }
  std::string tensor(std::initializer_list<int64_t> sizes) const {
    std::string text;
    for (int64_t size : sizes)
      text += (text.empty() ? "[" : ", ") + std::to_string(size);
    return dtypeName(shape_.dtype).str() + text + "]";
  }
  std::string rows() const { return tensor({shape_.batch, shape_.width}); }
  std::string hiddenRows() const { return tensor({shape_.batch, shape_.hidden}); }
  std::string wide() const { return tensor({shape_.hidden, shape_.width}); }
  std::string tall() const { return tensor({shape_.width, shape_.hidden}); }
  std::string longBias() const { return tensor({shape_.hidden}); }
  std::string shortBias() const { return tensor({shape_.width}); }
  std::string transposed(int64_t rows, int64_t columns) const { // of a matrix of rows and columns
    return dtypeName(shape_.dtype).str() + "[" + std::to_string(columns) + ", " +
           std::to_string(rows) + "; 1, " + std::to_string(columns) + "]";
  }

  std::string form() const {
    return std::string(" {approximate = \"") + (shape_.tanhGELU ? "tanh" : "none") + "\"}\n";
  }
  std::string dropoutOf(unsigned block) const {
    return " {offset = " + std::to_string(block * elements()) +
           ", p = " + std::to_string(shape_.dropped) + "}\n";
  }
  /// `%y: …, %m: … = dropout(`
  std::string dropout(const std::string &out, const std::string &mask) const {
    return out + ": " + rows() + ", " + mask + ": bool[" + std::to_string(shape_.batch) + ", " +
           std::to_string(shape_.width) + "] = dropout(";
  }

  /// The ops of block `i`, on values whose names end in `n`, and its result.
  std::string opsOf(unsigned i, const std::string &n, const std::string &result) const {
    return "%h" + n + ": " + hiddenRows() + " = linear(%x" + n + ", %w" + n + ", %b" + n + ")\n%a" +
           n + ": " + hiddenRows() + " = gelu(%h" + n + ")" + form() + "%z" + n + ": " + rows() +
           " = linear(%a" + n + ", %v" + n + ", %c" + n + ")\n" + dropout(result, "%m" + n) + "%z" +
           n + ", %s)" + dropoutOf(i);
  }

  std::string forwardOf(unsigned i) const {
    std::string n = std::to_string(i), result = "%x" + std::to_string(i + 1);
    if (!shape_.checkpoints)
      return opsOf(i, n, result);
    return result + ": " + rows() + ", %h" + n + ": " + hiddenRows() + ", %a" + n + ": " +
           hiddenRows() + " = checkpoint(%x" + n + ", %w" + n + ", %b" + n + ", %v" + n + ", %c" +
           n + ", %s) {\n^(%x: " + rows() + ", %w: " + wide() + ", %b: " + longBias() +
           ", %v: " + tall() + ", %c: " + shortBias() + ", %s: rng):\n" + opsOf(i, "", "%y") +
           "return(%y, %h, %a)\n}\n";
  }

  std::string backwardOf(unsigned i) const {
    std::string n = std::to_string(i), given = "%g" + std::to_string(i + 1);
    return dropout("%d" + n, "%m" + n) + given + ", %s)" + dropoutOf(i) + //
           "%gc" + n + ": " + shortBias() + " = sum(%d" + n + ") {dims = [0]}\n" + "%dt" + n +
           ": " + transposed(shape_.batch, shape_.width) + " = permute(%d" + n +
           ") {dims = [1, 0]}\n" + //
           "%gv" + n + ": " + tall() + " = mm(%dt" + n + ", %a" + n + ")\n" + "%ga" + n + ": " +
           hiddenRows() + " = mm(%d" + n + ", %v" + n + ")\n" + "%gh" + n + ": " + hiddenRows() +
           " = gelu_backward(%ga" + n + ", %h" + n + ")" + form() + //
           "%gb" + n + ": " + longBias() + " = sum(%gh" + n + ") {dims = [0]}\n" + "%ht" + n +
           ": " + transposed(shape_.batch, shape_.hidden) + " = permute(%gh" + n +
           ") {dims = [1, 0]}\n" + //
           "%gw" + n + ": " + wide() + " = mm(%ht" + n + ", %x" + n + ")\n" + "%g" + n + ": " +
           rows() + " = mm(%gh" + n + ", %w" + n + ")\n";
  }

  const CheckpointShape shape_;
};

/// What the traces of all shapes are run with.
inline constexpr const char *checkpointPipeline =
    "dce,cse,canonicalise,rematerialise{remarks=none},dce,execution,cuda-graph,del";

} // namespace rondo
