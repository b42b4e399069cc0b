/* Float32 added up in float64: lengths of rows, norms of sums of outer products, totals. What mechanism/convolutions.py
   clips by and adds up; compiling.py compiles it, kernels.py calls it.

   A row is read once, instead of being converted to memory and read again. What is found of a unit depends on nothing but
   its own rows, down to the last bit. */

#include <string.h>

#include "registers.h"

/* Σ_j x_j², in four sums that do not wait for one another. */
static double squared_length(const float *row, long size) {
    doubles sums[4] = {{0}};
    long j = 0;
    for (; j + 4 * HALF <= size; j += 4 * HALF)
        for (int k = 0; k < 4; k++) {
            const doubles x = widened(row + j + k * HALF);
            sums[k] += x * x;
        }
    double total = add_up((sums[0] + sums[1]) + (sums[2] + sums[3]));
    for (; j < size; j++) total += (double)row[j] * row[j];
    return total;
}

/* out (count,) = squared lengths of rows (count, size). */
void squared_lengths(const float *rows, long count, long size, double *out, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
    for (long i = 0; i < count; i++) out[i] = squared_length(rows + i * size, size);
}

/* As many columns of a unit's rows at a time as stay near the core, as doubles. */
enum { COLUMNS = 256 };

/* Rows whose products with as many others the registers hold. */
#ifdef __AVX512F__
enum { SQUARE = 4 };
#else
enum { SQUARE = 3 };
#endif

static long smaller(long a, long b) { return a < b ? a : b; }

/* Doubles that a thread works in: some columns of all rows, and two Gram matrices. */
static long own_space(long rank) {
    const long rows = rounded_up(rank, SQUARE);
    return rows * COLUMNS + 2 * rows * rows;
}

long gram_space(long rank, int threads) { return threads * own_space(rank); }

/* gram[SQUARE][SQUARE] (in rows of `stride`) += products of SQUARE rows with SQUARE others, over COLUMNS columns. */
static void gram_tile(const double *restrict a, const double *restrict b, double *restrict gram, long stride) {
    doubles sums[SQUARE][SQUARE] = {{{0}}};
    for (long j = 0; j < COLUMNS; j += HALF) {
        doubles x[SQUARE], y[SQUARE];
#pragma GCC unroll 4
        for (int k = 0; k < SQUARE; k++) {
            x[k] = *(const doubles *)(a + k * COLUMNS + j);
            y[k] = *(const doubles *)(b + k * COLUMNS + j);
        }
#pragma GCC unroll 4
        for (int k = 0; k < SQUARE; k++)
#pragma GCC unroll 4
            for (int l = 0; l < SQUARE; l++) sums[k][l] += x[k] * y[l];
    }
    for (int k = 0; k < SQUARE; k++)
        for (int l = 0; l < SQUARE; l++) gram[k * stride + l] += add_up(sums[k][l]);
}

/* gram (padded rank, padded rank) = rows (rank, size) with one another, on and below the diagonal's tiles. */
static void gram_matrix(const float *rows, long rank, long size, double *restrict wide, double *restrict gram) {
    const long padded = rounded_up(rank, SQUARE);
    for (long i = 0; i < padded * padded; i++) gram[i] = 0.0;
    for (long i = 0; i < padded * COLUMNS; i++) wide[i] = 0.0;
    for (long start = 0; start < size; start += COLUMNS) {
        const long columns = smaller(COLUMNS, size - start);
        for (long k = 0; k < rank; k++) {
            const float *row = rows + k * size + start;
            for (long j = 0; j < columns; j++) wide[k * COLUMNS + j] = row[j];
            for (long j = columns; j < COLUMNS; j++) wide[k * COLUMNS + j] = 0.0;
        }
        for (long k = 0; k < padded; k += SQUARE)
            for (long l = 0; l <= k; l += SQUARE)
                gram_tile(wide + k * COLUMNS, wide + l * COLUMNS, gram + k * padded + l, padded);
    }
}

