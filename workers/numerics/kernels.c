/* The three loops of a private step that torch has no operation for. See kernels.py, which compiles and calls them.

   Plain C with the vector types of GCC and Clang; no header but the compiler's own. Every function is told how many
   threads it may use, and what a unit adds never depends on how many they are. */

#include <stdint.h>
#include <string.h>

typedef float v8f __attribute__((vector_size(32), aligned(4)));
typedef int32_t v8i __attribute__((vector_size(32), aligned(4)));
typedef float v4f __attribute__((vector_size(16), aligned(4)));
typedef double v4d __attribute__((vector_size(32), aligned(8)));

/* ---- Sums of products over rows, 64 rows at a time ------------------------------------------------------------- */

enum { BLOCK = 64, TALL = 6, WIDE = 16 };

/* out[TALL][WIDE] += Σ_k tall[k][·] wide[k][·]: 64 products an entry from nothing, in any order; then one addition. */
static void tile(const float *restrict tall, const float *restrict wide, float *restrict out) {
    v8f held[TALL][2];
    for (int i = 0; i < TALL; i++) held[i][0] = held[i][1] = (v8f){0};
    for (int k = 0; k < BLOCK; k++) {
        const v8f first = *(const v8f *)(wide + WIDE * k), second = *(const v8f *)(wide + WIDE * k + 8);
#pragma GCC unroll 6
        for (int i = 0; i < TALL; i++) {
            const float a = tall[TALL * k + i];
            held[i][0] += a * first;
            held[i][1] += a * second;
        }
    }
#pragma GCC unroll 6
    for (int i = 0; i < TALL; i++) {
        *(v8f *)(out + WIDE * i) += held[i][0];
        *(v8f *)(out + WIDE * i + 8) += held[i][1];
    }
}

/* Strips of `strip` columns of 64 rows, each strip row by row, padded with zeros. A row of weight 0 is zeros.
   Rows are read, and `packed` is written, up to 8 floats at a time: both must go on for 8 floats after a full strip. */
static void pack(const float *restrict rows, long stride, long from, long to, int strip, const float *restrict weights,
                 int scale, float *restrict packed) {
    long start = from;
    for (; start + (strip + 7) / 8 * 8 <= stride && start + strip <= to; start += strip, packed += BLOCK * strip)
        for (int k = 0; k < BLOCK; k++) {
            const float weight = weights[k], factor = scale ? weight : 1.0f;
            for (int j = 0; j < strip; j += 8) {
                v8f part = {0};
                if (weight != 0.0f) part = factor * *(const v8f *)(rows + stride * k + start + j);
                *(v8f *)(packed + strip * k + j) = part;
            }
        }
    for (; start < to; start += strip, packed += BLOCK * strip) {
        const long columns = to - start < strip ? to - start : strip;
        memset(packed, 0, sizeof(float) * BLOCK * strip);
        for (int k = 0; k < BLOCK; k++) {
            const float weight = weights[k], factor = scale ? weight : 1.0f;
            if (weight == 0.0f) continue;
            for (long j = 0; j < columns; j++) packed[strip * k + j] = factor * rows[stride * k + start + j];
        }
    }
}

/* out (height, width) = Σ_b left_bᵀ diag(weights_b) right_b over blocks b of 64 rows, in float32.
   rows: of all kinds; weights: (padded,), the same for every kind, padded a multiple of 64.
   space: per thread (height + TALL) · (width + WIDE) + BLOCK · (height + TALL + width + WIDE) floats, and 8 more. */
void weighted_block_sum(const float *left, const float *right, const float *weights, long rows, long padded, long height,
                        long width, float *out, float *space, int threads) {
    const long strips = (height + TALL - 1) / TALL, across = (width + WIDE - 1) / WIDE;
    const long each = (height + TALL) * (width + WIDE) + BLOCK * (height + TALL + width + WIDE);
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int part = 0; part < threads; part++) {
        const long first = strips * part / threads, last = strips * (part + 1) / threads, from = first * TALL;
        const long to = last * TALL < height ? last * TALL : height;
        float *total = space + part * each, *tall = total + (height + TALL) * (width + WIDE);
        float *wide = tall + BLOCK * (height + TALL);
        memset(total, 0, sizeof(float) * (last - first) * across * TALL * WIDE);
        for (long block = 0; block < rows && from < to; block += BLOCK) {
            pack(left + block * height, height, from, to, TALL, weights + block % padded, 1, tall);
            pack(right + block * width, width, 0, width, WIDE, weights + block % padded, 0, wide);
            float *at = total; /* tile by tile */
            for (long j = 0; j < across; j++)
                for (long i = 0; i < last - first; i++, at += TALL * WIDE)
                    tile(tall + BLOCK * TALL * i, wide + BLOCK * WIDE * j, at);
        }
        for (long j = 0; j < across; j++)
            for (long i = from; i < to; i++) {
                const long columns = width - WIDE * j < WIDE ? width - WIDE * j : WIDE, strip = i / TALL - first;
                const float *row = total + ((j * (last - first) + strip) * TALL + i % TALL) * WIDE;
                memcpy(out + i * width + WIDE * j, row, sizeof(float) * columns);
            }
    }
}

