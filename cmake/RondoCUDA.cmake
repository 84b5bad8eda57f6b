# Finds the CUDA toolkit and sets RONDO_HAS_CUDA.
#
# RONDO_CUDA  AUTO: build the CUDA part where there is a toolkit, 12.4 or newer; ON: fail without one; OFF
#
# Kernels are built for the architectures in CMAKE_CUDA_ARCHITECTURES: by default for compute
# capability 8.0 and 9.0, and as PTX for later ones. No GPU and no driver is needed to build.

set(RONDO_CUDA AUTO CACHE STRING "Build the CUDA part: AUTO, ON or OFF")
set_property(CACHE RONDO_CUDA PROPERTY STRINGS AUTO ON OFF)
set(RONDO_HAS_CUDA OFF)

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
