#!/usr/bin/env bash
# Builds the Python package, installs it into fresh virtual environments and runs its tests:
# check_python.sh WORK. WORK is a folder for what is made.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(realpath "$1")
root=$PWD
# The crates that the tests have compiled are taken from there.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}

fresh() {
  python3 -m venv --clear "$1" || {
    debian_packages python3-venv
    python3 -m venv --clear "$1"
  }
}

# Versions that belong together; those of other packages follow from them.
build=(maturin==1.16.0)
bare=(gymnasium==1.2.2 numpy==2.4.6)
all=("${bare[@]}" pyarrow==26.0.1 pettingzoo==1.27.0 torch==2.15.0 stable-baselines3==2.9.0 pytest==9.2.0 psutil==7.2.2 mypy==2.4.1 ray==2.60.0)

fresh "$work/python-build"
"$work/python-build/bin/pip" install --quiet --disable-pip-version-check "${build[@]}"
rm -rf "$work/wheels"
(cd python && "$work/python-build/bin/maturin" build --release --locked --out "$work/wheels")
wheel=("$work"/wheels/bufgym-*.whl)
stat --format '%n: %s bytes' "${wheel[0]}"

# With nothing but what the package needs, and without a compiler in sight.
fresh "$work/python-bare"
"$work/python-bare/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: "${wheel[0]}" "${bare[@]}"
(cd "$work" && env PATH=/nowhere "$work/python-bare/bin/python" - <<'PYTHON'
import gymnasium
env = gymnasium.make("bufgym:bufgym/NDT-16x1G-v0")
env.reset(seed=7)
print("a step:", env.step(env.action_space.sample())[1])
PYTHON
)
"$work/python-bare/bin/bufgym" sim --policy dt --set flows=50..50

fresh "$work/python-all"
"$work/python-all/bin/pip" install --quiet --disable-pip-version-check "${wheel[0]}" "${all[@]}"
# The package is the one that was installed, not the folder of its sources.
cd "$work"
"$work/python-all/bin/pytest" -q "$root/python/tests" -p no:cacheprovider
"$work/python-all/bin/python" -m mypy.stubtest --ignore-missing-stub bufgym._native
"$work/python-all/bin/mypy" --strict --ignore-missing-imports -p bufgym
for example in "$root"/python/examples/*.py; do
  echo "${example#"$root"/}"
  "$work/python-all/bin/python" "$example"
done
"$work/python-all/bin/python" "$root/python/benchmarks/steps.py" --rounds 3 --seconds 0.5
