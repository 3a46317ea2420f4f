#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds libstress.so and its plug-ins into a folder: build.sh DIR NULLCUDA, where NULLCUDA is the folder with the null GPU's libcuda.so.1.
set -euo pipefail
out=$1 driver=$2
cd "$(dirname -- "$0")"
mkdir -p "$out"
flags=(-O2 -g -Wall -Wextra -Werror -fPIC -shared -fvisibility=hidden)
g++ -std=c++17 "${flags[@]}" -o "$out/libstress.so" native.cpp "$driver/libcuda.so.1" -ldl -lpthread
for shape in 0 1 2 3 4 5 6 7; do
	gcc -std=gnu11 "${flags[@]}" "-DSHAPE=$shape" -o "$out/plugin$shape.so" plugin.c
done
