/* What perceptron.c and sums.c compute in: vectors as wide as the processor's registers (GCC's and Clang's own types), and a
   tile of products. */

#ifndef REGISTERS_H
#define REGISTERS_H

/* A copy of these in every caller would double the time of compiling. */
#define apart __attribute__((noinline))

/* As wide as the processor's registers; a tile of sums then fills three quarters of them. */
#ifdef __AVX512F__
enum { LANES = 16, TALL = 12 };
#else
enum { LANES = 8, TALL = 6 };
#endif
enum { HALF = LANES / 2, WIDE = 2 * LANES };

typedef float floats __attribute__((vector_size(4 * LANES), aligned(4)));
typedef float half_floats __attribute__((vector_size(4 * HALF), aligned(4)));
typedef double doubles __attribute__((vector_size(8 * HALF), aligned(8)));

static inline long rounded_up(long size, long to) { return (size + to - 1) / to * to; }

static inline double add_up(doubles x) {
    double sum = 0.0;
    for (int i = 0; i < HALF; i++) sum += x[i];
    return sum;
}

static inline doubles widened(const float *at) { return __builtin_convertvector(*(const half_floats *)at, doubles); }

/* out[TALL][WIDE] += Σ_k left[k][·] right[k][·]: the products of `count` rows from nothing, in any order; then one
   addition. */
apart static void tile(const float *restrict left, long left_stride, const float *restrict right, long right_stride,
                       long count, float *restrict out) {
    floats held[TALL][2];
    for (int i = 0; i < TALL; i++) held[i][0] = held[i][1] = (floats){0};
    for (long k = 0; k < count; k++, left += left_stride, right += right_stride) {
        const floats first = *(const floats *)right, second = *(const floats *)(right + LANES);
#pragma GCC unroll 12
        for (int i = 0; i < TALL; i++) {
            const float a = left[i];
            held[i][0] += a * first;
            held[i][1] += a * second;
        }
    }
#pragma GCC unroll 12
    for (int i = 0; i < TALL; i++) {
        *(floats *)(out + WIDE * i) += held[i][0];
        *(floats *)(out + WIDE * i + LANES) += held[i][1];
    }
}

#endif
