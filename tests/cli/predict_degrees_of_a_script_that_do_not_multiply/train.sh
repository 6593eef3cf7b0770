#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
torchrun --nnodes 1 --nproc-per-node 8 pretrain_gpt.py \
  --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 \
  --vocab-size 50257 --micro-batch-size 4 --global-batch-size 64 --bf16 --overlap-grad-reduce \
  --tensor-model-parallel-size 3
