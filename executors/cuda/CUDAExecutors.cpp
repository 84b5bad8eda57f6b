//===- CUDAExecutors.cpp - Who executes ops on a GPU ----------------------===//

#include "rondo/cuda/CUDAExecutors.h"

#include "rondo/cuda/CUDAExecutor.h"
#include "rondo/executors/ErrorText.h"

using namespace rondo;

llvm::Expected<std::vector<std::unique_ptr<Executor>>>
rondo::createCUDAExecutors(std::vector<std::string> *remarks) {
  std::vector<std::unique_ptr<Executor>> executors;
  auto add = [&](llvm::StringRef name, llvm::Expected<std::unique_ptr<Executor>> executor) {
    if (executor) {
      executors.push_back(std::move(*executor));
      return;
    }
    std::string why = errorText(executor.takeError());
    if (remarks)
      remarks->push_back("executor '" + name.str() + "' is left out: " + why);
  };
  add("cudnn", createCuDNNExecutor());
  add("cublas", createCuBLASExecutor());
  executors.push_back(std::make_unique<CUDAExecutor>());
  return executors;
}
