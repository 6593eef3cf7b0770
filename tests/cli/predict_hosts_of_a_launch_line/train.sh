#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
torchrun --nnodes 4 --nproc-per-node gpu pretrain_gpt.py \
  --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 \
  --vocab-size 50257 --micro-batch-size 4 --global-batch-size 256 --bf16 --overlap-grad-reduce
