#!/bin/sh
# The one command: environment, catalogue, training, export, compilation, checks, golden cases, cost models, metrics, model cards.
#   models/train.sh               five seeds
#   models/train.sh --seeds 1     a quick look; writes the same files
set -eu
cd "$(dirname "$0")"
export PYTHONDONTWRITEBYTECODE=1
python=$("${PYTHON:-python3}" environment.py)
"$python" catalogue_files.py
"$python" train.py "$@"
for data in synthetic movielens-per-user movielens-global; do "$python" comparison.py "$data" "$@"; done
exec "$python" versions.py
