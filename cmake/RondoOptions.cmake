# Options of the build, and `rondo_configure_target`, which applies them to a target of ours.

option(RONDO_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(RONDO_BUILD_TOOLS "Build the command-line tools" ${PROJECT_IS_TOP_LEVEL})
option(RONDO_BUILD_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(RONDO_BUILD_BENCHMARKS "Build the benchmarks" ${PROJECT_IS_TOP_LEVEL})
option(RONDO_BUILD_FUZZERS "Build the libFuzzer targets, and all code for them (clang only)" OFF)
option(RONDO_INSTALL "Define what 'cmake --install' installs" ${PROJECT_IS_TOP_LEVEL})
option(RONDO_WERROR "Treat warnings as errors" ${PROJECT_IS_TOP_LEVEL})
option(RONDO_PRECOMPILE_HEADERS "Precompile the headers that most sources include" OFF)
option(RONDO_COVERAGE "Instrument for source-based coverage (clang only)" OFF)
set(RONDO_TEST_SHARDS 0 CACHE STRING
  "Number of CTest tests that each GoogleTest executable is run as; 0: one for each of its cases")
set(RONDO_SANITIZE "" CACHE STRING
  "Sanitizers to build with: 'address,undefined', 'thread', or empty for none")
set_property(CACHE RONDO_SANITIZE PROPERTY STRINGS "" "address,undefined" "thread")

if(RONDO_BUILD_FUZZERS AND NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "RONDO_BUILD_FUZZERS needs clang++, the compiler is ${CMAKE_CXX_COMPILER_ID}")
endif()
if(RONDO_COVERAGE AND NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "RONDO_COVERAGE needs clang++, the compiler is ${CMAKE_CXX_COMPILER_ID}")
endif()

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")

if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Type of build" FORCE)
  endif()
  find_program(RONDO_CCACHE ccache)
  mark_as_advanced(RONDO_CCACHE)
  if(RONDO_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER "${RONDO_CCACHE}")
    set(CMAKE_CUDA_COMPILER_LAUNCHER "${RONDO_CCACHE}")
  endif()
endif()

# Warnings, sanitizers and coverage for one target that this project compiles. What the sanitizer
# and coverage runtimes need at link time is passed on to whatever links the target.
function(rondo_configure_target target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES
    CXX_EXTENSIONS OFF
    POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra>)
  if(RONDO_HAS_CUDA)
    # CMake 3.25 does not know that nvcc compiles C++20.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:
      -std=c++20;--expt-relaxed-constexpr;-Xcompiler=-Wall,-Wextra>)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ 12 is wrong about these when it optimises: the first in llvm::SmallDenseMap, the others in
    # std::string's operator+.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:
      -Wno-maybe-uninitialized;-Wno-restrict;-Wno-stringop-overflow;-Wno-array-bounds>)
    # With strict aliasing, g++ 12 at -O2 drops the store that empties an llvm::Expected when a pointer
    # is moved out of it into an llvm::SmallVector: what it counts is released twice.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-strict-aliasing>)
  endif()
  if(RONDO_WERROR)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
  endif()
  if(RONDO_PRECOMPILE_HEADERS)
    # Half of the time of a build goes into these. That every header includes what it needs is
    # tested apart (tests/layering, tests/embedding).
    foreach(header IN ITEMS
        algorithm functional map memory optional string variant vector
        llvm/ADT/DenseMap.h llvm/ADT/DenseSet.h llvm/ADT/STLExtras.h
        llvm/ADT/SmallVector.h llvm/ADT/StringExtras.h llvm/ADT/StringMap.h
        llvm/ADT/StringSet.h llvm/Support/Error.h llvm/Support/raw_ostream.h)
      target_precompile_headers(${target} PRIVATE
        "$<$<COMPILE_LANGUAGE:CXX>:<${header}$<ANGLE-R>>")
    endforeach()
  endif()
  if(RONDO_SANITIZE)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:
      -fsanitize=${RONDO_SANITIZE};-fno-sanitize-recover=all;-fno-omit-frame-pointer>)
    target_link_options(${target} PUBLIC -fsanitize=${RONDO_SANITIZE})
  endif()
  if(RONDO_BUILD_FUZZERS)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=fuzzer-no-link>)
    target_link_options(${target} PUBLIC -fsanitize=fuzzer-no-link)
  endif()
  if(RONDO_COVERAGE)
    target_compile_options(${target} PRIVATE
      $<$<COMPILE_LANGUAGE:CXX>:-fprofile-instr-generate;-fcoverage-mapping>)
    target_link_options(${target} PUBLIC -fprofile-instr-generate)
  endif()
endfunction()
