/* What the scores of all tokens come to: totals and the highest few. One file of inference/kernels.c. */

#ifndef KERNELS_CHOICE_H
#define KERNELS_CHOICE_H

#include "kernels_vectors.h"

#define SCORE_BLOCK 256 /* scores looked through together; a multiple of LANES */

INLINE float highest_of(const float *scores, int64_t count) {
    lanes most = all(-INFINITY);
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        lanes here = load(scores + i);
        most = choose(here > most, here, most);
    }
    float found = most[0];
    for (int lane = 1; lane < LANES; lane++) found = larger(found, most[lane]);
    for (; i < count; i++) found = larger(found, scores[i]);
    return found;
}

/* The highest scores in order; of equal ones the first. A block is looked into only if its highest
   score beats the lowest kept, which after a few blocks is rare. */
static void highest(const float *scores, int64_t width, int64_t count, float *best,
                    int64_t *places) {
    int64_t held = 0;
    for (int64_t start = 0; start < width; start += SCORE_BLOCK) {
        int64_t size = at_most(width - start, SCORE_BLOCK);
        if (held == count && !(highest_of(scores + start, size) > best[count - 1])) continue;
        for (int64_t i = start; i < start + size; i++) {
            if (held == count && !(scores[i] > best[count - 1])) continue;
            int64_t at = held < count ? held++ : count - 1;
            for (; at > 0 && scores[i] > best[at - 1]; at--) {
                best[at] = best[at - 1];
                places[at] = places[at - 1];
            }
            best[at] = scores[i];
            places[at] = i;
        }
    }
}

/* With d the distance of a score to the highest one, S the sum of e^d and T that of d e^d:
   the logarithm of the sum of all exponentials is highest + ln S, the entropy is ln S - T / S. */
static void sum_up(const float *scores, int64_t width, float most, float totals[2]) {
    double sum = 0.0, weighted = 0.0;
    for (int64_t start = 0; start < width; start += SCORE_BLOCK) {
        int64_t size = at_most(width - start, SCORE_BLOCK), i = 0;
        lanes sums = all(0.0f), products = all(0.0f);
        for (; i + LANES <= size; i += LANES) {
            lanes distance = load(scores + start + i) - all(most);
            whole counts = distance > all(-87.0f); /* e to less than that is nothing in a float */
            lanes share = choose(counts, exponential(distance), all(0.0f));
            sums += share;
            products += share * choose(counts, distance, all(0.0f));
        }
        sum += total(sums);
        weighted += total(products);
        for (; i < size; i++) {
            float distance = scores[start + i] - most;
            if (!(distance > -87.0f)) continue;
            sum += expf(distance);
            weighted += distance * expf(distance);
        }
    }
    totals[0] = most + (float)log(sum);
    totals[1] = (float)(log(sum) - weighted / sum);
}

#endif
