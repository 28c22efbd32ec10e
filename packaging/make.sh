#!/usr/bin/env bash
# Writes the man page and the shell completions that packages install, from the program's own definition of its arguments.
# A test fails when they are not current.
set -euo pipefail
cd "$(dirname "$0")/.."

inspect() { cargo run --quiet -- "$@"; }
share=packaging/wheel/data/share
inspect man > $share/man/man1/aoti-inspect.1
inspect completions bash > $share/bash-completion/completions/aoti-inspect
inspect completions zsh > $share/zsh/site-functions/_aoti-inspect
inspect completions fish > $share/fish/vendor_completions.d/aoti-inspect.fish
