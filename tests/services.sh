#!/usr/bin/env bash
# What needs a real service (Spark, PostgreSQL, a browser). Nothing does yet.
set -euo pipefail
echo "no test needs a service yet"
