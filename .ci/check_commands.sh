#!/usr/bin/env bash
# Runs the shell blocks of README and docs in a copy of the checkout, page by page: check_commands.sh WORK.
# Blocks tagged ```sh,no_run take too long or need another machine. Training, tests and pip have sections of their own.
set -euo pipefail
cd "$(dirname "$0")/.."
copy=$1/pages
export PATH="$PWD/target/release:$PATH" CARGO_TARGET_DIR="$PWD/target"
for page in README.md docs/*.md; do
  commands=$(awk '/^```/ { inside = ($0 == "```sh"); next } inside' "$page" | grep -vE '^(cargo (train|test)|pip) ') ||
    continue
  # In a page, blocks follow each other and may use each other's files.
  rm -rf "$copy"
  mkdir -p "$copy"
  git ls-files -z | tar --create --null --files-from - | tar --extract --directory "$copy"
  echo "$commands" > "$copy/commands"
  start=$SECONDS
  (cd "$copy" && bash -euo pipefail commands > output 2>&1) || {
    cat "$copy/output"
    echo "$page: a command failed" >&2
    exit 1
  }
  printf -- '-- %s: %d commands, %d s\n' "$page" "$(wc -l < "$copy/commands")" "$((SECONDS - start))"
done
