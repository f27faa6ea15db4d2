#!/bin/bash
# The script with a mistake: Ray picks the address itself, and on spark1 picks the external one.
MISTAKE=own-address exec "$(dirname "$0")/spark-vllm.sh" "$@"
