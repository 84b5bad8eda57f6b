//===- PlaceTest.cpp - A pair on another device ---------------------------===//

#include "PassFixture.h"

#include "support/TestPaths.h"

#include "rondo/ir/ImportFX.h"
#include "rondo/ir/Verifier.h"
#include "rondo/passes/Passes.h"

#include "llvm/Support/MemoryBuffer.h"

#include <regex>

using namespace rondo;
using ::testing::HasSubstr;
using ::testing::Not;

namespace {

const PlaceOptions toHost{};
const PlaceOptions fromHost{Device::host(), Device::cuda(0)};

class PlaceTest : public PassFixture {
protected:
  /// The text of the pair on another device, or the error.
  std::string placed(llvm::StringRef text, PlaceOptions options) {
    return runPass(createPlacePass(options), parse(text));
  }

  /// Placing `before` gives `after`; again, and `after` itself, nothing changes.
  void becomes(llvm::StringRef before, llvm::StringRef after, PlaceOptions options) {
    std::string once = placed(before, options);
    EXPECT_EQ(once, textOf(parse(after)));
    EXPECT_TRUE(changed);
    EXPECT_EQ(placed(after, options), once);
    EXPECT_FALSE(changed);
  }
};

/// Takes away what says that something is on cuda:0.
std::string withoutDevices(std::string text) {
  text = std::regex_replace(text, std::regex("@cuda:0"), "");
  return std::regex_replace(text, std::regex("cuda:0"), "host");
}

constexpr llvm::StringLiteral onCUDA = R"(pair @step {
  forward @fw(%x: f32[2, 8; 1, 2]@cuda:0 parameter, %i: i64, %e: f32[]) {
    %r: rng@cuda:0 = generator_read() {device = cuda:0}
    %d: f32[2, 8]@cuda:0, %m: bool[2, 8]@cuda:0 = dropout(%x, %r) {offset = 0, p = 0.5}
    %y: f32[2, 8]@cuda:0 = mul(%d, %e)
    generator_advance() {count = 16, device = cuda:0}
    return(%y, %m saved #0)
  }
  backward @bw(%g: f32[2, 8]@cuda:0, %m: bool[2, 8]@cuda:0 saved #0) {
    %d: f32[2, 8]@cuda:0 = dropout_backward(%g, %m) {scale = 2.0}
    return(%d)
  }
}
)";

constexpr llvm::StringLiteral onHost = R"(pair @step {
  forward @fw(%x: f32[2, 8; 1, 2] parameter, %i: i64, %e: f32[]) {
    %r: rng = generator_read() {device = host}
    %d: f32[2, 8], %m: bool[2, 8] = dropout(%x, %r) {offset = 0, p = 0.5}
    %y: f32[2, 8] = mul(%d, %e)
    generator_advance() {count = 16, device = host}
    return(%y, %m saved #0)
  }
  backward @bw(%g: f32[2, 8], %m: bool[2, 8] saved #0) {
    %d: f32[2, 8] = dropout_backward(%g, %m) {scale = 2.0}
    return(%d)
  }
}
)";

} // namespace

//===----------------------------------------------------------------------===//
// What changes
//===----------------------------------------------------------------------===//

// Tensors, RNG states and attributes of both traces move; strides, tags, scalars and links stay.
TEST_F(PlaceTest, ValuesAndAttributesOfBothTraces) {
  becomes(onCUDA, onHost, toHost);
}

// Arguments, results and attributes in nested bodies, at any depth, move.
TEST_F(PlaceTest, NestedBodies) {
  llvm::StringRef text = R"(trace @step(%c: bool, %x: f32[7]@cuda:0) {
  %y: f32[7]@cuda:0 = if(%c, %x) {
  ^(%x: f32[7]@cuda:0):
    %a: f32[7]@cuda:0 = checkpoint(%x) {
    ^(%x: f32[7]@cuda:0):
      %f: f32[7]@cuda:0 = full() {device = cuda:0, dtype = f32, shape = [7], value = 0.0}
      %a: f32[7]@cuda:0 = add(%x, %f)
      return(%a)
    }
    return(%a)
  } {
  ^(%x: f32[7]@cuda:0):
    return(%x)
  }
  return(%y)
}
)";
  becomes(text, withoutDevices(text.str()), toHost);
}

// By default everything that is on no host moves; with `from`, what is there and nothing else.
TEST_F(PlaceTest, LeavesOtherDevicesAlone) {
  llvm::StringRef text = "trace @f(%a: f32[8]@cuda:0, %b: f32[8]@cuda:1, %c: f32[8]@host:1) {\n"
                         "  return(%a, %b, %c)\n}\n";
  EXPECT_THAT(placed(text, {}), HasSubstr("(%a: f32[8], %b: f32[8], %c: f32[8]@host:1)"));
  EXPECT_THAT(placed(text, {Device::cuda(1), Device::host()}),
              HasSubstr("(%a: f32[8]@cuda:0, %b: f32[8], %c: f32[8]@host:1)"));
  EXPECT_THAT(placed(text, {std::nullopt, Device::cuda(1)}),
              HasSubstr("(%a: f32[8]@cuda:1, %b: f32[8]@cuda:1, %c: f32[8]@host:1)"));
  std::string same = textOf(parse(text));
  EXPECT_EQ(placed(text, {Device::cuda(2), Device::host()}), same);
  EXPECT_FALSE(changed);
}

