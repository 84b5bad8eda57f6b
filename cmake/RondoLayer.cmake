# rondo_add_layer(<name> [FOLDER <folder>] [PUBLIC <target>...] [PRIVATE <target>...])
#
# Defines the static library `rondo_<name>`, alias `rondo::<name>`, of `<folder>/*.cpp` (default:
# `<name>`), with `<folder>/include` as its only include folder. PUBLIC are the layers and libraries that its headers
# may include; PRIVATE ones are for its sources only and must be header-only: users of an
# installed rondo do not need them. A folder without sources gives a header-only target.
function(rondo_add_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FOLDER" "PUBLIC;PRIVATE")
  set(target rondo_${name})
  set(folder ${name})
  if(arg_FOLDER)
    set(folder "${arg_FOLDER}")
  endif()
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*.cpp")

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
