# rondo_add_layer(<name> [FOLDER <folder>] [SOURCES <folder>] [PUBLIC <target>...] [PRIVATE <target>...])
#
# Defines the static library `rondo_<name>`, alias `rondo::<name>`, of the *.cpp, and with CUDA the
# *.cu, in SOURCES (default: FOLDER, whose default is `<name>`), with `<folder>/include` as its only
# include folder. PUBLIC are the layers and libraries that its headers may include, or that what links
# it needs; PRIVATE ones are for its sources only and must be header-only: users of an installed rondo
# do not need them. A folder without sources gives a header-only target.
function(rondo_add_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FOLDER;SOURCES" "PUBLIC;PRIVATE")
  set(target rondo_${name})
  set(folder ${name})
  if(arg_FOLDER)
    set(folder "${arg_FOLDER}")
  endif()
  set(source_folder "${PROJECT_SOURCE_DIR}/${folder}")
  if(arg_SOURCES)
    set(source_folder "${PROJECT_SOURCE_DIR}/${arg_SOURCES}")
  endif()
  set(patterns "${source_folder}/*.cpp")
  if(RONDO_HAS_CUDA)
    list(APPEND patterns "${source_folder}/*.cu")
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})

  if(sources)
    add_library(${target} STATIC ${sources})
    set(scope PUBLIC)
    rondo_configure_target(${target})
    foreach(library IN LISTS arg_PRIVATE)
      target_link_libraries(${target} PRIVATE "$<BUILD_INTERFACE:${library}>")
    endforeach()
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
    target_compile_features(${target} INTERFACE cxx_std_20)
  endif()

  add_library(rondo::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name}
    RONDO_FOLDER "${folder}")
  target_include_directories(${target} ${scope}
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/${folder}/include>"
    "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
  target_link_libraries(${target} ${scope} ${arg_PUBLIC})
  set_property(GLOBAL APPEND PROPERTY RONDO_LAYERS ${name})
endfunction()
