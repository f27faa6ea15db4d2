#!/bin/bash
# The script with a mistake: the worker registers with the address of its second fabric interface.
MISTAKE=second-interface exec "$(dirname "$0")/spark-vllm.sh" "$@"
