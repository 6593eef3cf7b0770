#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#SBATCH --nodes=2
#SBATCH --gpus-per-node=8
export NCCL_P2P_DISABLE=1
TP=4
torchrun --nnodes $SLURM_NNODES --nproc-per-node 4 pretrain_gpt.py \
  --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 \
  --vocab-size 50257 --tensor-model-parallel-size $TP --micro-batch-size 4 --global-batch-size 64 --bf16 \
  --overlap-param-gather --tp-comm-overlap --ddp-bucket-size 1000 --no-such-flag 3 --lr 1e-4 \
  --recompute-granularity full --recompute-method uniform --recompute-num-layers 1 --recompute-activations