/* ---- Rows times a matrix, and what follows it, in one go --------------------------------------------------------- */

enum { ROWS_AT_ONCE = 96 };

/* Strips of 16 columns of a matrix (inner, width) or of the transpose of one (width, inner), padded with zeros. */
void pack_matrix(const float *matrix, long inner, long width, int transposed, float *packed) {
    for (long start = 0; start < width; start += WIDE, packed += inner * WIDE) {
        const long columns = width - start < WIDE ? width - start : WIDE;
        if (columns < WIDE) memset(packed, 0, sizeof(float) * inner * WIDE);
        if (transposed)
            for (long j = 0; j < columns; j++)
                for (long k = 0; k < inner; k++) packed[WIDE * k + j] = matrix[(start + j) * inner + k];
        else
            for (long k = 0; k < inner; k++) memcpy(packed + WIDE * k, matrix + k * width + start, sizeof(float) * columns);
    }
}

/* x where `above` is above 0, slope · x elsewhere. */
static inline v8f sloped(v8f x, v8f above, float slope) {
    const v8i mask = above > 0.0f;
    return (v8f)(((v8i)x & mask) | ((v8i)(slope * x) & ~mask));
}

/* out = rows · matrix, and then, where there is one: + bias, LeakyReLU (leaky), times LeakyReLU's slope at `state`.
   rows (count, inner), packed by pack_matrix, out and state (count, width), perhaps the same.
   What a row gives depends on nothing but that row. */
void rows_times(const float *rows, long count, long inner, const float *packed, long width, const float *bias,
                const float *state, int leaky, float slope, float *out, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
    for (long start = 0; start < count; start += ROWS_AT_ONCE) {
        const long stop = count - start < ROWS_AT_ONCE ? count : start + ROWS_AT_ONCE;
        for (long j = 0; j < width; j += WIDE)
            for (long i = start; i < stop; i += TALL) {
                const long height = stop - i < TALL ? stop - i : TALL, columns = width - j < WIDE ? width - j : WIDE;
                const float *strip = packed + inner * j, *at[TALL];
                for (int r = 0; r < TALL; r++) at[r] = rows + inner * (i + (r < height ? r : 0));
                v8f held[TALL][2];
                for (int r = 0; r < TALL; r++) held[r][0] = held[r][1] = (v8f){0};
                for (long k = 0; k < inner; k++) {
                    const v8f first = *(const v8f *)(strip + WIDE * k), second = *(const v8f *)(strip + WIDE * k + 8);
#pragma GCC unroll 6
                    for (int r = 0; r < TALL; r++) {
                        const float a = at[r][k];
                        held[r][0] += a * first;
                        held[r][1] += a * second;
                    }
                }
                for (long r = 0; r < height; r++)
                    for (long half = 0; half < 2; half++) {
                        const long c = j + 8 * half, place = (i + r) * width + c, there = columns - 8 * half;
                        v8f sum = held[r][half], other = {0};
                        if (there >= 8) {
                            if (bias) sum += *(const v8f *)(bias + c);
                            if (leaky) sum = sloped(sum, sum, slope);
                            if (state) sum = sloped(sum, *(const v8f *)(state + place), slope);
                            *(v8f *)(out + place) = sum;
                        } else if (there > 0) {
                            const unsigned long bytes = sizeof(float) * there;
                            if (bias) memcpy(&other, bias + c, bytes), sum += other;
                            if (leaky) sum = sloped(sum, sum, slope);
                            if (state) memcpy(&other, state + place, bytes), sum = sloped(sum, other, slope);
                            memcpy(out + place, &sum, bytes);
                        }
                    }
            }
    }
}

/* ---- Gram matrices of float32 rows in float64 --------------------------------------------------------------------- */

