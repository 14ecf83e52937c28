#!/usr/bin/env bash
# Real TCP through the software switch, and what is left when its parts are killed: check_testbed.sh. Needs
# root, or user namespaces, and says so where it has neither.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v ip > /dev/null || ! command -v tc > /dev/null; then
  debian_packages iproute2
fi

# In a namespace of its own interfaces of this machine are out of reach.
if unshare --net true 2> /dev/null; then
  inside=(unshare --net)
elif unshare --user --map-root-user --net true 2> /dev/null; then
  inside=(unshare --user --map-root-user --net)
else
  echo "not run: this machine allows neither network namespaces nor user namespaces ($(unshare --net true 2>&1 || true))"
  exit 0
fi

cargo test --release --locked --test cli --no-run
"${inside[@]}" cargo test --release --locked --offline --test cli -- --ignored --test-threads=1 testbed::
