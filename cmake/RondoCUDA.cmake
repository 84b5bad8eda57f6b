# Finds the CUDA toolkit and cuDNN's header, and sets RONDO_HAS_CUDA and RONDO_HAS_CUDNN.
#
# RONDO_CUDA  AUTO: build the CUDA part where there is a toolkit, 12.4 or newer; ON: fail without one; OFF
#
# Kernels are built for the architectures in CMAKE_CUDA_ARCHITECTURES: by default for compute
# capability 8.0 and 9.0, and as PTX for later ones. No GPU and no driver is needed to build.
#
# The executor `cudnn` is built where the headers of cuDNN 9.11 or a newer 9 are beside the toolkit's or
# where RONDO_CUDNN_INCLUDE_DIR says. The library itself is looked for when a program runs.

set(RONDO_CUDA AUTO CACHE STRING "Build the CUDA part: AUTO, ON or OFF")
set_property(CACHE RONDO_CUDA PROPERTY STRINGS AUTO ON OFF)
set(RONDO_HAS_CUDA OFF)
set(RONDO_HAS_CUDNN OFF)

if(RONDO_CUDA)
  find_package(CUDAToolkit 12.4 QUIET)
  include(CheckLanguage)
  if(CUDAToolkit_FOUND)
    if(NOT CMAKE_CUDA_COMPILER AND CUDAToolkit_NVCC_EXECUTABLE)
      set(CMAKE_CUDA_COMPILER "${CUDAToolkit_NVCC_EXECUTABLE}")
    endif()
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES "80-real;90" CACHE STRING "GPU architectures to build for")
    endif()
    check_language(CUDA)
  endif()
  if(CUDAToolkit_FOUND AND CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    set(RONDO_HAS_CUDA ON)
    message(STATUS "CUDA ${CUDAToolkit_VERSION}, for ${CMAKE_CUDA_ARCHITECTURES}")
  elseif(NOT RONDO_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "rondo: RONDO_CUDA is ${RONDO_CUDA} and there is no CUDA toolkit, 12.4 or "
      "newer: install one, set CUDAToolkit_ROOT, or build with RONDO_CUDA=OFF.")
  else()
    message(STATUS "No CUDA toolkit, 12.4 or newer: building for the host device alone")
  endif()
endif()

if(RONDO_HAS_CUDA)
  find_path(RONDO_CUDNN_INCLUDE_DIR cudnn_graph.h HINTS ${CUDAToolkit_INCLUDE_DIRS}
    DOC "Where cudnn_graph.h is, for the executor cudnn")
  mark_as_advanced(RONDO_CUDNN_INCLUDE_DIR)
  set(cudnn_version 0)
  if(EXISTS "${RONDO_CUDNN_INCLUDE_DIR}/cudnn_version.h")
    file(STRINGS "${RONDO_CUDNN_INCLUDE_DIR}/cudnn_version.h" cudnn_version
      REGEX "^#define CUDNN_(MAJOR|MINOR) ")
    string(REGEX REPLACE "#define CUDNN_[A-Z]+ +" "" cudnn_version "${cudnn_version}")
    list(JOIN cudnn_version "." cudnn_version)
  endif()
  if(cudnn_version VERSION_GREATER_EQUAL 9.11 AND cudnn_version VERSION_LESS 10)
    set(RONDO_HAS_CUDNN ON)
  else()
    message(STATUS "No headers of cuDNN 9, 9.11 or newer: building without the executor cudnn")
  endif()
endif()
