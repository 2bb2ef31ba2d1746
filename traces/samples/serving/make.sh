#!/usr/bin/env bash
# Makes the serving file of this folder from its layer tables. From the root: traces/samples/serving/make.sh build/foldline [FILE]
set -eu
base=traces/samples/serving/rtx4090-llama3.1-8b
"$1" fit serving --dense $base.dense.csv --per-sequence $base.per_sequence.csv --attention $base.attention.csv --layers 32 \
    --sm-mhz 2520 --max-seqs 256 --token-budget 2048 --kv-blocks 2587 --max-model-len 32768 --model meta-llama/Llama-3.1-8B \
    --gpu "NVIDIA GeForce RTX 4090" --source "LLMServingSim, MIT, (c) 2024 CASYS Lab at KAIST; README.md" -o "${2:-$base.serving.csv}"
