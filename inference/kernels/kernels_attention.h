/* Attention of a group of query heads to one chunk of a cache. One file of inference/kernels.c. */

#ifndef KERNELS_ATTENTION_H
#define KERNELS_ATTENTION_H

#include <string.h>

#include "kernels_products.h"

#ifndef KV_CHUNK
#define KV_CHUNK 256
#endif
#ifndef AHEAD_TOKENS
#define AHEAD_TOKENS 32
#endif
#define LINE (64 / (int64_t)sizeof(kept)) /* numbers in a cache line */
#define MOST_GROUP 16 /* query heads on one key/value head */
#define MOST_HEAD_DIM 256
#define HIDDEN_SCORE (-1e30f)

/* Turn each pair (i, i + half) of a head by the angle of its position. */
INLINE void rotate(const float *from, const float *cosines, const float *sines, int64_t dim,
                   float factor, float *to) {
    int64_t half = dim / 2;
    for (int64_t i = 0; i < half; i++) {
        float left = from[i], right = from[i + half];
        to[i] = (left * cosines[i] - right * sines[i]) * factor;
        to[i + half] = (right * cosines[i + half] + left * sines[i + half]) * factor;
    }
}

/* Ask memory for a block of tokens that will be needed soon. */
INLINE void ask(const kept *block, int64_t dim) {
    for (int64_t i = 0; i < ROW_BLOCK * dim; i += LINE) __builtin_prefetch(block + i);
}

/* scores[group][token] of one group of query heads against the tokens of one chunk; towards its end
   the first values are asked for. */
INLINE void score(const float *query, const kept *keys, const kept *values, int64_t dim,
                  int64_t group, int64_t tokens, float scores[MOST_GROUP][KV_CHUNK]) {
    for (int64_t token = 0; token < tokens; token += ROW_BLOCK) {
        int64_t rows = at_most(tokens - token, ROW_BLOCK), ahead = token + AHEAD_TOKENS;
        ask(ahead < tokens ? keys + ahead * dim : values + (ahead - tokens) * dim, dim);
        for (int64_t g = 0; g < group; g += TOKEN_BLOCK) {
            float sums[TOKEN_BLOCK][ROW_BLOCK];
            const kept *block = keys + token * dim;
            const float *heads = query + g * dim;
            int64_t count = at_most(group - g, TOKEN_BLOCK);
            if (rows == ROW_BLOCK) {
                products_of(block, dim, heads, dim, 0, ROW_BLOCK, count, sums);
                for (int64_t h = 0; h < count; h++)
                    memcpy(&scores[g + h][token], sums[h], sizeof sums[h]);
                continue;
            }
            for (int64_t r = 0; r < rows; r++) {
                products_of(block + r * dim, 0, heads, dim, 0, 1, count, sums);
                for (int64_t h = 0; h < count; h++) scores[g + h][token + r] = sums[h][0];
            }
        }
    }
}

/* Replace scores by their exponentials; the largest score and the sum go into ends. */
INLINE void weigh(float *scores, int64_t tokens, float ends[2]) {
    for (int64_t token = tokens; token % LANES; token++) scores[token] = HIDDEN_SCORE;
    lanes largest = all(HIDDEN_SCORE);
    for (int64_t token = 0; token < tokens; token += LANES) {
        lanes here = load(scores + token);
        largest = choose(here > largest, here, largest);
    }
    float most = largest[0];
    for (int lane = 1; lane < LANES; lane++) most = larger(most, largest[lane]);
    lanes sums = all(0.0f);
    for (int64_t token = 0; token < tokens; token += LANES) {
        lanes score_lanes = load(scores + token), low = all(HIDDEN_SCORE / 2);
        lanes weights = exponential(score_lanes - all(most));
        weights = choose(score_lanes < low, all(0.0f), weights);
        store(scores + token, weights);
        sums += weights;
    }
    ends[0] = most;
    ends[1] = total(sums);
}

/* Add weights[head] times a block of values to the output of a few heads, a constant number. */
INLINE void add_block(const kept *block, float scores[][KV_CHUNK], int64_t token, int64_t dim,
                      const int heads, float *output, int64_t output_head) {
    lanes weight[TOKEN_BLOCK][ROW_BLOCK];
    for (int h = 0; h < heads; h++)
        for (int r = 0; r < ROW_BLOCK; r++) weight[h][r] = all(scores[h][token + r]);
    for (int64_t i = 0; i < dim; i += LANES) {
        lanes value[ROW_BLOCK];
        for (int r = 0; r < ROW_BLOCK; r++) value[r] = load_kept(block + r * dim + i);
        for (int h = 0; h < heads; h++) {
            float *place = output + h * output_head + i;
            lanes sum = load(place);
            for (int r = 0; r < ROW_BLOCK; r++) sum += weight[h][r] * value[r];
            store(place, sum);
        }
    }
}

/* output[group] = weights[group] times the values of one chunk. */
INLINE void mix(const kept *values, float scores[MOST_GROUP][KV_CHUNK], int64_t dim, int64_t group,
                int64_t tokens, float *output, int64_t output_head) {
    for (int64_t g = 0; g < group; g++) memset(output + g * output_head, 0, dim * sizeof(float));
    int64_t token = 0;
    for (; token + ROW_BLOCK <= tokens; token += ROW_BLOCK) {
        const kept *block = values + token * dim;
        if (token + AHEAD_TOKENS < tokens) ask(block + AHEAD_TOKENS * dim, dim);
        for (int64_t g = 0; g < group; g += TOKEN_BLOCK) {
            float *place = output + g * output_head;
            switch (at_most(group - g, TOKEN_BLOCK)) {
            case 1: add_block(block, scores + g, token, dim, 1, place, output_head); break;
            case 2: add_block(block, scores + g, token, dim, 2, place, output_head); break;
#if TOKEN_BLOCK == 4
            case 3: add_block(block, scores + g, token, dim, 3, place, output_head); break;
            default: add_block(block, scores + g, token, dim, 4, place, output_head); break;
#endif
            }
        }
    }
    for (; token < tokens; token++)
        for (int64_t g = 0; g < group; g++) {
            float *sum = output + g * output_head;
            lanes weight = all(scores[g][token]);
            for (int64_t i = 0; i < dim; i += LANES)
                store(sum + i, load(sum + i) + weight * load_kept(values + token * dim + i));
        }
}

/* Join the chunks of one head: each is scaled from its own largest score to the common one. */
static void join(const float *partial, int64_t chunks, int64_t stride, int64_t dim, float *output) {
    float most = HIDDEN_SCORE, sum = 0.0f, scaled[MOST_HEAD_DIM];
    memset(scaled, 0, dim * sizeof(float));
    for (int64_t c = 0; c < chunks; c++) most = larger(most, partial[c * stride + dim]);
    for (int64_t c = 0; c < chunks; c++) {
        const float *chunk = partial + c * stride;
        float factor = expf(chunk[dim] - most);
        sum += factor * chunk[dim + 1];
        for (int64_t i = 0; i < dim; i += LANES)
            store(scaled + i, load(scaled + i) + all(factor) * load(chunk + i));
    }
    lanes share = all(sum > 0.0f ? 1.0f / sum : 0.0f);
    for (int64_t i = 0; i < dim; i += LANES) store(output + i, load(scaled + i) * share);
}

#endif
