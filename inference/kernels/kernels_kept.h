/* Numbers as a model keeps them, one by one: weights, keys and values; where weights are kept in
   blocks (kernels_blocks.h), all but those. One file of inference/kernels.c.

   Each format is a library of its own, compiled with its NUMBER_FORMAT; what is computed is float32
   in all of them. A kept number becomes one in a register, so memory moves no more than its bytes. */

#ifndef KERNELS_KEPT_H
#define KERNELS_KEPT_H

#include <string.h>

#include "kernels_vectors.h"

#define FORMAT_FLOAT32 0
#define FORMAT_FLOAT16 1
#define FORMAT_BFLOAT16 2
#define FORMAT_Q8_0 3
#define FORMAT_Q4_0 4
#define FORMAT_Q4_1 5
#ifndef NUMBER_FORMAT
#define NUMBER_FORMAT FORMAT_FLOAT32
#endif

#if NUMBER_FORMAT == FORMAT_FLOAT32 || NUMBER_FORMAT >= FORMAT_Q8_0
typedef float kept;

INLINE lanes load_kept(const kept *from) { return load(from); }
INLINE float from_kept(kept value) { return value; }
INLINE kept to_kept(float value) { return value; }

#elif NUMBER_FORMAT == FORMAT_FLOAT16
#ifndef __F16C__
#error "needs F16C"
#endif
typedef uint16_t kept;

INLINE lanes load_kept(const kept *from) {
#if LANES == 16
    return (lanes)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)from));
#else
    return (lanes)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)from));
#endif
}

INLINE float from_kept(kept value) { return _cvtsh_ss(value); }
INLINE kept to_kept(float value) { return _cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT); }

#elif NUMBER_FORMAT == FORMAT_BFLOAT16
typedef uint16_t kept; /* the upper half of a float32 */

INLINE lanes load_kept(const kept *from) {
#if LANES == 16
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)from));
    return (lanes)_mm512_slli_epi32(wide, 16);
#else
    __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)from));
    return (lanes)_mm256_slli_epi32(wide, 16);
#endif
}

INLINE float from_kept(kept value) {
    uint32_t bits = (uint32_t)value << 16;
    float wide;
    memcpy(&wide, &bits, sizeof wide);
    return wide;
}

/* To the nearest, to the even one of two. */
INLINE kept to_kept(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (value != value) return (kept)(bits >> 16 | 64); /* rounding would make it infinite */
    return (kept)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#else
#error "knows no such NUMBER_FORMAT"
#endif

#endif