static inline double add_up(v4d x) { return (x[0] + x[1]) + (x[2] + x[3]); }

static inline v4d widened(const float *at) { return __builtin_convertvector(*(const v4f *)at, v4d); }

static double dot(const float *restrict a, const float *restrict b, long size) {
    v4d sum = {0};
    long j = 0;
    for (; j + 4 <= size; j += 4) sum += widened(a + j) * widened(b + j);
    double total = add_up(sum);
    for (; j < size; j++) total += (double)a[j] * b[j];
    return total;
}

/* The six products of three rows with one another: 00 11 22 01 02 12. */
static void three(const float *restrict a, const float *restrict b, const float *restrict c, long size, double *out) {
    v4d sums[6] = {{0}};
    long j = 0;
    for (; j + 4 <= size; j += 4) {
        const v4d x = widened(a + j), y = widened(b + j), z = widened(c + j);
        sums[0] += x * x;
        sums[1] += y * y;
        sums[2] += z * z;
        sums[3] += x * y;
        sums[4] += x * z;
        sums[5] += y * z;
    }
    for (int k = 0; k < 6; k++) out[k] = add_up(sums[k]);
    for (; j < size; j++) {
        const double x = a[j], y = b[j], z = c[j];
        out[0] += x * x;
        out[1] += y * y;
        out[2] += z * z;
        out[3] += x * y;
        out[4] += x * z;
        out[5] += y * z;
    }
}

/* Products of the rows of one unit with one another, (rank, rank): kinds and rows of a unit. */
static void gram(const float *restrict first, long kinds, long padded, long size, long per_unit, double *restrict out) {
    const long rank = kinds * per_unit;
    if (kinds == 3 && per_unit == 1) {
        double six[6];
        three(first, first + padded * size, first + 2 * padded * size, size, six);
        const double full[9] = {six[0], six[3], six[4], six[3], six[1], six[5], six[4], six[5], six[2]};
        memcpy(out, full, sizeof full);
        return;
    }
    for (long k = 0; k < rank; k++)
        for (long l = 0; l <= k; l++)
            out[k * rank + l] = out[l * rank + k] = dot(first + ((k / per_unit) * padded + k % per_unit) * size,
                                                        first + ((l / per_unit) * padded + l % per_unit) * size, size);
}

enum { LARGEST_RANK = 8 };

/* Per unit, for the matrix Σ_k left_k right_kᵀ: its squared norm by Gram matrices, the sum of its products' norms, and
   the longest of their factors, squared. Factors (kinds, padded, height or width): unit u has rows u·per_unit, …. */
void product_norms(const float *left, const float *right, long kinds, long padded, long height, long width, long units,
                   long per_unit, double *squared, double *products, double *longest, int threads) {
    const long rank = kinds * per_unit;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (long unit = 0; unit < units; unit++) {
        double a[LARGEST_RANK * LARGEST_RANK], b[LARGEST_RANK * LARGEST_RANK];
        gram(left + unit * per_unit * height, kinds, padded, height, per_unit, a);
        gram(right + unit * per_unit * width, kinds, padded, width, per_unit, b);
        double square = 0.0, lengths = 0.0, most = 0.0;
        for (long k = 0; k < rank * rank; k++) square += a[k] * b[k];
        for (long k = 0; k < rank; k++) {
            const double x = a[k * (rank + 1)], y = b[k * (rank + 1)];
            lengths += __builtin_sqrt(x * y);
            if (most == most && !(x <= most)) most = x; /* keeps NaN */
            if (most == most && !(y <= most)) most = y;
        }
        squared[unit] = square;
        products[unit] = lengths;
        longest[unit] = most;
    }
}

/* out[column] = Σ_row weights[row] · rows[row][column] in float64; a row of weight 0 is not read. */
void weighted_row_sum(const float *rows, const double *weights, long count, long size, double *restrict out) {
    memset(out, 0, sizeof(double) * size);
    for (long row = 0; row < count; row++) {
        const double weight = weights[row];
        if (weight == 0.0) continue;
        const float *at = rows + row * size;
        for (long j = 0; j < size; j++) out[j] += weight * at[j];
    }
}

/* out (count, size) = Σ_k ± terms_k over kinds of terms (kinds, padded, size), with - where the bit of `minus` is set;
   squares (count,) = Σ_j out_j² in float64. */
