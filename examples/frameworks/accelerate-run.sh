#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The Trainer's arguments say what accelerate's file cannot: model, batch, sequence.
accelerate launch --config_file accelerate-fsdp.yaml train.py \
  --model_name_or_path meta-llama/Llama-3.1-8B --max_seq_length 4096 --bf16 True \
  --per_device_train_batch_size 2 --gradient_accumulation_steps 8 --learning_rate 2e-5 --output_dir out
