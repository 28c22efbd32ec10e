#!/usr/bin/env bash
# Installs the aoti-inspect of this checkout unless one is on PATH. Adds it to PATH for the following steps.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if command -v aoti-inspect > /dev/null; then
  aoti-inspect --version
  exit 0
fi
root=${RUNNER_TOOL_CACHE:-$HOME/.cache}/aoti-inspect
cargo install --locked --path "$here" --root "$root"
printf '%s\n' "$root/bin" >> "${GITHUB_PATH:-/dev/null}"
"$root/bin/aoti-inspect" --version
