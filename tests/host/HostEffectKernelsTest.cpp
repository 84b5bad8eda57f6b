//===- HostEffectKernelsTest.cpp - item and print on the host -------------===//

#include "KernelTesting.h"

using namespace rondo;

namespace {

// item gives the one element, whatever its shape, as the kind of scalar that its dtype asks for.
TEST(HostEffectKernels, Item) {
  for (std::vector<int64_t> shape : {std::vector<int64_t>{}, {1}, {1, 1}}) {
    for (DType dtype : {DType::F16, DType::BF16, DType::F32, DType::F64}) {
      std::vector<Value> results = runOp("item", {tensorOf(dtype, shape, {-1.5})});
      ASSERT_TRUE(results.at(0).asFloat());
      EXPECT_EQ(*results[0].asFloat(), -1.5);
    }
    for (DType dtype : {DType::U8, DType::I8, DType::I16, DType::I32, DType::I64}) {
      std::vector<Value> results = runOp("item", {tensorOf(dtype, shape, {100})});
      ASSERT_TRUE(results.at(0).asInt());
      EXPECT_EQ(*results[0].asInt(), 100);
    }
    for (bool value : {false, true}) {
      std::vector<Value> results = runOp("item", {tensorOf(DType::Bool, shape, {double(value)})});
      ASSERT_TRUE(results.at(0).asBool());
      EXPECT_EQ(*results[0].asBool(), value);
    }
  }
  Tensor large = tensorOf(DType::I64, {}, {0});
  *large.ref().as<int64_t>() = std::numeric_limits<int64_t>::max(); // no double
  EXPECT_EQ(*runOp("item", {large})[0].asInt(), std::numeric_limits<int64_t>::max());
}

std::string printed(OperandInit x, llvm::ArrayRef<AttributeInit> attributes = {}) {
  testing::internal::CaptureStderr();
  runOp("print", {x}, attributes);
  return testing::internal::GetCapturedStderr();
}

// print writes one line: the message, the type, the elements in row-major order.
TEST(HostEffectKernels, Print) {
  Tensor matrix = tensorOf(DType::F32, {2, 2}, {1, -2.5, 1e10, std::nan("")});
  EXPECT_EQ(printed(matrix, {{"message", "loss"}}), "loss: f32[2, 2] [[1, -2.5], [1e+10, nan]]\n");
  EXPECT_EQ(printed(withLayout(matrix, Layout::Transposed)),
            "f32[2, 2] [[1, -2.5], [1e+10, nan]]\n");
  EXPECT_EQ(printed(tensorOf(DType::I8, {2}, {-1, 7})), "i8[2] [-1, 7]\n");
  EXPECT_EQ(printed(tensorOf(DType::Bool, {}, {1})), "bool[] true\n");
  EXPECT_EQ(printed(tensorOf(DType::BF16, {2, 0}, {})), "bf16[2, 0] [[], []]\n");
  EXPECT_EQ(printed(Value(int64_t(-3)), {{"message", "n"}}), "n: -3\n");
  EXPECT_EQ(printed(Value(0.5)), "0.5\n");
  EXPECT_EQ(printed(Value(false)), "false\n");
}

// A long tensor is cut off after 1000 elements, one of 1000 is not.
TEST(HostEffectKernels, PrintsTheStartOfLongTensors) {
  auto text = [](int64_t count) {
    return printed(tensorOf(DType::I64, {count}, std::vector<double>(count, 7)));
  };
  EXPECT_EQ(llvm::StringRef(text(1001)).count('7'), 1000u);
  EXPECT_TRUE(text(1001).ends_with("7, ...\n"));
  EXPECT_EQ(llvm::StringRef(text(1000)).count('7'), 1000u);
  EXPECT_TRUE(text(1000).ends_with("7]\n"));
}

// Both wait for the device, so that they cannot be captured; a kernel that does not can.
TEST(HostEffectKernels, CannotBeCaptured) {
  HostExecutor executor;
  for (const char *op : {"item", "print"}) {
    ASSERT_TRUE(executor.find(op));
    EXPECT_TRUE(executor.find(op)->synchronises) << op;
  }
  EXPECT_FALSE(executor.find("softmax")->synchronises);
}

// 8-bit floats are declined, f16 is not.
TEST(HostEffectKernels, DeclinesDTypes) {
  for (const char *op : {"item", "print"}) {
    EXPECT_EQ(whyDeclined(op, {{DType::F8E4M3, {1}}}), "has no host kernel for dtype f8e4m3");
    EXPECT_EQ(whyDeclined(op, {{DType::F16, {1}}}), "");
  }
}

// The families from products to host effects are complete; what one host cannot do, or leaves to
// others, has no kernel.
TEST(HostEffectKernels, OpsWithKernels) {
  HostExecutor executor;
  for (const char *op : {"mm",
                         "bmm",
                         "matmul",
                         "addmm",
                         "baddbmm",
                         "linear",
                         "softmax",
                         "log_softmax",
                         "safe_softmax",
                         "softmax_backward",
                         "log_softmax_backward",
                         "layer_norm",
                         "layer_norm_backward",
                         "rms_norm",
                         "rms_norm_backward",
                         "scaled_dot_product_attention",
                         "scaled_dot_product_attention_backward",
                         "nll_loss",
                         "nll_loss_backward",
                         "cross_entropy",
                         "cross_entropy_backward",
                         "mse_loss",
                         "mse_loss_backward",
                         "embedding",
                         "embedding_backward",
                         "gather",
                         "scatter",
                         "scatter_add",
                         "index",
                         "index_put",
                         "index_select",
                         "index_copy",
                         "index_add",
                         "select_scatter",
                         "slice_scatter",
                         "one_hot",
                         "sort",
                         "topk",
                         "index_copy_",
                         "index_add_",
                         "index_put_",
                         "scatter_",
                         "scatter_add_",
                         "unscale_",
                         "global_norm",
                         "clip_",
                         "update_scale_",
                         "sgd_",
                         "adam_",
                         "item",
                         "print"})
    EXPECT_TRUE(executor.find(op)) << op;
  for (const char *op :
       {"all_reduce", "all_reduce_", "all_gather", "reduce_scatter", "broadcast", "all_to_all",
        "barrier", "batch_norm", "batch_norm_backward", "convolution", "convolution_backward"})
    EXPECT_FALSE(executor.find(op)) << op;
}

} // namespace
