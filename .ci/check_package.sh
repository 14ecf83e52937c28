#!/usr/bin/env bash
# Packs every crate that can be published and checks what is in the packages: check_package.sh [WORK].
# With WORK, a folder for what is made, the program is built from the packages alone, and run.
set -euo pipefail
cd "$(dirname "$0")/.."

# `publish = false` becomes an empty list of registries.
names() {
  cargo metadata --no-deps --locked --format-version 1 | python3 -c 'import json, sys
for package in json.load(sys.stdin)["packages"]:
    if (package["publish"] == []) == (sys.argv[1] == "private"):
        print(package["name"])' "$1"
}

excluded=()
for name in $(names private); do
  excluded+=(--exclude "$name")
done
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
rm -f "$target"/package/bufgym*.crate
cargo package --workspace "${excluded[@]}" --no-verify --locked --allow-dirty --quiet
python3 .ci/check_package.py "$target/package"
[ "$#" -gt 0 ] || exit 0

# `cargo package` itself would build every package without optimisation, and Burn once more with them. Here
# what is compiled of other crates is used again; ours have the same names as in the packages, and must not be.
rm -rf "$1/packages" "$1/packages-target"
mkdir -p "$1/packages" "$1/packages-target"
if [ -d "$target/release" ]; then
  cp -a "$target/release" "$1/packages-target/"
  rm -rf "$1"/packages-target/release/{.cargo-lock,examples} \
    "$1"/packages-target/release/{.fingerprint,build,deps,.}/{,lib}bufgym*
fi
patches=()
for name in $(names public); do
  tar -xzf "$target/package/$name"-[0-9]*.crate -C "$1/packages"
  [ "$name" = bufgym ] ||
    patches+=(--config "patch.crates-io.$name.path='$(realpath "$1/packages/$name"-[0-9]*)'")
done
export CARGO_TARGET_DIR
CARGO_TARGET_DIR=$(realpath "$1/packages-target")
cd "$1"/packages/bufgym-[0-9]*
cargo build --release --quiet "${patches[@]}" --bin bufgym --features onnx
"$CARGO_TARGET_DIR/release/bufgym" --version
# With the weights, the rule and the parameters inside it.
for policy in ndt linear dt+red:tuned; do
  "$CARGO_TARGET_DIR/release/bufgym" sim --policy "$policy"
done