// A copy between two devices that are one afterwards stays, and is legal.
TEST_F(PlaceTest, CopiesStay) {
  becomes("trace @f(%a: f32[8]) {\n  %b: f32[8]@cuda:0 = to_device(%a) {device = cuda:0}\n"
          "  %c: f32[8] = to_device(%b) {device = host}\n  return(%b, %c)\n}\n",
          "trace @f(%a: f32[8]) {\n  %b: f32[8] = to_device(%a) {device = host}\n"
          "  %c: f32[8] = to_device(%b) {device = host}\n  return(%b, %c)\n}\n",
          toHost);
}

// An op that makes something of nothing on the host, without saying so, says where when it moves;
// one whose operands say where does not.
TEST_F(PlaceTest, ImpliedHost) {
  becomes("trace @f(%a: f32[8]) {\n  %b: f32[8] = full() {dtype = f32, shape = [8], value = 0.0}\n"
          "  %c: f32[8] = add(%a, %b)\n  return(%c)\n}\n",
          "trace @f(%a: f32[8]@cuda:0) {\n  %b: f32[8]@cuda:0 = full() "
          "{device = cuda:0, dtype = f32, shape = [8], value = 0.0}\n"
          "  %c: f32[8]@cuda:0 = add(%a, %b)\n  return(%c)\n}\n",
          fromHost);
}

// Devices in lists of attributes move, those of ops that nobody knows too.
TEST_F(PlaceTest, ListsOfDevices) {
  becomes("trace @f(%a: f32[8]@cuda:0) {\n  %b: f32[8]@cuda:0 = mylib.spread(%a) "
          "{axes = [[1, 2], [cuda:0, cuda:1]]}\n  return(%b)\n}\n",
          "trace @f(%a: f32[8]) {\n  %b: f32[8] = mylib.spread(%a) "
          "{axes = [[1, 2], [host, host]]}\n  return(%b)\n}\n",
          toHost);
}

//===----------------------------------------------------------------------===//
// Real traces
//===----------------------------------------------------------------------===//

namespace {
class PlaceRealTracesTest : public PlaceTest, public ::testing::WithParamInterface<const char *> {
protected:
  TracePair import(llvm::StringRef name) {
    std::string path = testDataDir() + "/traces/" + name.str() + ".json";
    auto buffer = llvm::MemoryBuffer::getFile(path);
    if (!buffer)
      llvm::report_fatal_error(llvm::Twine(path) + ": " + buffer.getError().message());
    return llvm::cantFail(importFX((*buffer)->getBuffer(), path, registry));
  }
};
} // namespace

// PyTorch's programs verify on the other device; nothing but devices changed, so that placing them
// back gives the same text; and placing them twice is placing them once.
TEST_P(PlaceRealTracesTest, ThereAndBack) {
  TracePair imported = import(GetParam());
  std::string original = textOf(imported);
  bool isOnHost = original.find("cuda:0") == std::string::npos;
  PlaceOptions there = isOnHost ? fromHost : toHost, back = isOnHost ? toHost : fromHost;

  std::string moved = runPass(createPlacePass(there), std::move(imported));
  EXPECT_TRUE(changed);
  ASSERT_EQ(messageOf(verify(parse(moved))), "success");
  EXPECT_EQ(withoutDevices(moved), withoutDevices(original));
  EXPECT_NE(moved, original);
  EXPECT_EQ(placed(moved, there), moved);
  EXPECT_FALSE(changed);
  EXPECT_EQ(placed(moved, back), original);
}

INSTANTIATE_TEST_SUITE_P(All, PlaceRealTracesTest,
                         ::testing::Values("adam", "branchy", "convnet", "decode_tiny",
                                           "gpt2_small_bf16", "gpt_tiny", "gpt_tiny_checkpoint",
                                           "gpt_tiny_checkpoint_dropout", "gpt_tiny_dropout",
                                           "gpt_tiny_math", "llama_tiny", "llama_tiny_bf16", "mlp"),
                         [](const auto &info) { return std::string(info.param); });

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

// The device to leave is not the one to go to.
TEST_F(PlaceTest, OneDeviceTwice) {
  EXPECT_THAT(placed(onCUDA, {Device::cuda(0), Device::cuda(0)}),
              HasSubstr("expected two devices, got cuda:0 twice"));
}

// What two devices may do and one may not is for the verifier to find.
TEST_F(PlaceTest, GeneratorsThatBecomeOne) {
  llvm::StringRef text = "trace @f() {\n  generator_advance() {count = 1, device = cuda:0}\n"
                         "  generator_advance() {count = 1, device = cuda:1}\n  return()\n}\n";
  EXPECT_THAT(placed(text, {}), HasSubstr("generator 'default' is advanced twice in one body"));
  EXPECT_THAT(placed(text, {Device::cuda(0), Device::cuda(2)}), Not(HasSubstr("error:")));
}

// Claims are for devices: claimed traces are refused.
TEST_F(PlaceTest, ForbidsClaims) {
  EXPECT_THAT(placed("trace @f(%x: f32[8]@cuda:0) claimed {\n"
                     "  %y: f32[8]@cuda:0 = relu(%x) claim(\"host\")\n  return(%y)\n}\n",
                     toHost),
              HasSubstr("pass 'place' forbids 'claimed'"));
}
