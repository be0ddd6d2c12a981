#!/bin/bash
# Compares hotspan with torch.profiler on a GPU and prints one table. Takes a wheel built elsewhere (maturin build --release);
# needs torch, a C++ compiler and a GPU; no network, no cargo.
#
# Usage: bench/gpu/run.sh WHEEL [--json FILE] [--only parity|overhead] [--budget SECONDS]
set -euo pipefail
if [ $# -lt 1 ] || [ ! -f "$1" ]; then
    sed -n '2,5s/^# \?//p' "$0" >&2
    exit 2
fi
wheel=$1
shift
site=$(mktemp -d)
trap 'rm -rf "$site"' EXIT
python3 -m pip install --quiet --target "$site" --no-deps --no-index "$wheel"
PYTHONPATH="$site" python3 "$(dirname "$0")/report.py" "$@"
