# Builds the project PROJECT in the folder WORK and runs its program PROGRAM, which must succeed.
#
# With RONDO_BUILD, that build of rondo is installed first, into a prefix that is moved before use:
# a package must not depend on where it was installed. Otherwise the project gets RONDO_SOURCE and
# LLVM_DIR, to use rondo as a subfolder.

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "exit status ${result}: ${command}")
  endif()
endfunction()

if(RONDO_BUILD)
  file(REMOVE_RECURSE "${WORK}")
  run("${CMAKE_COMMAND}" --install "${RONDO_BUILD}" --prefix "${WORK}/staging")
  file(RENAME "${WORK}/staging" "${WORK}/prefix")
  set(how "-DCMAKE_PREFIX_PATH=${WORK}/prefix")
else()
  set(how "-DRONDO_SOURCE=${RONDO_SOURCE}" "-DLLVM_DIR=${LLVM_DIR}" "-DRONDO_CUDA=OFF")
endif()

run("${CMAKE_COMMAND}" -S "${PROJECT}" -B "${WORK}/build" -G "${GENERATOR}"
  "-DCMAKE_C_COMPILER=${C_COMPILER}"
  "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}"
  "-DCMAKE_CXX_COMPILER_LAUNCHER=${CXX_COMPILER_LAUNCHER}"
  "-DCMAKE_BUILD_TYPE=${BUILD_TYPE}"
  "-DCMAKE_RUNTIME_OUTPUT_DIRECTORY=${WORK}/bin"
  ${how})
run("${CMAKE_COMMAND}" --build "${WORK}/build" --target "${PROGRAM}")
run("${WORK}/bin/${PROGRAM}")
