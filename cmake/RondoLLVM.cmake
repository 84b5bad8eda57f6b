# Finds LLVM (14 or newer) and defines `rondo::llvm`: LLVMSupport, its headers as system headers,
# its definitions. Used by the build and, installed, by rondoConfig.cmake.
#
# In:  RONDO_LLVM_HINTS    folders to look in before the usual places
#      RONDO_LLVM_VERSION  the version that an installed rondo was built with: major and minor must
#                          be the same
# Out: RONDO_LLVM_PROBLEM  empty, or why `rondo::llvm` is not defined, for people
#
# LLVM's own package compares major.minor exactly, so the version is checked here. Of several
# installed versions LLVM_DIR picks one; without it 14, the oldest that is supported, is preferred.

set(RONDO_LLVM_PROBLEM "")
get_property(RONDO_LLVM_LANGUAGES GLOBAL PROPERTY ENABLED_LANGUAGES)
if(NOT "C" IN_LIST RONDO_LLVM_LANGUAGES)
  set(RONDO_LLVM_PROBLEM
    "LLVM's package needs the language C: write 'project(<name> LANGUAGES C CXX)'.")
else()
  if(DEFINED RONDO_LLVM_VERSION)
    string(REGEX MATCH "^[0-9]+" RONDO_LLVM_MAJOR "${RONDO_LLVM_VERSION}")
  else()
    set(RONDO_LLVM_MAJOR 14)
  endif()
  find_package(LLVM QUIET CONFIG HINTS
    ${RONDO_LLVM_HINTS} "/usr/lib/llvm-${RONDO_LLVM_MAJOR}/lib/cmake/llvm")
  if(NOT LLVM_FOUND)
    set(RONDO_LLVM_PROBLEM
      "LLVM was not found: install llvm-${RONDO_LLVM_MAJOR}-dev or set LLVM_DIR to the folder of \
LLVMConfig.cmake.")
  elseif(LLVM_VERSION_MAJOR LESS 14)
    set(RONDO_LLVM_PROBLEM
      "LLVM 14 or newer is needed and ${LLVM_DIR} is ${LLVM_PACKAGE_VERSION}: set LLVM_DIR to the \
folder of a newer LLVMConfig.cmake.")
  elseif(DEFINED RONDO_LLVM_VERSION AND
         NOT RONDO_LLVM_VERSION MATCHES "^${LLVM_VERSION_MAJOR}\\.${LLVM_VERSION_MINOR}(\\.|$)")
    set(RONDO_LLVM_PROBLEM
      "it was built with LLVM ${RONDO_LLVM_VERSION} and ${LLVM_DIR} is ${LLVM_PACKAGE_VERSION}: set \
LLVM_DIR to the folder of the same version's LLVMConfig.cmake.")
  elseif(NOT LLVM_ENABLE_RTTI)
    set(RONDO_LLVM_PROBLEM
      "an LLVM built with LLVM_ENABLE_RTTI=ON is needed and ${LLVM_DIR} was built without.")
  elseif(NOT TARGET rondo::llvm)
    separate_arguments(RONDO_LLVM_DEFINITIONS NATIVE_COMMAND "${LLVM_DEFINITIONS}")
    list(TRANSFORM RONDO_LLVM_DEFINITIONS REPLACE "^-D" "")
    add_library(rondo::llvm INTERFACE IMPORTED GLOBAL)
    target_include_directories(rondo::llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
    target_compile_definitions(rondo::llvm INTERFACE ${RONDO_LLVM_DEFINITIONS})
    target_link_libraries(rondo::llvm INTERFACE LLVMSupport)
    unset(RONDO_LLVM_DEFINITIONS)
  endif()
  unset(RONDO_LLVM_MAJOR)
endif()
unset(RONDO_LLVM_LANGUAGES)
