//===- main.cpp - Dumping traces as JSON around passes ----------------------===//
//
// Writes NN-before.json and NN-after.json for every pass of a pipeline into a folder (default:
// json_dump), and reads every file back to show that nothing is lost.
//
//===----------------------------------------------------------------------===//

#include "rondo/ir/CoreOps.h"
#include "rondo/ir/JSON.h"
#include "rondo/ir/Text.h"
#include "rondo/passes/PassRegistry.h"
#include "rondo/passes/TableClaimSource.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace rondo;

static const char *const source = R"(
pair @square {
  forward @forward(%x: f32[8, 8], %w: f32[8, 8] parameter path "w") {
    %t: f32[8, 8; 1, 8] = permute(%w) {dims = [1, 0]}
    %y: f32[8, 8] = mm(%x, %t)
    %z: f32[8, 8] = mul(%y, %y)
    return(%z, %x saved #0, %y saved #1)
  }
  backward @backward(%x: f32[8, 8] saved #0, %y: f32[8, 8] saved #1, %g: f32[8, 8]) {
    %a: f32[8, 8] = mul(%g, %y)
    %b: f32[8, 8] = mul(%a) {scalar = 2}
    %u: f32[8, 8; 1, 8] = permute(%b) {dims = [1, 0]}
    %w_grad: f32[8, 8] = mm(%u, %x)
    return(none, %w_grad)
  }
}
)";

static std::string textOf(const TracePair &pair) {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(pair, os);
  return os.str();
}

/// Returns false, with a message, if the file cannot be written or does not read back as the same
/// pair.
static bool dump(const TracePair &pair, const std::string &path) {
  std::error_code code;
  {
    llvm::raw_fd_ostream os(path, code);
    if (!code)
      writeJSON(pair, os);
  }
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (code || !buffer) {
    llvm::errs() << path << ": " << (code ? code : buffer.getError()).message() << '\n';
    return false;
  }
  llvm::Expected<TracePair> again =
      readJSON((*buffer)->getBuffer(), path, pair.forward().registry());
  if (!again) {
    llvm::logAllUnhandledErrors(again.takeError(), llvm::errs());
    return false;
  }
  llvm::outs() << path << ": " << (*buffer)->getBufferSize() << " bytes\n";
  return textOf(*again) == textOf(pair);
}

int main(int argc, char **argv) {
  const std::string folder = argc > 1 ? argv[1] : "json_dump";
  if (std::error_code code = llvm::sys::fs::create_directories(folder)) {
    llvm::errs() << folder << ": " << code.message() << '\n';
    return 1;
  }
  OpRegistry registry;
  llvm::cantFail(registerCoreOps(registry));
  TableClaimSource host = makeHostClaimTable(registry);
  PassRegistry passes;
  llvm::cantFail(registerPasses(passes, {&host}));
  PassManager manager;
  llvm::cantFail(passes.parsePipeline("dce,cse,execution,cuda-graph,del", manager));

  bool ok = true;
  unsigned step = 0;
  manager.addObserver([&](const Pass &pass, const TracePair &pair, bool isBefore) {
    step += isBefore;
    ok &= dump(pair, folder + "/" + std::to_string(step) + "-" + pass.name().str() +
                         (isBefore ? "-before.json" : "-after.json"));
  });
  llvm::Expected<TracePair> pair = parsePair(source, "square.trace", registry);
  if (pair)
    pair = manager.run(std::move(*pair));
  if (!pair) {
    llvm::logAllUnhandledErrors(pair.takeError(), llvm::errs());
    return 1;
  }
  return ok ? 0 : 1;
}
