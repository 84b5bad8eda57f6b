# Finds LLVM (14 or newer) and defines `rondo::llvm`: LLVMSupport, its headers as system headers,
# its definitions. Used by the build and, installed, by rondoConfig.cmake.
#
# LLVM's own package compares major.minor exactly, so the version is checked here. Of several
# installed versions LLVM_DIR picks one; without it 14, the oldest that is supported, is preferred.
# RONDO_LLVM_HINTS may name more folders to look in first.

if(NOT TARGET rondo::llvm)
  find_package(LLVM REQUIRED CONFIG HINTS ${RONDO_LLVM_HINTS} /usr/lib/llvm-14/lib/cmake/llvm)
  if(LLVM_VERSION_MAJOR LESS 14)
    message(FATAL_ERROR
      "rondo needs LLVM 14 or newer; ${LLVM_DIR} is ${LLVM_PACKAGE_VERSION}. "
      "Set LLVM_DIR to the folder of a newer LLVMConfig.cmake.")
  endif()
  if(NOT LLVM_ENABLE_RTTI)
    message(FATAL_ERROR
      "rondo needs an LLVM that was built with LLVM_ENABLE_RTTI=ON; ${LLVM_DIR} was not.")
  endif()

  separate_arguments(RONDO_LLVM_DEFINITIONS NATIVE_COMMAND "${LLVM_DEFINITIONS}")
  list(TRANSFORM RONDO_LLVM_DEFINITIONS REPLACE "^-D" "")
  add_library(rondo::llvm INTERFACE IMPORTED GLOBAL)
  target_include_directories(rondo::llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
  target_compile_definitions(rondo::llvm INTERFACE ${RONDO_LLVM_DEFINITIONS})
  target_link_libraries(rondo::llvm INTERFACE LLVMSupport)
  unset(RONDO_LLVM_DEFINITIONS)
endif()
