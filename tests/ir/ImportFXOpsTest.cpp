//===- ImportFXOpsTest.cpp - What becomes of each ATen op -------------------===//

#include "../../ir/FXOpMapping.h"

#include "FXOpsFixture.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MemoryBuffer.h"

#include <gtest/gtest.h>

using namespace rondo;
using namespace rondo::test;

namespace {

class ImportFXOpsTest : public FXOpsFixture {};

/// A graph with an input of every sort that the rows below use.
FXText graphWithInputs() {
  FXText graph("forward");
  graph.input("x", "float32[2,3]");
  graph.input("y", "float32[2,3]");
  graph.input("s", "float32[]");
  graph.input("v", "float32[3]");
  graph.input("w", "float32[3,4]");
  graph.input("h", "float16[2,3]");
  graph.input("b", "bool[2,3]");
  graph.input("n", "int64[2,3]");
  graph.input("i", "int64[2]");
  graph.input("a", "float32[5,2,3]");
  graph.input("c", "float32[5,3,4]");
  graph.input("d", "float32[5,2,4]");
  graph.input("e", "float32[2,4]");
  graph.input("one", "float32[1]");
  graph.input("z", "float32[1,3,1]");
  graph.input("image", "float32[2,3,8,8]");
  graph.input("kernel", "float32[4,3,3,3]");
  graph.input("feature", "float32[2,4,8,8]");
  graph.input("four", "float32[4]");
  graph.input("mean", "float32[2,1]");
  graph.input("empty", "float32[0,3]");
  return graph;
}

/// An ATen call, and the op (without results and types) that it becomes.
struct Row {
  const char *aten, *args, *result, *becomes;
  const char *kwargs = "";
};

// clang-format off
const Row rows[] = {
    {"aten.add.Tensor", "%x, 2", "float32[2,3]", "add(%x) {scalar = 2}"},
    {"aten.add.Tensor", "%x, 2.0", "float32[2,3]", "add(%x) {scalar = 2.0}"},
    {"aten.add.Tensor", "%x, %y", "float32[2,3]", "add(%x, %y) {alpha = 2}", R"("alpha":2)"},
    {"aten.add.Tensor", "%x, %y", "float32[2,3]", "add(%x, %y)", R"("alpha":1)"},
    {"aten.add.Scalar", "%x, true", "float32[2,3]", "add(%x) {scalar = true}"},
    {"aten.sub.Tensor", "%x, %y", "float32[2,3]", "sub(%x, %y)"},
    {"aten.sub.Scalar", "%x, 1", "float32[2,3]", "sub(%x) {scalar = 1}"},
    {"aten.rsub.Tensor", "%x, %y", "float32[2,3]", "rsub(%x, %y)"},
    {"aten.rsub.Scalar", "%x, 1, 3", "float32[2,3]", "rsub(%x) {alpha = 3, scalar = 1}"},
    {"aten.mul.Tensor", R"(%x, {"float":"-inf"})", "float32[2,3]", "mul(%x) {scalar = -inf}"},
    {"aten.mul.Scalar", R"(%x, {"float":"nan"})", "float32[2,3]", "mul(%x) {scalar = nan}"},
    {"aten.div.Tensor", "%x, %s", "float32[2,3]", "div(%x, %s)"},
    {"aten.div.Scalar", R"(%x, {"float":"inf"})", "float32[2,3]", "div(%x) {scalar = inf}"},
    {"aten.pow.Tensor_Tensor", "%x, %y", "float32[2,3]", "pow(%x, %y)"},
    {"aten.pow.Tensor_Scalar", "%x, 2", "float32[2,3]", "pow(%x) {scalar = 2}"},
    {"aten.remainder.Tensor", "%n, %n", "int64[2,3]", "remainder(%n, %n)"},
    {"aten.remainder.Scalar", "%n, 4", "int64[2,3]", "remainder(%n) {scalar = 4}"},
    {"aten.maximum.default", "%x, %y", "float32[2,3]", "maximum(%x, %y)"},
    {"aten.minimum.default", "%x, %y", "float32[2,3]", "minimum(%x, %y)"},
    {"aten.atan2.default", "%x, %y", "float32[2,3]", "atan2(%x, %y)"},
    {"aten.eq.Tensor", "%x, %y", "bool[2,3]", "eq(%x, %y)"},
    {"aten.eq.Scalar", "%x, 1", "bool[2,3]", "eq(%x) {scalar = 1}"},
    {"aten.ne.Tensor", "%x, %y", "bool[2,3]", "ne(%x, %y)"},
    {"aten.ne.Scalar", "%x, 1", "bool[2,3]", "ne(%x) {scalar = 1}"},
    {"aten.lt.Tensor", "%x, %y", "bool[2,3]", "lt(%x, %y)"},
    {"aten.lt.Scalar", "%x, 1", "bool[2,3]", "lt(%x) {scalar = 1}"},
    {"aten.le.Tensor", "%x, %y", "bool[2,3]", "le(%x, %y)"},
    {"aten.le.Scalar", "%x, 1", "bool[2,3]", "le(%x) {scalar = 1}"},
    {"aten.gt.Tensor", "%x, %y", "bool[2,3]", "gt(%x, %y)"},
    {"aten.gt.Scalar", "%x, 1", "bool[2,3]", "gt(%x) {scalar = 1}"},
    {"aten.ge.Tensor", "%x, %y", "bool[2,3]", "ge(%x, %y)"},
    {"aten.ge.Scalar", "%x, 1", "bool[2,3]", "ge(%x) {scalar = 1}"},
    {"aten.logical_and.default", "%b, %b", "bool[2,3]", "logical_and(%b, %b)"},
    {"aten.logical_or.default", "%b, %b", "bool[2,3]", "logical_or(%b, %b)"},
    {"aten.logical_xor.default", "%b, %b", "bool[2,3]", "logical_xor(%b, %b)"},
    {"aten.bitwise_and.Tensor", "%n, %n", "int64[2,3]", "bitwise_and(%n, %n)"},
    {"aten.bitwise_and.Scalar", "%n, 1", "int64[2,3]", "bitwise_and(%n) {scalar = 1}"},
    {"aten.bitwise_or.Tensor", "%b, %b", "bool[2,3]", "bitwise_or(%b, %b)"},
    {"aten.bitwise_or.Scalar", "%n, 1", "int64[2,3]", "bitwise_or(%n) {scalar = 1}"},
    {"aten.bitwise_xor.Tensor", "%n, %n", "int64[2,3]", "bitwise_xor(%n, %n)"},
    {"aten.bitwise_xor.Scalar", "%n, 1", "int64[2,3]", "bitwise_xor(%n) {scalar = 1}"},
    {"aten.neg.default", "%x", "float32[2,3]", "neg(%x)"},
    {"aten.abs.default", "%x", "float32[2,3]", "abs(%x)"},
    {"aten.sign.default", "%x", "float32[2,3]", "sign(%x)"},
    {"aten.exp.default", "%x", "float32[2,3]", "exp(%x)"},
    {"aten.log.default", "%x", "float32[2,3]", "log(%x)"},
    {"aten.log1p.default", "%x", "float32[2,3]", "log1p(%x)"},
    {"aten.expm1.default", "%x", "float32[2,3]", "expm1(%x)"},
    {"aten.sqrt.default", "%x", "float32[2,3]", "sqrt(%x)"},
    {"aten.rsqrt.default", "%x", "float32[2,3]", "rsqrt(%x)"},
    {"aten.reciprocal.default", "%x", "float32[2,3]", "reciprocal(%x)"},
    {"aten.sin.default", "%x", "float32[2,3]", "sin(%x)"},
    {"aten.cos.default", "%x", "float32[2,3]", "cos(%x)"},
    {"aten.tanh.default", "%x", "float32[2,3]", "tanh(%x)"},
    {"aten.sigmoid.default", "%x", "float32[2,3]", "sigmoid(%x)"},
    {"aten.erf.default", "%x", "float32[2,3]", "erf(%x)"},
    {"aten.floor.default", "%x", "float32[2,3]", "floor(%x)"},
    {"aten.ceil.default", "%x", "float32[2,3]", "ceil(%x)"},
    {"aten.round.default", "%x", "float32[2,3]", "round(%x)"},
    {"aten.relu.default", "%x", "float32[2,3]", "relu(%x)"},
    {"aten.silu.default", "%x", "float32[2,3]", "silu(%x)"},
    {"aten.logical_not.default", "%x", "bool[2,3]", "logical_not(%x)"},
    {"aten.bitwise_not.default", "%b", "bool[2,3]", "bitwise_not(%b)"},
    {"aten.isnan.default", "%x", "bool[2,3]", "isnan(%x)"},
    {"aten.isinf.default", "%x", "bool[2,3]", "isinf(%x)"},
    {"aten.gelu.default", "%x", "float32[2,3]", "gelu(%x)"},
    {"aten.gelu.default", "%x", "float32[2,3]", R"(gelu(%x) {approximate = "tanh"})", R"("approximate":"tanh")"},
    {"aten.leaky_relu.default", "%x, 0.2", "float32[2,3]", "leaky_relu(%x) {slope = 0.2}"},
    {"aten.leaky_relu.default", "%x", "float32[2,3]", "leaky_relu(%x)"},
    {"aten.softplus.default", "%x, 2, 30", "float32[2,3]", "softplus(%x) {beta = 2, threshold = 30}"},
    {"aten.clamp.default", "%x, null, 1", "float32[2,3]", "clamp(%x) {max = 1}"},
    {"aten.clamp_min.default", "%x, 0", "float32[2,3]", "clamp(%x) {min = 0}"},
    {"aten.clamp_max.default", "%x, 0", "float32[2,3]", "clamp(%x) {max = 0}"},
    {"aten._to_copy.default", "%x", "float16[2,3]", "cast(%x) {dtype = f16}", R"("dtype":{"dtype":"float16"})"},
    {"aten._to_copy.default", "%x", "float32[2,3]@cpu", "to_device(%x) {device = host}", R"("device":{"device":"cpu"})"},
    {"aten._to_copy.default", "%x", "float32[2,3]", "clone(%x)", R"("dtype":{"dtype":"float32"},"device":{"device":"cuda:0"})"},
    {"aten.where.self", "%b, %x, %y", "float32[2,3]", "where(%b, %x, %y)"},
    {"aten.masked_fill.Scalar", "%x, %b, 1.5", "float32[2,3]", "masked_fill(%x, %b) {scalar = 1.5}"},
    {"aten.masked_fill.Tensor", "%x, %b, %s", "float32[2,3]", "masked_fill(%x, %b, %s)"},
    {"aten.addcmul.default", "%x, %y, %y", "float32[2,3]", "addcmul(%x, %y, %y) {value = 0.5}", R"("value":0.5)"},
    {"aten.addcdiv.default", "%x, %y, %y", "float32[2,3]", "addcdiv(%x, %y, %y)"},
    {"aten.lerp.Tensor", "%x, %y, %x", "float32[2,3]", "lerp(%x, %y, %x)"},
    {"aten.lerp.Scalar", "%x, %y, 0.1", "float32[2,3]", "lerp(%x, %y) {scalar = 0.1}"},
    {"aten.threshold_backward.default", "%x, %y, 0.5", "float32[2,3]", "threshold_backward(%x, %y) {threshold = 0.5}"},
    {"aten.gelu_backward.default", "%x, %y", "float32[2,3]", R"(gelu_backward(%x, %y) {approximate = "tanh"})", R"("approximate":"tanh")"},
    {"aten.leaky_relu_backward.default", "%x, %y, 0.2, false", "float32[2,3]", "leaky_relu_backward(%x, %y) {slope = 0.2}"},
    {"aten.silu_backward.default", "%x, %y", "float32[2,3]", "silu_backward(%x, %y)"},
    {"aten.tanh_backward.default", "%x, %y", "float32[2,3]", "tanh_backward(%x, %y)"},
    {"aten.sigmoid_backward.default", "%x, %y", "float32[2,3]", "sigmoid_backward(%x, %y)"},

    {"aten.sum.default", "%x", "float32[]", "sum(%x)"},
    {"aten.sum.default", "%h", "float32[]", "sum(%h) {dtype = f32}", R"("dtype":{"dtype":"float32"})"},
    {"aten.sum.dim_IntList", "%x, [-1], true", "float32[2,1]", "sum(%x) {dims = [1], keepdim = true}"},
    {"aten.sum.dim_IntList", "%x, [0, -1]", "float32[]", "sum(%x) {dims = [0, 1]}"},
    {"aten.sum.dim_IntList", "%x, []", "float32[]", "sum(%x)"},
    {"aten.sum.dim_IntList", "%x, null", "float32[]", "sum(%x)"},
    {"aten.mean.default", "%x", "float32[]", "mean(%x)"},
    {"aten.mean.dim", "%x, [0]", "float32[3]", "mean(%x) {dims = [0]}"},
    {"aten.prod.default", "%x", "float32[]", "prod(%x)"},
    {"aten.prod.dim_int", "%x, -2", "float32[3]", "prod(%x) {dims = [0]}"},
    {"aten.amax.default", "%x, [1]", "float32[2]", "amax(%x) {dims = [1]}"},
    {"aten.amin.default", "%x", "float32[]", "amin(%x)"},
    {"aten.any.default", "%b", "bool[]", "any(%b)"},
    {"aten.any.dim", "%b, 1", "bool[2]", "any(%b) {dims = [1]}"},
    {"aten.any.dims", "%b, [1], true", "bool[2,1]", "any(%b) {dims = [1], keepdim = true}"},
    {"aten.all.default", "%b", "bool[]", "all(%b)"},
    {"aten.all.dim", "%b, 1", "bool[2]", "all(%b) {dims = [1]}"},
    {"aten.all.dims", "%b, [1]", "bool[2]", "all(%b) {dims = [1]}"},
    {"aten.var.correction", "%x, [1]", "float32[2]", "var(%x) {correction = 0, dims = [1]}", R"("correction":0)"},
    {"aten.linalg_vector_norm.default", "%x, 3, [1]", "float32[2]", "norm(%x) {dims = [1], p = 3}"},
    {"aten.logsumexp.default", "%x, [1]", "float32[2]", "logsumexp(%x) {dims = [1]}"},
    {"aten.argmax.default", "%x, -1", "int64[2]", "argmax(%x) {dim = 1}"},
    {"aten.argmin.default", "%x", "int64[]", "argmin(%x)"},
    {"aten.cumsum.default", "%x, -1", "float32[2,3]", "cumsum(%x) {dim = 1}"},
    {"aten._softmax.default", "%x, -1, false", "float32[2,3]", "softmax(%x) {dim = 1}"},
    {"aten._softmax.default", "%h, -1, true", "float32[2,3]", "softmax(%h) {dim = 1, dtype = f32}"},
    {"aten._log_softmax.default", "%x, 0, false", "float32[2,3]", "log_softmax(%x) {dim = 0}"},
    {"aten._safe_softmax.default", "%x, -1", "float32[2,3]", "safe_softmax(%x) {dim = 1}"},
    {"aten._safe_softmax.default", "%h, -1", "float32[2,3]", "safe_softmax(%h) {dim = 1, dtype = f32}", R"("dtype":{"dtype":"float32"})"},
    {"aten._softmax_backward_data.default", R"(%x, %y, -1, {"dtype":"float32"})", "float32[2,3]", "softmax_backward(%x, %y) {dim = 1}"},
    {"aten._softmax_backward_data.default", R"(%x, %y, -1, {"dtype":"float16"})", "float16[2,3]", "softmax_backward(%x, %y) {dim = 1, dtype = f16}"},
    {"aten._log_softmax_backward_data.default", R"(%x, %y, -1, {"dtype":"float32"})", "float32[2,3]", "log_softmax_backward(%x, %y) {dim = 1}"},

    {"aten.full.default", "[2, 3], 7", "float32[2,3]", "full() {device = cuda:0, dtype = f32, shape = [2, 3], value = 7}", madeKeywords},
    {"aten.full_like.default", "%h, 0.5", "float16[2,3]", "full() {device = cuda:0, dtype = f16, shape = [2, 3], value = 0.5}", R"("pin_memory":false)"},
    {"aten.new_full.default", "%x, [4], 1", "float32[4]", "full() {device = cuda:0, dtype = f32, shape = [4], value = 1}"},
    {"aten.scalar_tensor.default", "1.5", "float32[]", "full() {device = cuda:0, dtype = f32, shape = [], value = 1.5}", madeKeywords},
    {"aten.zeros.default", "[4]", "int64[4]", "full() {device = cuda:0, dtype = i64, shape = [4], value = 0}"},
    {"aten.zeros_like.default", "%b", "bool[2,3]", "full() {device = cuda:0, dtype = bool, shape = [2, 3], value = false}"},
    {"aten.new_zeros.default", "%x, [1]", "float32[1]", "full() {device = cuda:0, dtype = f32, shape = [1], value = 0.0}"},
    {"aten.ones.default", "[2]", "bool[2]@cpu", "full() {device = host, dtype = bool, shape = [2], value = true}"},
    {"aten.ones_like.default", "%x", "float32[2,3]", "full() {device = cuda:0, dtype = f32, shape = [2, 3], value = 1.0}"},
    {"aten.new_ones.default", "%x, [1]", "int32[1]", "full() {device = cuda:0, dtype = i32, shape = [1], value = 1}", R"("dtype":{"dtype":"int32"})"},
    {"aten.empty.memory_format", "[4]", "float32[4]", "empty() {device = cuda:0, dtype = f32, shape = [4]}", madeKeywords},
    {"aten.empty_like.default", "%x", "float32[2,3]", "empty() {device = cuda:0, dtype = f32, shape = [2, 3]}"},
    {"aten.new_empty.default", "%x, [4]", "float32[4]", "empty() {device = cuda:0, dtype = f32, shape = [4]}"},
    {"aten.arange.default", "4", "int64[4]", "arange() {device = cuda:0, dtype = i64, end = 4}"},
    {"aten.arange.start", "1, 4", "int64[3]", "arange() {device = cuda:0, dtype = i64, end = 4, start = 1}"},
    {"aten.arange.start_step", "0, 1.0, 0.25", "float32[4]", "arange() {device = cuda:0, dtype = f32, end = 1.0, step = 0.25}"},
    {"aten.eye.default", "3", "float32[3,3]", "eye() {device = cuda:0, dtype = f32, n = 3}", madeKeywords},
    {"aten.eye.m", "3, 2", "float32[3,2]", "eye() {device = cuda:0, dtype = f32, m = 2, n = 3}"},

    {"aten.native_dropout_backward.default", "%x, %b, 1.25", "float32[2,3]", "dropout_backward(%x, %b) {scale = 1.25}"},

    {"aten.view.default", "%x, [-1]", "float32[6]", "reshape(%x) {shape = [6]}"},
    {"aten._unsafe_view.default", "%x, [3, 2]", "float32[3,2]", "reshape(%x) {shape = [3, 2]}"},
    {"aten.permute.default", "%a, [-1, 0, 1]", "float32[3,5,2;1,6,3]", "permute(%a) {dims = [2, 0, 1]}"},
    {"aten.t.default", "%x", "float32[3,2;1,3]", "permute(%x) {dims = [1, 0]}"},
    {"aten.t.default", "%v", "float32[3]", "permute(%v) {dims = [0]}"},
    {"aten.t.default", "%s", "float32[]", "permute(%s) {dims = []}"},
    {"aten.transpose.int", "%a, -1, -2", "float32[5,3,2;6,1,3]", "permute(%a) {dims = [0, 2, 1]}"},
    {"aten.transpose.int", "%s, 0, -1", "float32[]", "permute(%s) {dims = []}"},
    {"aten.expand.default", "%v, [4, -1]", "float32[4,3;0,1]", "expand(%v) {shape = [4, 3]}", R"("implicit":false)"},
    {"aten.expand.default", "%s, [2, 1]", "float32[2,1;0,1]", "expand(%s) {shape = [2, 1]}"},
    {"aten.slice.Tensor", "%x, 1, -2, 9223372036854775807", "float32[2,2;3,1]", "slice(%x) {dim = 1, end = 3, start = 1}"},
    {"aten.slice.Tensor", "%a", "float32[5,2,3]", "slice(%a) {end = 5}"},
    {"aten.slice.Tensor", "%a, 0, null, null, 2", "float32[3,2,3;12,3,1]", "slice(%a) {end = 5, step = 2}"},
    {"aten.slice.Tensor", "%a, 0, 4, 1", "float32[0,2,3;6,3,1]", "slice(%a) {end = 4, start = 4}"},
    {"aten.select.int", "%x, -1, -1", "float32[2;3]", "select(%x) {dim = 1, index = 2}"},
    {"aten.squeeze.default", "%z", "float32[3]", "squeeze(%z) {dims = [0, 2]}"},
    {"aten.squeeze.dim", "%z, -1", "float32[1,3]", "squeeze(%z) {dims = [2]}"},
    {"aten.squeeze.dim", "%x, 0", "float32[2,3]", "squeeze(%x) {dims = []}"},
    {"aten.squeeze.dim", "%s, 0", "float32[]", "squeeze(%s) {dims = []}"},
    {"aten.squeeze.dims", "%z, [0, 1]", "float32[3,1]", "squeeze(%z) {dims = [0]}"},
    {"aten.unsqueeze.default", "%x, -1", "float32[2,3,1]", "unsqueeze(%x) {dim = 2}"},
    {"aten.detach.default", "%x", "float32[2,3]", "detach(%x)"},
    {"aten.alias.default", "%x", "float32[2,3]", "detach(%x)"},
    {"aten.as_strided.default", "%x, [2], [2], 1", "float32[2;2]", "as_strided(%x) {offset = 1, shape = [2], strides = [2]}"},
    {"aten.diagonal.default", "%a, 1, 1, -1", "float32[5,2;6,4]", "diagonal(%a) {dim1 = 1, dim2 = 2, offset = 1}"},
    {"aten.split.Tensor", "%a, 2", "(float32[2,2,3], float32[2,2,3], float32[1,2,3])", "split(%a) {sizes = [2, 2, 1]}"},
    {"aten.split.Tensor", "%empty, 2", "(float32[0,3])", "split(%empty) {sizes = [0]}"},
    {"aten.split_with_sizes.default", "%x, [1, 2], -1", "(float32[2,1;3,1], float32[2,2;3,1])", "split(%x) {dim = 1, sizes = [1, 2]}"},
    {"aten.unbind.int", "%x", "(float32[3], float32[3])", "unbind(%x)"},

    {"aten.clone.default", "%x", "float32[2,3]", "clone(%x)"},
    {"aten.clone.default", "%x", "float32[2,3]", "clone(%x)", R"("memory_format":{"repr":"torch.contiguous_format"})"},
    {"aten.lift_fresh_copy.default", "%x", "float32[2,3]", "clone(%x)"},
    {"aten.cat.default", "[%x, %y], -1", "float32[2,6]", "cat(%x, %y) {dim = 1}"},
    {"aten.cat.default", "[%x, %y]", "float32[4,3]", "cat(%x, %y)"},
    {"aten.stack.default", "[%x, %y], -1", "float32[2,3,2]", "stack(%x, %y) {dim = 2}"},
    {"aten.repeat.default", "%x, [2, 1, 1]", "float32[2,2,3]", "repeat(%x) {repeats = [2, 1, 1]}"},
    {"aten.flip.default", "%x, [-1]", "float32[2,3]", "flip(%x) {dims = [1]}"},
    {"aten.roll.default", "%x, [1], [-1]", "float32[2,3]", "roll(%x) {dims = [1], shifts = [1]}"},
    {"aten.constant_pad_nd.default", "%x, [1, 1], 2.0", "float32[2,5]", "pad(%x) {pads = [1, 1], value = 2.0}"},
    {"aten.tril.default", "%x, -1", "float32[2,3]", "tril(%x) {diagonal = -1}"},
    {"aten.triu.default", "%x", "float32[2,3]", "triu(%x)"},
    {"aten.gather.default", "%x, -1, %n", "float32[2,3]", "gather(%x, %n) {dim = 1}", R"("sparse_grad":false)"},
    {"aten.index_select.default", "%x, 1, %i", "float32[2,2]", "index_select(%x, %i) {dim = 1}"},
    {"aten.scatter.src", "%x, 1, %n, %y", "float32[2,3]", "scatter(%x, %n, %y) {dim = 1}"},
    {"aten.scatter_add.default", "%x, 1, %n, %y", "float32[2,3]", "scatter_add(%x, %n, %y) {dim = 1}"},
    {"aten.index_copy.default", "%x, -2, %i, %y", "float32[2,3]", "index_copy(%x, %i, %y) {dim = 0}"},
    {"aten.index_add.default", "%x, 0, %i, %y", "float32[2,3]", "index_add(%x, %i, %y) {alpha = 2, dim = 0}", R"("alpha":2)"},
    {"aten.index.Tensor", "%x, [null, %i]", "float32[2,2]", "index(%x, none, %i)"},
    {"aten.index_put.default", "%x, [%i], %y, true", "float32[2,3]", "index_put(%x, %y, %i) {accumulate = true}"},
    {"aten.select_scatter.default", "%x, %v, 0, -1", "float32[2,3]", "select_scatter(%x, %v) {dim = 0, index = 1}"},
    {"aten.slice_scatter.default", "%a, %a, 0", "float32[5,2,3]", "slice_scatter(%a, %a) {end = 5}"},
    {"aten.topk.default", "%x, 2", "(float32[2,2], int64[2,2])", "topk(%x) {dim = 1, k = 2}"},
    {"aten.topk.default", "%x, 1, 0, false", "(float32[1,3], int64[1,3])", "topk(%x) {dim = 0, k = 1, largest = false}"},
    {"aten.sort.default", "%x, 0, true", "(float32[2,3], int64[2,3])", "sort(%x) {descending = true, dim = 0}"},

    {"aten.mm.default", "%x, %w", "float32[2,4]", "mm(%x, %w)"},
    {"aten.bmm.default", "%a, %c", "float32[5,2,4]", "bmm(%a, %c)"},
    {"aten.matmul.default", "%a, %w", "float32[5,2,4]", "matmul(%a, %w)"},
    {"aten.linear.default", "%x, %y, %i_", "float32[2,2]", "linear(%x, %y, %i_)"},
    {"aten.linear.default", "%x, %y", "float32[2,2]", "linear(%x, %y)"},
    {"aten.addmm.default", "%e, %x, %w", "float32[2,4]", "addmm(%e, %x, %w) {alpha = 2, beta = 0}", R"("beta":0,"alpha":2)"},
    {"aten.baddbmm.default", "%d, %a, %c", "float32[5,2,4]", "baddbmm(%d, %a, %c)"},
    {"aten.native_layer_norm.default", "%x, [3], %v, null, 1e-6", "(float32[2,3], float32[2,1], float32[2,1])", "layer_norm(%x, %v) {eps = 1e-06, normalized_shape = [3]}"},
    {"aten.native_layer_norm_backward.default", "%x, %y, [3], %mean, %mean, %v, null, [true, true, false]", "(float32[2,3], float32[3], None)", "layer_norm_backward(%x, %y, %mean, %mean, %v) {mask = [true, true, false], normalized_shape = [3]}"},
    {"aten._fused_rms_norm.default", "%x, [3], %v, 1e-6", "(float32[2,3], float32[2,1])", "rms_norm(%x, %v) {eps = 1e-06, normalized_shape = [3]}"},
    {"aten._fused_rms_norm_backward.default", "%x, %y, [3], %mean, %v, [true, false]", "(float32[2,3], None)", "rms_norm_backward(%x, %y, %mean, %v) {mask = [true, false], normalized_shape = [3]}"},
    {"aten._native_batch_norm_legit_functional.default", "%feature, null, null, %four, %four, false, 0.2, 1e-5", "(float32[2,4,8,8], float32[0], float32[0], float32[4], float32[4])", "batch_norm(%feature, none, none, %four, %four) {momentum = 0.2, training = false}"},
    {"aten.native_batch_norm_backward.default", "%feature, %feature, %four, null, null, %four, %four, true, 1e-5, [true, true, true]", "(float32[2,4,8,8], float32[4], float32[4])", "batch_norm_backward(%feature, %feature, %four, none, none, %four, %four) {training = true}"},
    {"aten.convolution.default", "%image, %kernel, null, [1, 1], [1, 1], [1, 1], false, [0, 0], 1", "float32[2,4,8,8]", "convolution(%image, %kernel) {dilation = [1, 1], output_padding = [0, 0], padding = [1, 1], stride = [1, 1]}"},
    {"aten.convolution_backward.default", "%feature, %image, %kernel, null, [1, 1], [1, 1], [1, 1], false, [0, 0], 1, [false, true, false]", "(None, float32[4,3,3,3], None)", "convolution_backward(%feature, %image, %kernel) {dilation = [1, 1], mask = [false, true, false], output_padding = [0, 0], padding = [1, 1], stride = [1, 1]}"},
    {"aten.embedding.default", "%w, %n, 2, false, false", "float32[2,3,4]", "embedding(%w, %n) {padding_idx = 2}"},
    {"aten.embedding_dense_backward.default", "%x, %i, 7, -1, true", "float32[7,3]", "embedding_backward(%x, %i) {num_weights = 7, scale_grad_by_freq = true}"},
    {"aten.nll_loss_forward.default", "%x, %i, %v, 2, -100", "(float32[], float32[])", R"(nll_loss(%x, %i, %v) {reduction = "sum"})"},
    {"aten.nll_loss_backward.default", "%s, %x, %i, null, 1, 5, %s", "float32[2,3]", "nll_loss_backward(%s, %x, %i, none, %s) {ignore_index = 5}"},
    {"aten.mse_loss.default", "%x, %y, 0", "float32[2,3]", R"(mse_loss(%x, %y) {reduction = "none"})"},
    {"aten.mse_loss_backward.default", "%s, %x, %y, 1", "float32[2,3]", "mse_loss_backward(%s, %x, %y)"},
};
// clang-format on

// Every row of the mapping, in the forms that ATen gives it.
TEST_F(ImportFXOpsTest, EachOpBecomesItsCoreOp) {
  for (const Row &row : rows) {
    SCOPED_TRACE(std::string(row.aten) + "(" + row.args + ")");
    FXText graph = graphWithInputs();
    graph.input("i_", "float32[2]");
    graph.node("r", row.aten, row.args, row.result, row.kwargs);
    graph.outputs("");
    std::string text = forwardText(graph);
    size_t equals = text.find(" = ");
    ASSERT_NE(equals, std::string::npos) << text;
    EXPECT_EQ(text.substr(equals + 3), std::string(row.becomes) + "\n");
  }
}

// Ops that the rows above leave to other cases; every other one is there.
TEST_F(ImportFXOpsTest, EachMappingHasACase) {
  llvm::StringSet<> covered;
  for (const Row &row : rows)
    covered.insert(row.aten);
  for (const fx::Mapping &mapping : fx::mappings()) {
    EXPECT_TRUE(registry_.lookup(mapping.core)) << mapping.core.str();
    bool isElsewhere = mapping.aten.contains("attention") || mapping.aten.contains("_amp_") ||
                       mapping.aten.contains("_foreach_") || mapping.aten.contains("_fused_adam") ||
                       mapping.aten.contains("_fused_sgd") || mapping.aten.contains("rand") ||
                       mapping.aten == "aten.native_dropout.default" ||
                       mapping.aten == "aten.bernoulli.default" ||
                       mapping.aten == "aten.multinomial.default" ||
                       mapping.aten == "aten._local_scalar_dense.default";
    EXPECT_NE(covered.contains(mapping.aten), isElsewhere) << mapping.aten.str();
  }
}

// The table in the documentation is the table in the code.
TEST_F(ImportFXOpsTest, DocumentationListsEachMapping) {
  auto document = llvm::MemoryBuffer::getFile(RONDO_SOURCE_DIR "/docs/trace-format.md");
  ASSERT_TRUE(bool(document));
  llvm::StringRef table = (*document)->getBuffer();
  table = table.split("<!-- fx-ops:begin -->").second.split("<!-- fx-ops:end -->").first;
  llvm::SmallVector<llvm::StringRef, 0> lines;
  table.split(lines, '\n');
  std::vector<std::string> listed, expected;
  for (llvm::StringRef line : lines)
    if (line.take_front(3) == "| `")
      listed.push_back(line.str());
  // One line for each core op in the order of the table.
  std::vector<std::pair<std::string, std::string>> byCore;
  for (const fx::Mapping &mapping : fx::mappings()) {
    llvm::StringRef aten = mapping.aten;
    aten.consume_front("aten.");
    std::string name = ("`" + aten + "`").str();
    auto it = llvm::find_if(byCore, [&](const auto &entry) { return entry.first == mapping.core; });
    if (it == byCore.end())
      byCore.emplace_back(mapping.core.str(), name);
    else
      it->second += ", " + name;
  }
  for (const auto &[core, aten] : byCore)
    expected.push_back("| `" + core + "` | " + aten + " |");
  EXPECT_EQ(listed, expected);
}

// The example in the documentation becomes what it says.
TEST_F(ImportFXOpsTest, DocumentedExample) {
  auto document = llvm::MemoryBuffer::getFile(RONDO_SOURCE_DIR "/docs/trace-format.md");
  ASSERT_TRUE(bool(document));
  llvm::StringRef section = (*document)->getBuffer().split("\n## fx-aten-1\n").second;
  llvm::StringRef example = section.split("```json\n").second.split("```").first;
  llvm::StringRef becomes = section.split("```rondo\n").second.split("```").first;
  std::optional<TracePair> pair = import(example.str());
  ASSERT_TRUE(pair);
  std::string text;
  llvm::raw_string_ostream os(text);
  print(*pair, os);
  EXPECT_EQ(os.str(), becomes);
}

// A conversion of both dtype and device takes two ops.
TEST_F(ImportFXOpsTest, ToCopyOfDTypeAndDevice) {
  FXText graph("forward");
  graph.input("x", "float32[2]");
  graph.node("r", "aten._to_copy.default", "%x", "float16[2]@cpu",
             R"("dtype":{"dtype":"float16"},"device":{"device":"cpu"})");
  graph.outputs("%r");
  EXPECT_EQ(forwardText(graph), "%0: f16[2]@cuda:0 = cast(%x) {dtype = f16}\n"
                                "%r: f16[2] = to_device(%0) {device = host}\n");
}

// A clone keeps the strides of what is not row-major unless told otherwise.
TEST_F(ImportFXOpsTest, CloneKeepsStrides) {
  FXText graph("forward");
  graph.input("x", "float32[2,3;1,2]");
  graph.node("r", "aten.clone.default", "%x", "float32[2,3;1,2]");
  graph.node("q", "aten.clone.default", "%x", "float32[2,3]",
             R"("memory_format":{"repr":"torch.contiguous_format"})");
  graph.outputs("%r, %q");
  EXPECT_EQ(forwardText(graph), "%r: f32[2, 3; 1, 2]@cuda:0 = clone(%x) {contiguous = false}\n"
                                "%q: f32[2, 3]@cuda:0 = clone(%x)\n");
}

// Names that are none in Rondo are changed, without taking another value's.
TEST_F(ImportFXOpsTest, NamesAreSanitised) {
  FXText graph("forward");
  graph.input("x-y", "float32[2]");
  graph.input("x_y", "float32[2]");
  graph.input("1", "float32[2]");
  std::string text =
      graph.node("r", "aten.neg.default", R"({"ref":"x-y"})", "float32[2]")
          .node("q", "aten.add.Tensor", R"({"ref":"x_y"}, {"ref":"1"})", "float32[2]")
          .outputs("%r, %q")
          .str();
  std::optional<TracePair> pair =
      import(R"({"model":"a b","forward":)" + text + R"(,"backward":null})");
  ASSERT_TRUE(pair);
  EXPECT_EQ(pair->name(), "a_b");
  EXPECT_EQ(opsText(pair->forward()), "%r: f32[2]@cuda:0 = neg(%x_y_1)\n"
                                      "%q: f32[2]@cuda:0 = add(%x_y, %_1)\n");
}

// Dynamo's name of the root module is dropped from module paths.
TEST_F(ImportFXOpsTest, ModulePaths) {
  for (auto [recorded, clean] : {std::pair("L['s'].l.0", "l.0"), std::pair("L['self']", ""),
                                 std::pair("a.b", "a.b"), std::pair("L['s", "L['s")}) {
    FXText graph("forward");
    graph.input("x", "float32[2]");
    graph.node("r", "aten.neg.default", "%x", "float32[2]", "",
               std::string("\"module\":\"") + recorded + "\"");
    graph.outputs("%r");
    std::optional<TracePair> pair = import(fxProgram(graph));
    ASSERT_TRUE(pair);
    EXPECT_EQ(pair->forward().op(pair->forward().ops()[0]).modulePath(), clean);
  }
}

//===----------------------------------------------------------------------===//
// Opaque ops
//===----------------------------------------------------------------------===//

// An op without a mapping keeps its name, path, results and arguments. Arguments that are values
// are operands; the others are attributes, in which `%N` is the N-th operand.
TEST_F(ImportFXOpsTest, UnknownOpsAreOpaque) {
  FXText graph("forward");
  graph.input("x", "float32[2]");
  graph.input("y", "float32[2]");
  graph.node("r", "mylib.mix.default",
             R"(%x, 3, [%y, null, [1.5, %x]], null, {"repr":"torch.strided"}, {"dtype":"int8"})",
             "(float32[2], None, int=3, unused, int64[4])",
             R"("out":%y,"arg1":true,"elements":"e")", R"("module":"L['s'].b")");
  graph.node("last", "_operator.getitem", "%r, 4", "int64[4]");
  graph.outputs("%last");
  std::optional<TracePair> pair = import(fxProgram(graph));
  ASSERT_TRUE(pair);
  EXPECT_EQ(opsText(pair->forward()),
            "%0: f32[2]@cuda:0, %1: i64, %last: i64[4]@cuda:0 = mylib.mix.default(%x, %y, %x, %y) "
            "{arg1 = 3, arg1_ = true, arg2 = [\"%1\", none, [1.5, \"%2\"]], arg3 = none, "
            "arg4 = \"torch.strided\", arg5 = i8, elements = \"e\", elements_ = [0, 2, 4], "
            "out = \"%3\"}\n");
  const Op &op = pair->forward().op(pair->forward().ops()[0]);
  EXPECT_TRUE(op.spec().opaque);
  EXPECT_EQ(op.modulePath(), "b");
  EXPECT_EQ(op.location()->str(), "test.json:/forward/nodes/0");
}

// An op that only has the name of a core op is not that op.
TEST_F(ImportFXOpsTest, NamesOfCoreOpsAreNotThose) {
  FXText graph("forward");
  graph.input("x", "float32[2]");
  graph.node("r", "relu", "%x, 1", "float32[2]");
  graph.outputs("%r");
  EXPECT_EQ(forwardText(graph), "%r: f32[2]@cuda:0 = fx.relu(%x) {arg1 = 1}\n");
}

// So is a known op with an argument that its mapping does not know, and what it emitted is gone.
TEST_F(ImportFXOpsTest, UnknownFormsAreOpaque) {
  struct {
    const char *aten, *args, *result, *kwargs;
  } const forms[] = {
      {"aten.add.Tensor", "%x", "float32[2,3]", ""},
      {"aten.add.Tensor", "%x, %y, 1, 2", "float32[2,3]", ""},
      {"aten.add.Tensor", "%x, %y", "float32[2,3]", R"("beta":1)"},
      {"aten.add.Tensor", "%x, %y", "float32[2,3]", R"("other":1)"},
      {"aten.add.Tensor", "%x, [%y]", "float32[2,3]", ""},
      {"aten.add.Tensor", "%x, %y", "float32[2,3]", R"("alpha":%y)"},
      {"aten.add.Tensor", "%x, %y", "(float32[2,3], float32[2,3])", ""},
      {"aten.add.Tensor", "2, %x", "float32[2,3]", ""},
      {"aten.div.Tensor_mode", "%x, %y", "float32[2,3]", R"("rounding_mode":"floor")"},
      {"aten.leaky_relu_backward.default", "%x, %y, 0.1, true", "float32[2,3]", ""},
      {"aten._to_copy.default", "%x", "float32[2,3]", R"("layout":{"repr":"torch.sparse_coo"})"},
      {"aten._to_copy.default", "%x", "float32[2,3]",
       R"("memory_format":{"repr":"torch.channels_last"})"},
      {"aten.clone.default", "%x", "float32[2,3]",
       R"("memory_format":{"repr":"torch.channels_last"})"},
      {"aten.clone.default", "%x", "float32[2,3]", R"("memory_format":1)"},
      {"aten.sum.dim_IntList", "%x, [2]", "float32[2]", ""},
      {"aten.sum.dim_IntList", "%x, [%n]", "float32[2]", ""},
      {"aten.sum.default", "%x", "float32[]", R"("dtype":1)"},
      {"aten.full.default", "[2, %n], 1", "float32[2,3]", ""},
      {"aten.full.default", "[3, 2], 1", "float32[2,3]", ""},
      {"aten.full.default", "[2], 1", "float32[2]", R"("layout":{"repr":"torch.sparse_coo"})"},
      {"aten.full.default", "[2], %s", "float32[2]", ""},
      {"aten.arange.default", "2", "int64[2]", R"("layout":{"repr":"torch.sparse_coo"})"},
      {"aten.eye.default", "2", "float32[2,2]", R"("layout":{"repr":"torch.sparse_coo"})"},
      {"aten.randn.default", "[2]", "float32[2]", R"("layout":{"repr":"torch.sparse_coo"})"},
      {"aten.relu.default", "%x, 1", "float32[2,3]", ""},
      {"aten.mm.default", "%x, %y", "None", ""},
      {"aten.unsqueeze.default", "%x, 4", "float32[2,3,1]", ""},
      {"aten._to_copy.default", "%x", "float32[2,3]", R"("device":1)"},
      {"aten.native_dropout.default", "%x, 0.5, false", "(float32[2,3], bool[2,3])", ""},
      {"aten.rand.default", "[2]", "float32[2]", R"("generator":%s)"},
      {"aten.multinomial.default", "%x, 1", "None", ""},
      {"aten.permute.default", "%x, %n", "float32[2,3]", ""},
      {"aten.t.default", "%a", "float32[3,2,5]", ""},
      {"aten.transpose.int", "%x, 0, 2", "float32[2,3]", ""},
      {"aten.slice.Tensor", "%s", "float32[]", ""},
      {"aten.select.int", "%s, 0, 0", "float32[]", ""},
      {"aten.as_strided.default", "%x, [2], [2]", "float32[2;2]", ""},
      {"aten.split.Tensor", "%x, 0", "(float32[2,3])", ""},
      {"aten.cat.default", "[%x, null]", "float32[2,3]", ""},
      {"aten.cat.default", "%x", "float32[2,3]", ""},
      {"aten.index.Tensor", "%x, [1]", "float32[3]", ""},
      {"aten.index.Tensor", "%x, %n", "float32[3]", ""},
      {"aten.native_layer_norm_backward.default", "%x, %x, [3], %x, %x, null, null, [true, true]",
       "(float32[2,3], None, None)", ""},
      {"aten.native_layer_norm_backward.default", "%x, %x, [3], %x, %x, null, null, true",
       "(float32[2,3], None, None)", ""},
      {"aten.native_layer_norm_backward.default", "%x, %x, [3], %x, %x, null, null, [1, 2, 3]",
       "(float32[2,3], None, None)", ""},
      {"aten._fused_rms_norm.default", "%x, [3], null, null", "(float32[2,3], float32[2,1])", ""},
      {"aten.mse_loss.default", "%x, %y, 3", "float32[]", ""},
      {"aten.gelu.default", "%x", "float32[2,3]", R"("approximate":1)"},
      {"aten._softmax.default", "%x, 1, 0", "float32[2,3]", ""},
      {"torch.ops.higher_order.graphsafe_run_with_rng_state",
       R"({"repr":"aten.native_dropout.default"}, %x, 0.5, true)", "(float32[2,3], bool[2,3])", ""},
      {"torch.ops.higher_order.graphsafe_run_with_rng_state",
       R"({"repr":"aten.native_dropout.default"}, %x, 0.5, true)", "(float32[2,3], bool[2,3])",
       R"("rng_state":%x)"},
      {"torch.ops.higher_order.graphsafe_run_with_rng_state", "%x, 0.5, true",
       "(float32[2,3], bool[2,3])", ""},
      {"torch.ops.higher_order.graphsafe_run_with_rng_state", "", "None", ""},
      {"torch.ops.higher_order.graphsafe_run_with_rng_state",
       R"({"repr":"aten.strange.default"}, %x)", "float32[2,3]", R"("rng_state":%g)"},
  };
  for (const auto &form : forms) {
    SCOPED_TRACE(std::string(form.aten) + "(" + form.args + ") " + form.kwargs);
    FXText graph("forward");
    graph.input("x", "float32[2,3]");
    graph.input("y", "float32[2,3]");
    graph.input("s", "float32[]");
    graph.input("a", "float32[5,2,3]");
    graph.input("n", "int");
    graph.input("g", "Generator");
    graph.node("r", form.aten, form.args, form.result, form.kwargs);
    graph.outputs("");
    std::optional<TracePair> pair = import(fxProgram(graph));
    ASSERT_TRUE(pair);
    ASSERT_EQ(pair->forward().ops().size(), 2u) << opsText(pair->forward());
    const Op &op = pair->forward().op(pair->forward().ops()[0]);
    EXPECT_TRUE(op.spec().opaque);
    EXPECT_EQ(op.name(), form.aten);
  }
}

// An op whose core op the registry lacks is opaque, and what its mapping emitted before is gone.
TEST_F(ImportFXOpsTest, RegistryWithoutSomeOps) {
  OpRegistry few;
  for (const char *name : {"return", "cast"})
    llvm::cantFail(few.registerOp(*registry_.lookup(name)));
  FXText graph("forward");
  graph.input("x", "float32[2]");
  graph.node("d", "aten.native_dropout.default", "%x, 0.5, true", "(float32[2], bool[2])");
  graph.node("r", "_operator.getitem", "%d, 0", "float32[2]");
  graph.node("c", "aten._to_copy.default", "%r", "float16[2]@cpu",
             R"("dtype":{"dtype":"float16"},"device":{"device":"cpu"})");
  graph.node("t", "aten.t.default", "%c", "float16[2]@cpu");
  graph.outputs("%t");
  llvm::Expected<TracePair> pair = importFX(fxProgram(graph), "test.json", few);
  ASSERT_TRUE(bool(pair)) << llvm::toString(pair.takeError());
  EXPECT_EQ(opsText(pair->forward()),
            "%r: f32[2]@cuda:0, %0: bool[2]@cuda:0 = aten.native_dropout.default(%x) {arg1 = 0.5, "
            "arg2 = true}\n"
            "%c: f16[2] = aten._to_copy.default(%r) {device = host, dtype = f16}\n"
            "%t: f16[2] = aten.t.default(%c)\n");
  OpRegistry empty;
  llvm::Expected<TracePair> none = importFX(fxProgram(graph), "test.json", empty);
  ASSERT_FALSE(bool(none)) << "a trace needs a terminator";
  llvm::consumeError(none.takeError());
}

} // namespace