/* Of leftᵀ right of every unit, left (units, rank, height), right (units, rank, width): the squared Frobenius norm by Gram
   matrices, squared (units,), and of the rows of both, lengths (2, units, rank), squared too. */
void gram_norms(const float *left, long height, const float *right, long width, long units, long rank, double *squared,
                double *lengths, double *space, int threads) {
    const long padded = rounded_up(rank, SQUARE);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int part = 0; part < threads; part++) {
        double *wide = space + part * own_space(rank), *a = wide + padded * COLUMNS, *b = a + padded * padded;
        for (long unit = units * part / threads; unit < units * (part + 1) / threads; unit++) {
            gram_matrix(left + unit * rank * height, rank, height, wide, a);
            gram_matrix(right + unit * rank * width, rank, width, wide, b);
            double sum = 0.0;
            for (long k = 0; k < rank; k++) {
                for (long l = 0; l < k; l++) sum += 2.0 * a[k * padded + l] * b[k * padded + l];
                sum += a[k * padded + k] * b[k * padded + k];
                lengths[unit * rank + k] = a[k * padded + k];
                lengths[(units + unit) * rank + k] = b[k * padded + k];
            }
            squared[unit] = sum;
        }
    }
}

/* ---- Sums of products -------------------------------------------------------------------------------------------- */

/* `columns` columns of rows (rank, size) as strips (rank, strip) one after the other, the last padded with zeros. A row's
   are read together: one strip's would lie a page apart. */
static inline void pack_strips(const float *rows, long rank, long size, long columns, long strip, float *packed) {
    for (long k = 0; k < rank; k++, rows += size, packed += strip) {
        long j = 0;
        for (; j + strip <= columns; j += strip) memcpy(packed + j * rank, rows + j, sizeof(float) * strip);
        for (long i = j; i < rounded_up(columns, strip); i++) packed[j * rank + i - j] = i < columns ? rows[i] : 0.0f;
    }
}

/* Columns of the right rows that are worked on at a time. */
enum { PANEL = 8 * WIDE };

/* Floats that a thread works in: strips of all rows of the left, and of a panel of the right. */
static long strips_space(long rows, long height) { return rows * (rounded_up(height, TALL) + PANEL); }

/* Floats to work in, where so many rows are multiplied at a time. */
long product_space(long rows, long height, int threads) { return threads * strips_space(rows, height); }

/* totals (height, width) += Σ_unit scale_unit leftᵀ right, left (units, rank, height), right (units, rank, width), scale
   (units,): products of the rows of `together` units in float32 from nothing, added up in float64. */
void add_products(const float *left, long height, const float *right, long width, long units, long rank,
                  const float *scale, long together, double *totals, float *space, int threads) {
    const long size = strips_space(together * rank, height), panels = rounded_up(width, PANEL) / PANEL;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int part = 0; part < threads; part++) {
        float *panel = space + part * size, *tall = panel + together * rank * PANEL;
        const long from = PANEL * (panels * part / threads), to = PANEL * (panels * (part + 1) / threads);
        for (long unit = 0; unit < units; unit += together) {
            const long rows = rank * smaller(together, units - unit);
            pack_strips(left + unit * rank * height, rows, height, height, TALL, tall);
            for (long i = 0; i < height; i += TALL)
                for (long k = 0; k < rows; k++)
                    for (long r = 0; r < TALL; r++) tall[rows * i + TALL * k + r] *= scale[unit + k / rank];
            for (long start = from; start < smaller(to, width); start += PANEL) {
                const long columns = smaller(PANEL, width - start);
                pack_strips(right + unit * rank * width + start, rows, width, columns, WIDE, panel);
                for (long i = 0; i < height; i += TALL)
                    for (long j = 0; j < columns; j += WIDE) {
                        float sums[TALL * WIDE] = {0};
                        tile(tall + rows * i, TALL, panel + rows * j, WIDE, rows, sums);
                        for (long r = 0; r < smaller(TALL, height - i); r++)
                            for (long l = 0; l < smaller(WIDE, columns - j); l++)
                                totals[(i + r) * width + start + j + l] += sums[WIDE * r + l];
                    }
            }
        }
    }
}
