# What the scripts that check exports have in common; sourced with WORK, a folder for what is made.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
work=$1
mkdir -p "$work"

# .ci/run hands on how it installs packages.
declare -F debian_packages > /dev/null || debian_packages() {
  echo "please install $*" >&2
  return 1
}
command -v gcc > /dev/null && command -v clang > /dev/null || debian_packages gcc clang libc6-dev
# clang's sanitizers are a package of their own, with its version in the name.
echo 'int main(void) { return 0; }' > "$work/empty.c"
clang -fsanitize=address,undefined "$work/empty.c" -o "$work/empty" 2> /dev/null ||
  debian_packages "libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev"

strict="-std=c99 -Wall -Wextra -Werror -pedantic"
sanitized="-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all"
# Networks that set alpha alone, and early drop besides.
alpha=checkpoints/ndt-fct-alpha
early=checkpoints/ndt-fct
# What CARGO_FLAGS says is added, so that a build with other settings can be checked.
read -r -a flags <<< "${CARGO_FLAGS:-}"
target=${CARGO_TARGET_DIR:-target}/release
