# SPDX-License-Identifier: Apache-2.0
# Shared by the scripts beside it; read with `.` from the root of the checkout.

# Configures a preset into build/<preset>. Further arguments go to CMake. Quiet unless it fails.
configure() {
  preset=$1
  shift
  command -v ninja >/dev/null || set -- -G "Unix Makefiles" "$@"
  mkdir -p build
  cmake --preset "$preset" "$@" >"build/configure-$preset.log" 2>&1 || {
    cat "build/configure-$preset.log" >&2
    return 1
  }
}

# Builds targets of a configured preset: build PRESET [TARGET...]. A no-change build prints one line.
build() {
  preset=$1
  shift
  [ $# -eq 0 ] || set -- --target "$@"
  cmake --build "build/$preset" --parallel "$(nproc)" "$@"
}
