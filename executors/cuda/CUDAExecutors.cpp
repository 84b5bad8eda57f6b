//===- CUDAExecutors.cpp - Who executes ops on a GPU ----------------------===//

#include "rondo/cuda/CUDAExecutors.h"

#include "rondo/cuda/CUDAExecutor.h"
#include "rondo/executors/ErrorText.h"

using namespace rondo;

llvm::Expected<std::vector<std::unique_ptr<Executor>>>
rondo::createCUDAExecutors(std::vector<std::string> *remarks) {
  std::vector<std::unique_ptr<Executor>> executors;
  llvm::Expected<std::unique_ptr<Executor>> cublas = createCuBLASExecutor();
  if (cublas) {
    executors.push_back(std::move(*cublas));
  } else {
    std::string why = errorText(cublas.takeError());
    if (remarks)
      remarks->push_back("executor 'cublas' is left out: " + why);
  }
  executors.push_back(std::make_unique<CUDAExecutor>());
  return executors;
}
