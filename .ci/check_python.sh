#!/usr/bin/env bash
# Builds the Python package, installs it into fresh virtual environments and runs its tests:
# check_python.sh WORK [packages]. WORK is a folder for what is made. With `packages` it only installs those of
# others, for a later call without it.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(realpath "$1")
root=$PWD
# The crates that the tests have compiled are taken from there.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}
# Ray talks to nobody but itself.
export RAY_USAGE_STATS_ENABLED=0

# part TITLE COMMAND...: runs it and prints the time taken.
part() {
  local title=$1 start=$SECONDS
  shift
  "$@"
  printf -- '-- %s: %d s\n' "$title" "$((SECONDS - start))"
}

# .ci/run hands on how it installs packages.
declare -F debian_packages > /dev/null || debian_packages() {
  echo "please install $*" >&2
  return 1
}

fresh() {
  python3 -m venv --clear "$1" || {
    debian_packages python3-venv
    python3 -m venv --clear "$1"
  }
}

# install ENVIRONMENT PACKAGE...: without compiling anything, neither now nor ahead of imports.
install() {
  "$1/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: --no-compile "${@:2}"
}

# Versions that belong together; those of other packages follow from them. ray[rllib] asks for exactly this gymnasium.
bare=(gymnasium==1.2.2 numpy==2.4.6)
all=("${bare[@]}" pyarrow==26.0.1 pettingzoo==1.27.0 torch==2.15.0 stable-baselines3==2.9.0 "ray[rllib]==2.60.0"
  safetensors==0.8.0 pytest==9.2.0 psutil==7.2.2 mypy==2.4.1)

# The crates that a command compiles, with their features.
selected() {
  cargo tree --locked "$@" --prefix none --format '{p}|{f}' | sed 's/ (\*)$//' | sort -u
}

# Fails for crates that the package compiles once more than the tests, because it selects other features of them.
features() {
  local others
  selected -e normal,build,dev > "$work/selected-by-tests"
  selected -p bufgym-python -e normal,build > "$work/selected-by-python"
  others=$(awk -F '|' 'NR == FNR { crates[$1]; seen[$0]; next } $1 in crates && !($0 in seen)' \
    "$work/selected-by-tests" "$work/selected-by-python")
  if [ -n "$others" ]; then
    printf 'the Python package selects other features than the tests (see the comment in Cargo.toml):\n%s\n' "$others" >&2
    return 1
  fi
}

build() {
  fresh "$work/python-build"
  install "$work/python-build" maturin==1.16.0
  rm -rf "$work/wheels"
  (cd python && "$work/python-build/bin/maturin" build --release --locked --out "$work/wheels")
  wheel=("$work"/wheels/bufgym-*.whl)
  stat --format '%n: %s bytes' "${wheel[0]}"
}

# With nothing but what the package needs, and without a compiler in sight.
bare_environment() {
  fresh "$work/python-bare"
  install "$work/python-bare" "${wheel[0]}" "${bare[@]}"
  (cd "$work" && env PATH=/nowhere "$work/python-bare/bin/python" - << 'PYTHON'
import gymnasium
env = gymnasium.make("bufgym:bufgym/NDT-16x1G-v0")
env.reset(seed=7)
print("a step:", env.step(env.action_space.sample())[1])
PYTHON
  )
  "$work/python-bare/bin/bufgym" sim --policy dt --set flows=50..50
}

packages() {
  fresh "$work/python-all"
  install "$work/python-all" "${all[@]}"
  touch "$work/python-all/fresh"
}

whole_environment() {
  [ -e "$work/python-all/fresh" ] || packages
  rm "$work/python-all/fresh"
  install "$work/python-all" "${wheel[0]}"
}

types() {
  "$work/python-all/bin/python" -m mypy.stubtest --ignore-missing-stub bufgym._native
  "$work/python-all/bin/mypy" --config-file "$root/python/pyproject.toml" -p bufgym
}

if [ "${2:-}" = packages ]; then
  part "packages" packages
  exit
fi
part "features" features
part "wheel" build
part "an environment with nothing else" bare_environment
part "an environment with everything" whole_environment
# The package is the one that was installed, not the folder of its sources.
cd "$work"
part "tests" "$work/python-all/bin/pytest" -q "$root/python/tests" -p no:cacheprovider --durations 5
part "types" types
for example in "$root"/python/examples/*.py; do
  part "${example#"$root"/}" "$work/python-all/bin/python" "$example"
done
part "pages" env -C "$root" "$work/python-all/bin/python" .ci/check_pages.py README.md docs/tutorial.md
part "speed" "$work/python-all/bin/python" "$root/python/benchmarks/steps.py" --rounds 1 --seconds 0.2
