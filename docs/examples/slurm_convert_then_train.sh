#!/bin/sh
#SBATCH --job-name=reshard --nodes=2 --ntasks-per-node=1 --exclusive
#
# Converts a checkpoint on all nodes of the job together, proves it, then starts the training:
#
#   SRC=/shared/ckpt_8 DST=/shared/ckpt_4 SRC_STRATEGY=/shared/strategy_8 DST_STRATEGY=/shared/strategy_4 \
#     sbatch slurm_convert_then_train.sh python run.py --load_checkpoint /shared/ckpt_4
#
# A job that is requeued goes on with what its tasks had finished, and converts nothing twice.
set -eu
: "${SRC:?the folder of the checkpoint, with rank_N in it}" "${DST:?the folder to make}"
: "${SRC_STRATEGY:?its strategy, a file or a folder}" "${DST_STRATEGY:?that of the new cluster}"

srun --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 \
  reshard convert "$SRC" "$DST" --src-strategy "$SRC_STRATEGY" --dst-strategy "$DST_STRATEGY" \
  --jobs 0 --shard auto
reshard verify "$DST"
srun "$@"
