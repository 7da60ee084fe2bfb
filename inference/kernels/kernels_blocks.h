/* Weights kept in blocks of 32 that share a scale, as GGUF defines them. One file of
   inference/kernels.c.

   Source: ggml's block_q8_0, block_q4_0 and block_q4_1. d and m are float16.
   Q8_0: d, 32 signed bytes q;             d q
   Q4_0: d, 16 bytes of two numbers q;     d (q - 8)
   Q4_1: d, m, 16 bytes of two numbers q;  d q + m
   The lower halves of the 16 bytes are the first 16 numbers, the upper halves the others. */

#ifndef KERNELS_BLOCKS_H
#define KERNELS_BLOCKS_H

#include "kernels_kept.h"

#ifndef __F16C__
#error "needs F16C"
#endif

#define BLOCK 32
#define PARTS (BLOCK / LANES)
#if NUMBER_FORMAT == FORMAT_Q8_0
#define BLOCK_BYTES 34
#elif NUMBER_FORMAT == FORMAT_Q4_0
#define BLOCK_BYTES 18
#elif NUMBER_FORMAT == FORMAT_Q4_1
#define BLOCK_BYTES 20
#else
#error "knows no such NUMBER_FORMAT"
#endif

typedef uint8_t weight; /* a byte of a block */

/* In bytes. A width is a multiple of BLOCK. */
INLINE int64_t row_size(int64_t width) { return width / BLOCK * BLOCK_BYTES; }

INLINE lanes half_at(const weight *from) {
    uint16_t bits;
    memcpy(&bits, from, sizeof bits);
    return all(_cvtsh_ss(bits));
}

#if NUMBER_FORMAT == FORMAT_Q8_0
INLINE void load_block(const weight *block, lanes numbers[PARTS]) {
    lanes scale = half_at(block);
    for (int part = 0; part < PARTS; part++) {
        const weight *from = block + 2 + part * LANES;
#if LANES == 16
        __m512i whole_numbers = _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)from));
        numbers[part] = scale * (lanes)_mm512_cvtepi32_ps(whole_numbers);
#else
        __m256i whole_numbers = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)from));
        numbers[part] = scale * (lanes)_mm256_cvtepi32_ps(whole_numbers);
#endif
    }
}
#else
INLINE void load_block(const weight *block, lanes numbers[PARTS]) {
    lanes scale = half_at(block);
#if NUMBER_FORMAT == FORMAT_Q4_1
    lanes least = half_at(block + 2);
#else
    lanes least = scale * all(-8.0f);
#endif
    __m128i both = _mm_loadu_si128((const __m128i *)(block + BLOCK_BYTES - 16));
    __m128i lower = _mm_set1_epi8(15);
    __m128i sides[2] = {_mm_and_si128(both, lower), _mm_and_si128(_mm_srli_epi16(both, 4), lower)};
    for (int part = 0; part < PARTS; part++) {
#if LANES == 16
        __m512i whole_numbers = _mm512_cvtepu8_epi32(sides[part]);
        lanes here = (lanes)_mm512_cvtepi32_ps(whole_numbers);
#else
        __m128i side = sides[part / 2];
        if (part % 2) side = _mm_srli_si128(side, 8);
        lanes here = (lanes)_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(side));
#endif
        numbers[part] = here * scale + least;
    }
}
#endif

/* As products() in kernels_products.h, apart and ahead in bytes. */
INLINE void block_products(const weight *weights, int64_t apart, const float *input, int64_t width,
                           int64_t ahead, const int rows, const int tokens,
                           float sums[TOKEN_BLOCK][ROW_BLOCK]) {
    lanes partial[TOKEN_BLOCK][ROW_BLOCK];
    for (int t = 0; t < tokens; t++)
        for (int r = 0; r < rows; r++) partial[t][r] = all(0.0f);
    for (int64_t i = 0; i < width; i += BLOCK, weights += BLOCK_BYTES)
        for (int r = 0; r < rows; r++) {
            lanes numbers[PARTS];
            if (ahead) __builtin_prefetch(weights + r * apart + ahead);
            load_block(weights + r * apart, numbers);
            for (int t = 0; t < tokens; t++)
                for (int part = 0; part < PARTS; part++)
                    partial[t][r] += numbers[part] * load(input + t * width + i + part * LANES);
        }
    for (int t = 0; t < tokens; t++) {
        if (rows == ROW_BLOCK) totals(partial[t], sums[t]);
        else for (int r = 0; r < rows; r++) sums[t][r] = total(partial[t][r]);
    }
}

#endif
