#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#SBATCH --nodes=8
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
# A pre-training script in Megatron-LM's words: 8 B parameters on 8 hosts.
export CUDA_DEVICE_MAX_CONNECTIONS=1
export NCCL_DEBUG=WARN

GPUS_PER_NODE=8
NNODES=${SLURM_NNODES:-8}
TP=2
PP=2
MICRO_BATCH=1
GLOBAL_BATCH=$((32 * GPUS_PER_NODE))

MODEL_ARGS=(
    --num-layers 32
    --hidden-size 4096
    --ffn-hidden-size 14336
    --num-attention-heads 32
    --group-query-attention
    --num-query-groups 8
    --seq-length 8192
    --max-position-embeddings 8192
    --position-embedding-type rope
    --swiglu
    --normalization RMSNorm
    --disable-bias-linear
    --untie-embeddings-and-output-weights
    --vocab-size 128256
)

PARALLEL_ARGS="
    --tensor-model-parallel-size $TP
    --pipeline-model-parallel-size ${PP}
    --num-virtual-stages-per-pipeline-rank 2
    --sequence-parallel
    --use-distributed-optimizer
    --overlap-grad-reduce
    --overlap-param-gather
"

TRAIN_ARGS="--micro-batch-size $MICRO_BATCH --global-batch-size $GLOBAL_BATCH --train-iters 1000 --lr 3e-4 --bf16 \
    --recompute-granularity selective --ddp-bucket-size 80000000"

srun --label torchrun --nproc_per_node $GPUS_PER_NODE --nnodes $NNODES --rdzv_id $SLURM_JOB_ID --rdzv_endpoint $MASTER_ADDR:6000 \
    pretrain_gpt.py "${MODEL_ARGS[@]}" $PARALLEL_ARGS $TRAIN_ARGS --data-path $1 2>&1 | tee train.log
