/* How fast memory can be read: as the weights are, and nothing done with it. One file of
   inference/kernels.c. */

#ifndef KERNELS_STREAM_H
#define KERNELS_STREAM_H

#include "kernels_vectors.h"

/* The sum of a number of floats that is a multiple of ROW_BLOCK times LANES, read as project()
   reads weight rows: ROW_BLOCK streams, each a part of the whole. */
INLINE float sum_of_streams(const float *data, int64_t count) {
    int64_t stretch = count / ROW_BLOCK;
    lanes sums[ROW_BLOCK];
    for (int r = 0; r < ROW_BLOCK; r++) sums[r] = all(0.0f);
    for (int64_t i = 0; i < stretch; i += LANES)
        for (int r = 0; r < ROW_BLOCK; r++) sums[r] += load(data + r * stretch + i);
    float sum = 0.0f;
    for (int r = 0; r < ROW_BLOCK; r++) sum += total(sums[r]);
    return sum;
}

#endif
