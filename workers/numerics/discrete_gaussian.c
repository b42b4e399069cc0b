/* The discrete Gaussian, from the tables of discrete_gaussian.py, which says what they hold. compiling.py compiles it, kernels.py calls it. */

#include <math.h>
#include <stdint.h>

struct table {
    const int64_t *cumulative, *sure;
    const int32_t *guide;
    long guide_shift, buckets, first, block_bits;
    double scale, minus_half_over_variance, guard;
};

enum verdict { KEEP, DRAW_AGAIN, UNDECIDED };

static inline enum verdict propose(const struct table *t, uint64_t word, uint64_t offset, double fraction, int64_t *value) {
    const int64_t position = (int64_t)(word & INT64_MAX);
    long bucket = t->guide[position >> t->guide_shift];
    while (bucket < t->buckets && position >= t->cumulative[bucket + 1]) bucket++;
    if (bucket == t->buckets) /* in a tail, or beyond both */
        return position < t->cumulative[bucket + 2] ? UNDECIDED : DRAW_AGAIN;
    *value = t->first + (int64_t)((uint64_t)bucket << t->block_bits) +
             (int64_t)(offset & (((uint64_t)1 << t->block_bits) - 1));
    const int64_t place = position - t->cumulative[bucket];
    if (place < t->sure[bucket]) return KEEP;
    const double distance = (double)*value - fraction;
    const double allowed = exp(distance * distance * t->minus_half_over_variance) * t->scale;
    if ((double)place < allowed * (1.0 - t->guard) - 1.0) return KEEP;
    return (double)place > allowed * (1.0 + t->guard) + 1.0 ? DRAW_AGAIN : UNDECIDED;
}

/* One word for each value. Returns how many values are left: their places go to `pending`, and the value is then 0 where its word
   is undecided, or -1: draw again. */
long discrete_gaussian(const struct table *table, const uint64_t *restrict words, const uint64_t *restrict offsets,
                       const double *restrict fractions, long count, int64_t *restrict values, int64_t *restrict pending) {
    long left = 0;
    for (long i = 0; i < count; i++) {
        const double fraction = fractions ? fractions[i] : 0.0;
        const enum verdict verdict = propose(table, words[i], offsets ? offsets[i] : 0, fraction, values + i);
        if (verdict == KEEP) continue;
        values[i] = verdict == UNDECIDED ? 0 : -1;
        pending[left++] = i;
    }
    return left;
}
