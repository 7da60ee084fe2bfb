/* Vectors of floats. One file of inference/kernels.c. */

#ifndef KERNELS_VECTORS_H
#define KERNELS_VECTORS_H

#include <immintrin.h>
#include <math.h>
#include <stdint.h>

#if defined(__AVX512F__) && defined(__AVX512DQ__)
#define LANES 16
#define TOKEN_BLOCK 4 /* inputs that share one load of the weights; LANES bounds the registers */
#elif defined(__AVX2__) && defined(__FMA__)
#define LANES 8
#define TOKEN_BLOCK 2
#else
#error "needs AVX2 and FMA"
#endif

#define INLINE static inline __attribute__((always_inline))
#define ROW_BLOCK 4 /* weight rows that share one load of the input */

/* The rows of a block are not neighbours: each is in a stretch of its own, and the next block holds
   the next row of each. Memory is then read as a few long streams, which the processor's prefetcher
   follows; neighbouring rows of one short width each end before it has caught up. */

typedef float lanes __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
typedef int32_t whole __attribute__((vector_size(LANES * 4)));

INLINE int64_t at_most(int64_t value, int64_t limit) { return value < limit ? value : limit; }

INLINE lanes load(const float *from) { return *(const lanes *)from; }
INLINE void store(float *to, lanes value) { *(lanes *)to = value; }
INLINE lanes all(float value) { return (lanes){} + value; }

INLINE float larger(float left, float right) { return left > right ? left : right; }

INLINE lanes choose(whole is_left, lanes left, lanes right) {
    return (lanes)(((whole)left & is_left) | ((whole)right & ~is_left));
}

INLINE float total(lanes value) {
#if LANES == 16
    return _mm512_reduce_add_ps((__m512)value);
#else
    __m256 whole_register = (__m256)value;
    __m128 half = _mm_add_ps(_mm256_castps256_ps128(whole_register),
                             _mm256_extractf128_ps(whole_register, 1));
    half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(half, _mm_shuffle_ps(half, half, 1)));
#endif
}

/* The totals of four registers, side by side. */
INLINE void totals(const lanes part[ROW_BLOCK], float *sums) {
#if LANES == 16
    __m512 a = (__m512)part[0], b = (__m512)part[1], c = (__m512)part[2], d = (__m512)part[3];
    __m512 ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
    __m512 cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
    __m512d left = _mm512_castps_pd(ab), right = _mm512_castps_pd(cd);
    __m512 four = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(left, right)),
                                _mm512_castpd_ps(_mm512_unpackhi_pd(left, right)));
    __m256 two = _mm256_add_ps(_mm512_castps512_ps256(four), _mm512_extractf32x8_ps(four, 1));
#else
    __m256 ab = _mm256_hadd_ps((__m256)part[0], (__m256)part[1]);
    __m256 two = _mm256_hadd_ps(ab, _mm256_hadd_ps((__m256)part[2], (__m256)part[3]));
#endif
    _mm_storeu_ps(sums, _mm_add_ps(_mm256_castps256_ps128(two), _mm256_extractf128_ps(two, 1)));
}

/* e to the power of each lane, within 2 units in the last place between -87 and 88; lower gives the
   smallest normal number. Source: argument reduction by ln 2 in two parts and the Taylor series to
   the seventh power, whose remainder on [-ln 2 / 2, ln 2 / 2] is below 6e-9. */
INLINE lanes exponential(lanes x) {
    const lanes low = all(-87.3f), high = all(88.3f), rounder = all(12582912.0f);
    x = choose(x < low, low, x);
    x = choose(x > high, high, x);
    lanes shifted = x * all(1.44269504f) + rounder;
    lanes power = shifted - rounder;
    lanes r = x - power * all(0.693359375f) + power * all(2.12194440e-4f);
    lanes sum = all(1.0f / 5040.0f);
    sum = sum * r + all(1.0f / 720.0f);
    sum = sum * r + all(1.0f / 120.0f);
    sum = sum * r + all(1.0f / 24.0f);
    sum = sum * r + all(1.0f / 6.0f);
    sum = sum * r + all(0.5f);
    sum = sum * r + all(1.0f);
    sum = sum * r + all(1.0f);
    whole scale = ((whole)shifted << 23) + (whole)all(1.0f);
    return sum * (lanes)scale;
}

#endif
