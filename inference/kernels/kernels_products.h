/* Products of weight rows with inputs. One file of inference/kernels.c. */

#ifndef KERNELS_PRODUCTS_H
#define KERNELS_PRODUCTS_H

#include "kernels_kept.h"

#if NUMBER_FORMAT >= FORMAT_Q8_0
#include "kernels_blocks.h"
#else
typedef kept weight;

INLINE int64_t row_size(int64_t width) { return width; } /* in weights */
#endif

INLINE const weight *weight_row(const weight *weights, int64_t row, int64_t width) {
    return weights + row * row_size(width);
}

/* sums[token][row] = input[token] . weights[row * apart]; both counts are constants where it is
   inlined. Memory is asked for the weights that lie ahead, none where that is 0. */
INLINE void products(const kept *weights, int64_t apart, const float *input, int64_t width,
                     int64_t ahead, const int rows, const int tokens,
                     float sums[TOKEN_BLOCK][ROW_BLOCK]) {
    lanes partial[TOKEN_BLOCK][ROW_BLOCK];
    for (int t = 0; t < tokens; t++)
        for (int r = 0; r < rows; r++) partial[t][r] = all(0.0f);
    for (int64_t i = 0; i < width; i += LANES) {
        lanes weight[ROW_BLOCK];
        for (int r = 0; r < rows; r++) {
            const kept *place = weights + r * apart + i;
            if (ahead) __builtin_prefetch(place + ahead);
            weight[r] = load_kept(place);
        }
        for (int t = 0; t < tokens; t++) {
            lanes x = load(input + t * width + i);
            for (int r = 0; r < rows; r++) partial[t][r] += weight[r] * x;
        }
    }
    for (int t = 0; t < tokens; t++) {
        if (rows == ROW_BLOCK) totals(partial[t], sums[t]);
        else for (int r = 0; r < rows; r++) sums[t][r] = total(partial[t][r]);
    }
}

#define AT_MOST_3 (TOKEN_BLOCK < 3 ? TOKEN_BLOCK : 3)

/* The same for a number of tokens that is no constant, TOKEN_BLOCK at most. */
#define FOR_ANY_TOKENS(name, one, type)                                                            \
    INLINE void name(const type *weights, int64_t apart, const float *input, int64_t width,        \
                     int64_t ahead, const int rows, int tokens,                                    \
                     float sums[TOKEN_BLOCK][ROW_BLOCK]) {                                         \
        switch (tokens) {                                                                          \
        case 1: one(weights, apart, input, width, ahead, rows, 1, sums); break;                    \
        case 2: one(weights, apart, input, width, ahead, rows, 2, sums); break;                    \
        case 3: one(weights, apart, input, width, ahead, rows, AT_MOST_3, sums); break;            \
        default: one(weights, apart, input, width, ahead, rows, TOKEN_BLOCK, sums); break;         \
        }                                                                                          \
    }

FOR_ANY_TOKENS(products_of, products, kept)
#if NUMBER_FORMAT >= FORMAT_Q8_0
FOR_ANY_TOKENS(weight_products_of, block_products, weight)
#else
FOR_ANY_TOKENS(weight_products_of, products, weight)
#endif

/* Put input [token, width] times a block of weight rows, stretch apart, plus bias and what is added,
   in output [token, output_row] from column row on. */
INLINE void project_block(const weight *weights, const kept *bias, const float *added,
                          const float *input, int64_t width, int64_t tokens, int64_t row,
                          int64_t stretch, const int rows, float *output, int64_t output_row) {
    float sums[TOKEN_BLOCK][ROW_BLOCK];
    for (int64_t token = 0; token < tokens; token += TOKEN_BLOCK) {
        int count = (int)at_most(tokens - token, TOKEN_BLOCK);
        const weight *block = weight_row(weights, row, width);
        const float *x = input + token * width;
        int64_t apart = stretch * row_size(width), next = row_size(width);
        /* The second pass over a block has it at hand, and time to fetch the next. */
        if (token == TOKEN_BLOCK)
            weight_products_of(block, apart, x, width, next, rows, count, sums);
        else
            weight_products_of(block, apart, x, width, 0, rows, count, sums);
        for (int t = 0; t < count; t++)
            for (int r = 0; r < rows; r++) {
                int64_t column = row + r * stretch, at = (token + t) * output_row + column;
                float sum = sums[t][r];
                if (bias) sum += from_kept(bias[column]);
                if (added) sum += added[at];
                output[at] = sum;
            }
    }
}

/* The same for weight rows first..last. */
static void project(const weight *weights, const kept *bias, const float *added,
                    const float *input, int64_t width, int64_t tokens, int64_t first, int64_t last,
                    float *output, int64_t output_row) {
    int64_t stretch = (last - first) / ROW_BLOCK, rest = first + stretch * ROW_BLOCK;
    for (int64_t row = first; row < first + stretch; row++)
        project_block(weights, bias, added, input, width, tokens, row, stretch, ROW_BLOCK, output,
                      output_row);
    for (int64_t row = rest; row < last; row++)
        project_block(weights, bias, added, input, width, tokens, row, 0, 1, output, output_row);
}

static void normalise(const float *input, const kept *weight, float eps, int64_t rows,
                      int64_t width, float *output) {
    for (int64_t row = 0; row < rows; row++) {
        const float *x = input + row * width;
        lanes squares = all(0.0f);
        for (int64_t i = 0; i < width; i += LANES) squares += load(x + i) * load(x + i);
        lanes factor = all(1.0f / sqrtf(total(squares) / (float)width + eps));
        for (int64_t i = 0; i < width; i += LANES)
            store(output + row * width + i, load_kept(weight + i) * (load(x + i) * factor));
    }
}

#endif
