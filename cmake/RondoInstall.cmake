# Installs every layer, its headers and the package that `find_package(rondo)` reads.

include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/rondo")
get_property(layers GLOBAL PROPERTY RONDO_LAYERS)
foreach(layer IN LISTS layers)
  install(TARGETS rondo_${layer} EXPORT rondoTargets
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  get_target_property(folder rondo_${layer} RONDO_FOLDER)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/${folder}/include/"
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
    FILES_MATCHING PATTERN "*.h")
endforeach()
install(EXPORT rondoTargets NAMESPACE rondo:: DESTINATION "${package_dir}")

configure_package_config_file(cmake/rondoConfig.cmake.in "${PROJECT_BINARY_DIR}/rondoConfig.cmake"
  INSTALL_DESTINATION "${package_dir}")
# Before 1.0 a minor version may change the API.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/rondoConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/rondoConfig.cmake"
  "${PROJECT_BINARY_DIR}/rondoConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/RondoLLVM.cmake"
  DESTINATION "${package_dir}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
