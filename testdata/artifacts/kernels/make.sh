#!/usr/bin/env bash
# How the ptxas-* and fatbinary-* files were made: from scale.sm_90.ptx with another .target and .version,
# by the assemblers in the Python packages nvidia-cuda-nvcc-cu11 11.8.89, nvidia-cuda-nvcc-cu12 12.9.86 and
# nvidia-cuda-nvcc 13.5.37; cuobjdump.json is what nvidia-cuda-cuobjdump 13.4.92 prints about them.
# usage: make.sh PTXAS VERSION PTX_VERSION TARGET...   (11.8: 7.8, 12.9: 8.8, 13.5: 9.0)
set -euo pipefail
ptxas=$1 version=$2 ptx=$3; shift 3
for target in "$@"; do
  sed "s/^\.target.*/.target $target/; s/^\.version.*/.version $ptx/" scale.sm_90.ptx > scale.tmp
  "$ptxas" -arch "$target" scale.tmp -o "ptxas-$version-$target.cubin"
done
rm -f scale.tmp
# fatbinary-13.5-MODE.fatbin, MODE zstd = default, lz4 = speed, plain = none:
#   fatbinary --create OUT --64 --compress-all --compress-mode MODE --image3 kind=elf,sm=80,file=ptxas-12.9-sm_80.cubin
#     --image3 kind=elf,sm=90a,file=ptxas-13.5-sm_90a.cubin --image3 kind=elf,sm=100f,file=ptxas-13.5-sm_100f.cubin
#     --image3 kind=ptx,sm=90a,file=scale.sm_90a.ptx --image3 kind=ptx,sm=80,file=scale.sm_80.ptx
