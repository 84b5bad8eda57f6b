//===- Files.cpp - Reading traces, writing results --------------------------===//

#include "support/Files.h"

#include "rondo/ir/JSON.h"
#include "rondo/ir/Text.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace rondo;

static InputFormat detectFormat(llvm::StringRef text) {
  if (text.ltrim().take_front(1) != "{")
    return InputFormat::Text;
  return looksLikeFX(text) ? InputFormat::FX : InputFormat::JSON;
}

llvm::Expected<TracePair> rondo::readPair(llvm::StringRef path, InputFormat format,
                                          const OpRegistry &registry,
                                          std::vector<FXOutput> *outputs) {
  llvm::StringRef shownPath = path == "-" ? llvm::StringRef("<stdin>") : path;
  // A directory opens, and then reads as nothing on some systems.
  if (path != "-" && llvm::sys::fs::is_directory(path))
    return makeError(Location{shownPath.str(), 0, 0, ""}, "is a directory");
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(path);
  if (!buffer)
    return makeError(Location{shownPath.str(), 0, 0, ""},
                     "cannot be read: " + buffer.getError().message());
  llvm::StringRef text = (*buffer)->getBuffer();
  if (format == InputFormat::Auto)
    format = detectFormat(text);
  switch (format) {
  case InputFormat::JSON:
    return readJSON(text, shownPath, registry);
  case InputFormat::FX:
    return importFX(text, shownPath, registry, outputs);
  case InputFormat::Text:
  case InputFormat::Auto:
    break;
  }
  return parsePair(text, shownPath, registry);
}

static llvm::Error cannotWrite(llvm::StringRef path, const std::string &reason) {
  return makeError(Location{path.str(), 0, 0, ""}, "cannot be written: " + reason);
}

/// Writes to something that is there already and is no regular file: a terminal, a pipe, a device.
static llvm::Error writeThrough(llvm::raw_fd_ostream &os, llvm::StringRef path,
                                llvm::function_ref<void(llvm::raw_ostream &)> write) {
  write(os);
  os.flush();
  if (!os.has_error())
    return llvm::Error::success();
  std::string reason = os.error().message();
  os.clear_error(); // else the stream's destructor ends the process
  return cannotWrite(path, reason);
}

llvm::Error rondo::writeFile(llvm::StringRef path,
                             llvm::function_ref<void(llvm::raw_ostream &)> write) {
  if (path == "-")
    return writeThrough(llvm::outs(), "<stdout>", write);

  llvm::sys::fs::file_status status;
  if (!llvm::sys::fs::status(path, status) && llvm::sys::fs::is_directory(status))
    return cannotWrite(path, "is a directory");
  if (llvm::sys::fs::exists(status) && !llvm::sys::fs::is_regular_file(status)) {
    std::error_code code;
    llvm::raw_fd_ostream os(path, code, llvm::sys::fs::OF_None);
    if (code)
      return cannotWrite(path, code.message());
    return writeThrough(os, path, write);
  }

  llvm::Expected<llvm::sys::fs::TempFile> file =
      llvm::sys::fs::TempFile::create(path + ".tmp-%%%%%%%%");
  if (!file)
    return cannotWrite(path, llvm::toString(file.takeError()));
  llvm::raw_fd_ostream os(file->FD, /*shouldClose=*/false);
  if (llvm::Error error = writeThrough(os, path, write)) {
    llvm::consumeError(file->discard());
    return error;
  }
  if (llvm::Error error = file->keep(path)) {
    std::string reason = llvm::toString(std::move(error));
    llvm::consumeError(file->discard());
    return cannotWrite(path, reason);
  }
  return llvm::Error::success();
}
