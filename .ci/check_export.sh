#!/usr/bin/env bash
# Exports the shipped weights and runs every form with other programs: check_export.sh WORK.
# WORK is a folder for what is made; WORK/venv is used where there is one.
source "$(dirname "$0")/exports.sh"

[ -x "$work/venv/bin/pip" ] || python3 -m venv "$work/venv" || {
  debian_packages python3-venv
  python3 -m venv "$work/venv"
}
"$work/venv/bin/pip" install --quiet --disable-pip-version-check numpy onnx onnxruntime safetensors

cargo build --release --locked --quiet "${flags[@]}" --bin bufgym --example record_observations --example random_networks
rm -rf "$work"/exported "$work"/exported-early "$work"/recorded "$work"/recorded-early "$work"/random
"$target/bufgym" export --quiet --checkpoint "$early" --format all --out "$work/exported-early"
"$target/bufgym" export --checkpoint "$alpha" --format all --out "$work/exported"
"$target/examples/record_observations" "$work/recorded" 20 "$alpha"
"$target/examples/record_observations" "$work/recorded-early" 10 "$early"
"$target/examples/random_networks" "$work/random" 40

code="-Idataplane -I$work/exported/c $work/exported/c/ndt_f32.c dataplane/check_f32.c"
for compiler in gcc clang; do
  for build in "-O2" "$sanitized" "-O3 -march=native"; do
    echo "$compiler $build"
    # shellcheck disable=SC2086 # lists of arguments
    $compiler $strict $build $code -o "$work/check_f32"
    "$work/check_f32" "$work/exported/golden" 1 4 16 96
    "$work/check_f32" "$work/recorded" 16
    # shellcheck disable=SC2086 # lists of arguments
    $compiler $strict $build ${code//"$work/exported"/"$work/exported-early"} -o "$work/check_f32"
    "$work/check_f32" "$work/exported-early/golden" 1 4 16 96
    "$work/check_f32" dataplane/golden 1 4 16 96
    "$work/check_f32" "$work/recorded-early" 16
  done
done

"$work/venv/bin/python" .ci/check_export.py "$target/bufgym" "$alpha" "$work/exported" "$work/recorded" "$work/random" "$early" "$work/exported-early"
