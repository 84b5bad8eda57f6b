//===- SharedLibrary.cpp - Libraries that are loaded at run time ----------===//

#include "SharedLibrary.h"

#include "rondo/executors/DeviceError.h"

#include <dlfcn.h>

using namespace rondo;
using namespace rondo::cuda;

llvm::Expected<SharedLibrary> SharedLibrary::open(llvm::StringRef name,
                                                  llvm::ArrayRef<std::string> files) {
  std::string why;
  for (const std::string &file : files) {
    if (void *handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL))
      return SharedLibrary(handle, file);
    const char *answer = dlerror();
    why += why.empty() ? "" : "; ";
    why += answer ? answer : file;
  }
  return makeDeviceError(DeviceErrorKind::InvalidArgument, name + " is not found: " + why);
}

void *SharedLibrary::lookUp(const char *symbol) {
  void *function = dlsym(handle_, symbol);
  if (!function && !missing_)
    missing_ = symbol;
  return function;
}

llvm::Error SharedLibrary::checkFound() const {
  if (!missing_)
    return llvm::Error::success();
  return makeDeviceError(DeviceErrorKind::InvalidArgument,
                         "the '" + file_ + "' that was found has no '" + missing_ + "'");
}