void add_kinds(const float *terms, long kinds, long padded, long count, long size, long minus, float *restrict out,
               double *squares, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
    for (long row = 0; row < count; row++) {
        float *restrict sum = out + row * size;
        memset(sum, 0, sizeof(float) * size);
        for (long k = 0; k < kinds; k++) {
            const float *term = terms + (k * padded + row) * size, sign = minus >> k & 1 ? -1.0f : 1.0f;
            for (long j = 0; j < size; j++) sum[j] += sign * term[j];
        }
        squares[row] = dot(sum, sum, size);
    }
}

/* ---- Normals from a keystream: Box and Muller in float64 ---------------------------------------------------------- */

static inline double bits_as_double(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t double_as_bits(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* (k + ½)·2⁻⁵³ with k the low 53 bits of a word; in two halves, because AVX2 converts no 64-bit integers. */
static inline double uniform(uint64_t word) {
    const double two52 = 4503599627370496.0;
    const uint64_t exponent = 0x4330000000000000u;
    const double low = bits_as_double((word & 0xffffffffu) | exponent) - two52;
    const double high = bits_as_double(((word >> 32) & 0x1fffffu) | exponent) - two52;
    return ((high * 4294967296.0 + low) + 0.5) * 0x1p-53;
}

/* ln u for a normal u in (0, 1], as in fdlibm's e_log.c: below one unit in the last place. */
static inline double logarithm(double u) {
    const uint64_t bits = double_as_bits(u);
    const uint64_t above = bits - 0x3fe6a09e667f3bcdu; /* of √½: the mantissa lies in [√½, √2) */
    const uint64_t shifted = above + 0x4000000000000000u;
    const double exponent = bits_as_double((shifted >> 52) | 0x4330000000000000u) - (4503599627370496.0 + 1024.0);
    const double m = bits_as_double(bits - (((shifted >> 52) - 1024u) << 52));
    const double f = m - 1.0, s = f / (2.0 + f), z = s * s;
    const double poly =
        z * (6.666666666666735130e-01 +
             z * (3.999999999940941908e-01 +
                  z * (2.857142874366239149e-01 +
                       z * (2.222219843214978396e-01 +
                            z * (1.818357216161805012e-01 +
                                 z * (1.531383769920937332e-01 + z * 1.479819860511658591e-01))))));
    const double half = 0.5 * f * f;
    return exponent * 6.93147180369123816490e-01 -
           ((half - (s * (half + poly) + exponent * 1.90821492927058770002e-10)) - f);
}

/* For every pair: cosines[i] = r·cos 2πv and sines[i] = r·sin 2πv with r = √(-2 ln u), u and v from two words. */
void box_muller(const uint64_t *restrict first, const uint64_t *restrict second, long pairs, double *restrict cosines,
                double *restrict sines, int threads) {
#pragma omp parallel for simd num_threads(threads) schedule(static)
    for (long i = 0; i < pairs; i++) {
        const double radius = __builtin_sqrt(-2.0 * logarithm(uniform(first[i])));
        const double v = uniform(second[i]);
        /* The nearest quarter turn, exactly; then fdlibm's k_sin.c and k_cos.c on [-π/4, π/4]. */
        const double shifted = 4.0 * v + 6755399441055744.0; /* 3·2⁵¹: rounds to a whole number in the low bits */
        const uint64_t quarter = double_as_bits(shifted);
        const double x = (v - 0.25 * (shifted - 6755399441055744.0)) * 6.283185307179586477, z = x * x;
        const double sine =
            x + x * z *
                    (-1.66666666666666324348e-01 +
                     z * (8.33333333332248946124e-03 +
                          z * (-1.98412698298579493134e-04 +
                               z * (2.75573137070700676789e-06 +
                                    z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)))));
        const double cosine =
            1.0 - (0.5 * z - z * z *
                                 (4.16666666666666019037e-02 +
                                  z * (-1.38888888888741095749e-03 +
                                       z * (2.48015872894767294178e-05 +
                                            z * (-2.75573143513906633035e-07 +
                                                 z * (2.08757232129817482790e-09 +
                                                      z * -1.13596475577881948265e-11))))));
        const uint64_t swap = 0u - (quarter & 1u);
        const uint64_t s = double_as_bits(sine), c = double_as_bits(cosine);
        const uint64_t cosine_sign = ((quarter + 1u) & 2u) << 62, sine_sign = (quarter & 2u) << 62;
        cosines[i] = radius * bits_as_double(((s & swap) | (c & ~swap)) ^ cosine_sign);
        sines[i] = radius * bits_as_double(((c & swap) | (s & ~swap)) ^ sine_sign);
    }
}
