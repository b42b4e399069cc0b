/* The clipped sum of a perceptron critic's gradients, with the gradient penalty inside: the formulas of
   mechanism/outer_products.py, block by block, so that nothing but the sum leaves a core's cache. compiling.py compiles
   it, kernels.py calls it.

   ROWS, BLOCKS_IN_FLOAT32 and DEEPEST are given by compiling.py: bounds on rounding are computed from them there.

   Plain C with the vector types of GCC and Clang; no library's header. Which block of units goes to which
   thread depends on nothing but their numbers. */

#include <stdint.h>
#include <string.h>

#include "registers.h"

typedef int32_t masks __attribute__((vector_size(4 * LANES), aligned(4)));

/* ---- Rows in a core's cache -------------------------------------------------------------------------------------- */

/* G(z), x and x̂ of as many rows go through all layers together, and never leave the cache: row r of kind k of a layer
   is at (k·ROWS + r)·stride. Behind a row's numbers are zeros or nothing that counts, behind the last kind room for
   a tile. */
enum { KINDS = 3, HELD = KINDS * ROWS + TALL };
enum { FAKE, REAL, BETWEEN };

/* Not a power of two, so that the same place of different rows falls into different sets of the cache. */
static long stride_of(long size) { return rounded_up(size, WIDE) + 16; }

/* x where `above` is above 0, slope · x elsewhere. */
static inline floats sloped(floats x, floats above, float slope) {
    const masks mask = above > 0.0f;
    return (floats)(((masks)x & mask) | ((masks)(slope * x) & ~mask));
}

/* A thread's share of something: from `part` of `parts` to the next. */
struct share {
    int part, parts;
};

static long first_of(struct share share, long size) { return size * share.part / share.parts; }

static long end_of(struct share share, long size) { return size * (share.part + 1) / share.parts; }

/* A share of the strips of WIDE columns of a matrix (inner, width) or of the transpose of one (width, inner), padded with
   zeros. */
static void pack_matrix(const float *matrix, long inner, long width, int transposed, struct share share, float *packed) {
    const long strips = rounded_up(width, WIDE) / WIDE, first = first_of(share, strips);
    packed += first * inner * WIDE;
    for (long strip = first; strip < end_of(share, strips); strip++, packed += inner * WIDE) {
        const long start = strip * WIDE, columns = width - start < WIDE ? width - start : WIDE;
        if (columns < WIDE) memset(packed, 0, sizeof(float) * inner * WIDE);
        if (transposed)
            for (long j = 0; j < columns; j++)
                for (long k = 0; k < inner; k++) packed[WIDE * k + j] = matrix[(start + j) * inner + k];
        else
            for (long k = 0; k < inner; k++) memcpy(packed + WIDE * k, matrix + k * width + start, sizeof(float) * columns);
    }
}

/* out = rows · matrix, and then, where there is one: + bias, LeakyReLU (leaky), times LeakyReLU's slope at `state`,
   which may be `out` itself. What a row gives depends on nothing but that row. Whole tiles of rows are written. */
apart static void rows_times(const float *rows, long count, long inner, const float *packed, long width,
                             const float *bias, const float *state, int leaky, float slope, float *out) {
    const long from = stride_of(inner), to = stride_of(width);
    for (long j = 0; j < width; j += WIDE, packed += inner * WIDE)
        for (long i = 0; i < count; i += TALL) {
            floats held[TALL][2];
            for (int r = 0; r < TALL; r++) held[r][0] = held[r][1] = (floats){0};
            const float *at = rows + from * i, *strip = packed;
            for (long k = 0; k < inner; k++, at++, strip += WIDE) {
                const floats first = *(const floats *)strip, second = *(const floats *)(strip + LANES);
#pragma GCC unroll 12
                for (int r = 0; r < TALL; r++) {
                    const float a = at[from * r];
                    held[r][0] += a * first;
                    held[r][1] += a * second;
                }
            }
            for (long r = 0; r < TALL; r++)
                for (long half = 0; half < 2; half++) {
                    const long column = j + LANES * half, place = (i + r) * to + column;
                    floats sum = held[r][half];
                    if (bias) sum += *(const floats *)(bias + column);
                    if (leaky) sum = sloped(sum, sum, slope);
                    if (state) sum = sloped(sum, *(const floats *)(state + place), slope);
                    *(floats *)(out + place) = sum;
                }
        }
}

/* ---- Products of float32 rows in float64 ------------------------------------------------------------------------- */

static double dot(const float *restrict a, const float *restrict b, long size) {
    doubles sum = {0};
    long j = 0;
    for (; j + HALF <= size; j += HALF) sum += widened(a + j) * widened(b + j);
    double total = add_up(sum);
    for (; j < size; j++) total += (double)a[j] * b[j];
    return total;
}

/* The six products of three rows with one another: 00 11 22 01 02 12. */
static void six_dots(const float *restrict a, const float *restrict b, const float *restrict c, long size, double *out) {
    doubles sums[6] = {{0}};
    long j = 0;
    for (; j + HALF <= size; j += HALF) {
        const doubles x = widened(a + j), y = widened(b + j), z = widened(c + j);
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

/* ---- What is asked for, and the memory to work in ------------------------------------------------------------------ */

struct critic {
    long layers;                                 /* hidden ones, at most DEEPEST */
    const long *sizes;                           /* d_0 … d_layers */
    const float *const *weights, *const *biases; /* W_1, b_1, …; one weight more than biases, of a single row */
    float slope;                                 /* of LeakyReLU */
};

struct draw {
    const float *fake, *real, *mix; /* (rows, d_0) twice, and (rows,); those of a unit are side by side */
    const uint8_t *present;         /* (rows,) */
    long units, rows_per_unit;      /* of which a unit has at most ROWS */
};

/* How units are weighted: tensor m of unit i by min(1, largest_norms[group_of[m]] / norm of its tensors of
   that group), or as said. */
struct weighting {
    const double *given; /* (units, tensors), or none */
    const long *group_of;
    const double *largest_norms;
    long groups;
    double smallest_factor; /* less is 0 */
};

struct limits {
    double largest_norm, largest_cancellation, float32_cancellation;
};

/* What all threads read, padded. */
struct shared {
    float *up[DEEPEST + 1], *down[DEEPEST + 1], *biases[DEEPEST + 1], *last;
};

/* A thread's own memory: rows of every layer, what they add to its weight and bias, and a unit's gradient by its bias. */
struct own {
    float *h[DEEPEST + 1], *u[DEEPEST + 1], *products[DEEPEST + 2], *of_unit[DEEPEST + 2];
    double *vectors[DEEPEST + 2];
};

/* Memory that is handed out piece by piece; without a start it is only counted. */
struct arena {
    float *start;
    long taken;
};

static float *take(struct arena *arena, long size) {
    float *piece = arena->start ? arena->start + arena->taken : 0;
    arena->taken += rounded_up(size, 16);
    return piece;
}

static void take_shared(struct arena *arena, const struct critic *critic, struct shared *shared) {
    const long *d = critic->sizes, layers = critic->layers;
    for (long l = 1; l <= layers; l++) {
        shared->up[l] = take(arena, d[l - 1] * rounded_up(d[l], WIDE));
        shared->down[l] = take(arena, d[l] * rounded_up(d[l - 1], WIDE));
        shared->biases[l] = take(arena, rounded_up(d[l], WIDE));
    }
    shared->last = take(arena, rounded_up(d[layers], WIDE));
}

static void take_own(struct arena *arena, const struct critic *critic, struct own *own) {
    const long *d = critic->sizes, layers = critic->layers;
    for (long l = 0; l <= layers; l++) own->h[l] = take(arena, HELD * stride_of(d[l]));
    for (long l = 1; l <= layers; l++) {
        own->u[l] = take(arena, HELD * stride_of(d[l]));
        own->products[l] = take(arena, rounded_up(d[l], TALL) * rounded_up(d[l - 1], WIDE));
    }
    for (long l = 1; l <= layers + 1; l++) {
        const long size = d[l <= layers ? l : layers];
        own->of_unit[l] = take(arena, size);
        own->vectors[l] = (double *)take(arena, 2 * size);
    }
}

static void copy_padded(const float *from, long size, float *to) {
    memset(to, 0, sizeof(float) * rounded_up(size, WIDE));
    memcpy(to, from, sizeof(float) * size);
}

static void fill(const struct critic *critic, struct share share, const struct shared *shared) {
    const long *d = critic->sizes, layers = critic->layers;
    for (long l = 1; l <= layers; l++) {
        pack_matrix(critic->weights[l - 1], d[l - 1], d[l], 1, share, shared->up[l]);
        pack_matrix(critic->weights[l - 1], d[l], d[l - 1], 0, share, shared->down[l]);
        if (share.part == 0) copy_padded(critic->biases[l - 1], d[l], shared->biases[l]);
    }
    if (share.part == 0) copy_padded(critic->weights[layers], d[layers], shared->last);
}

/* ---- One block of units -------------------------------------------------------------------------------------------- */

/* The rows of one block through all layers: h at G(z) and x, and in the place of h(x̂) the tangents q; u at all three.
   finite[r] says whether the activations of row r at x̂ are. */
static void pass(const struct critic *critic, const struct shared *shared, const struct own *own, const struct draw *draw,
                 long first, long rows, float penalty, uint8_t *finite) {
    const long *d = critic->sizes, layers = critic->layers;
    const float slope = critic->slope;
    for (long r = 0; r < ROWS; r++) {
        float *fake = own->h[0] + (FAKE * ROWS + r) * stride_of(d[0]), *real = fake + ROWS * stride_of(d[0]);
        if (r < rows && draw->present[first + r]) {
            memcpy(fake, draw->fake + (first + r) * d[0], sizeof(float) * d[0]);
            memcpy(real, draw->real + (first + r) * d[0], sizeof(float) * d[0]);
        } else {
            memset(fake, 0, sizeof(float) * d[0]);
            memset(real, 0, sizeof(float) * d[0]);
        }
    }

    /* Forward. The first layer is affine, so a_1(x̂) = e·a_1(x) + (1 - e)·a_1(Gz) needs no third product. */
    float *h = own->h[1];
    const long kind = ROWS * stride_of(d[1]);
    rows_times(own->h[0], 2 * ROWS, d[0], shared->up[1], d[1], shared->biases[1], 0, 0, slope, h);
    for (long r = 0; r < ROWS; r++) {
        const float mix = r < rows ? draw->mix[first + r] : 0.0f;
        float *row = h + r * stride_of(d[1]);
        for (long j = 0; j < rounded_up(d[1], LANES); j += LANES) {
            const floats fake = *(floats *)(row + j), real = *(floats *)(row + kind + j);
            *(floats *)(row + 2 * kind + j) = sloped(fake + mix * (real - fake), fake + mix * (real - fake), slope);
            *(floats *)(row + j) = sloped(fake, fake, slope);
            *(floats *)(row + kind + j) = sloped(real, real, slope);
        }
    }
    for (long l = 2; l <= layers; l++)
        rows_times(own->h[l - 1], KINDS * ROWS, d[l - 1], shared->up[l], d[l], shared->biases[l], 0, 1, slope, own->h[l]);

    /* q will take the place of h(x̂), and a slope hides an overflow. One in an earlier layer has reached the last. */
    const long end = stride_of(d[layers]);
    for (long r = 0; r < rows; r++) {
        floats sums = {0};
        for (long j = 0; j < rounded_up(d[layers], LANES); j += LANES)
            sums += *(const floats *)(own->h[layers] + (BETWEEN * ROWS + r) * end + j);
        float sum = 0.0f;
        for (int j = 0; j < LANES; j++) sum += sums[j];
        finite[r] = sum - sum == 0.0f;
    }

    /* Backward: u_l = m_l ⊙ W_{l+1}ᵀ u_{l+1}, from u_L = 1 at G(z) and x̂, -1 at x. The sign of h is that of a. */
    for (long r = 0; r < KINDS * ROWS; r++)
        for (long j = 0; j < rounded_up(d[layers], LANES); j += LANES) {
            const floats last = *(const floats *)(shared->last + j);
            *(floats *)(own->u[layers] + r * end + j) =
                sloped(r / ROWS == REAL ? -last : last, *(const floats *)(own->h[layers] + r * end + j), slope);
        }
    for (long l = layers; l > 1; l--)
        rows_times(own->u[l], KINDS * ROWS, d[l], shared->down[l], d[l - 1], 0, own->h[l - 1], 0, slope, own->u[l - 1]);

    /* Penalty: r = 2λ(‖g‖ - 1)/‖g‖·g, 0 where g = 0; then the tangents q_0 … q_{L-1}. */
    float *pull = own->h[0] + BETWEEN * ROWS * stride_of(d[0]);
    rows_times(own->u[1] + BETWEEN * kind, ROWS, d[1], shared->down[1], d[0], 0, 0, 0, slope, pull);
    for (long r = 0; r < ROWS; r++) {
        float *row = pull + r * stride_of(d[0]);
        const double length = __builtin_sqrt(dot(row, row, d[0]));
        const float factor = length == 0.0 ? 0.0f : (float)(2.0 * penalty * (length - 1.0) / length); /* NaN stays */
        for (long j = 0; j < d[0]; j++) row[j] *= factor;
    }
    for (long l = 1; l <= layers; l++) {
        float *tangents = own->h[l] + BETWEEN * ROWS * stride_of(d[l]);
        rows_times(own->h[l - 1] + BETWEEN * ROWS * stride_of(d[l - 1]), ROWS, d[l - 1], shared->up[l], d[l], 0, tangents,
                   0, slope, tangents);
    }
}

/* Rows of one unit of the places that its gradient comes from; those that are not present are left out. */
struct factors {
    const float *left[KINDS * ROWS], *right[KINDS * ROWS];
    long rank;
};

static void find_factors(const struct own *own, long layer, const long *d, const uint8_t *present, long start, long rows,
                         int first_kind, struct factors *factors) {
    factors->rank = 0;
    for (long kind = first_kind; kind < KINDS; kind++)
        for (long r = start; r < start + rows; r++)
            if (present[r]) {
                factors->left[factors->rank] = own->u[layer] + (kind * ROWS + r) * stride_of(d[layer]);
                factors->right[factors->rank++] = own->h[layer - 1] + (kind * ROWS + r) * stride_of(d[layer - 1]);
            }
}

/* An upper bound on the norm of Σ_k left_k right_kᵀ from Gram matrices in float64; NaN beyond the limit. They cancel
   where the products do: float64's own error is added. What cancels still rounds: where the products are far longer
   than their sum, they set the norm. `cancels`: too much for float32. */
static double product_norm(const struct factors *factors, long height, long width, const struct limits *limits,
                           uint8_t *cancels) {
    const long rank = factors->rank;
    double squared = 0.0, lengths = 0.0, longest = 0.0;
    int known = 1; /* no NaN among the factors */
    if (rank == 3) {
        double a[6], b[6];
        six_dots(factors->left[0], factors->left[1], factors->left[2], height, a);
        six_dots(factors->right[0], factors->right[1], factors->right[2], width, b);
        for (int k = 0; k < 6; k++) squared += (k < 3 ? 1.0 : 2.0) * a[k] * b[k];
        for (int k = 0; k < 3; k++) {
            lengths += __builtin_sqrt(a[k] * b[k]);
            known &= a[k] == a[k] && b[k] == b[k];
            longest = a[k] > longest ? a[k] : longest;
            longest = b[k] > longest ? b[k] : longest;
        }
    } else
        for (long k = 0; k < rank; k++)
            for (long l = 0; l <= k; l++) {
                const double a = dot(factors->left[k], factors->left[l], height);
                const double b = dot(factors->right[k], factors->right[l], width);
                squared += (k == l ? 1.0 : 2.0) * a * b;
                if (k > l) continue;
                lengths += __builtin_sqrt(a * b);
                known &= a == a && b == b;
                longest = a > longest ? a : longest;
                longest = b > longest ? b : longest;
            }
    /* A product of moderate length may hide a factor that overflows, or that underflows once it is scaled. */
    if (!known || !(longest <= limits->largest_norm * limits->largest_norm)) return __builtin_nan("");
    const double error = lengths * lengths * (height + width + rank * rank + 16) * 0x1p-52;
    const double by_grams = __builtin_sqrt((squared > 0.0 ? squared : 0.0) + error);
    const double by_products = lengths / limits->largest_cancellation;
    const double norm = by_grams > by_products ? by_grams : by_products;
    *cancels = lengths > limits->float32_cancellation * norm;
    return norm;
}

#ifdef WITHOUT_NORMS /* bench/step asks what the same loops take without privacy */
#define product_norm(...) 0.0
#endif

/* sum (size,) = Σ over a unit's rows of the kinds, x with the sign `at_real`; returns an upper bound on its norm. */
static double add_rows(const float *rows, long size, const uint8_t *present, long start, long count, int first_kind,
                       int last_kind, float at_real, const struct limits *limits, float *restrict sum) {
    memset(sum, 0, sizeof(float) * size);
    for (long kind = first_kind; kind <= last_kind; kind++)
        for (long r = start; r < start + count; r++) {
            const float *row = rows + (kind * ROWS + r) * stride_of(size), sign = kind == REAL ? at_real : 1.0f;
            if (present[r])
                for (long j = 0; j < size; j++) sum[j] += sign * row[j];
        }
    const double norm = __builtin_sqrt(dot(sum, sum, size)) * (1.0 + (size + 8) * 0x1p-52);
    return norm <= limits->largest_norm ? norm : __builtin_nan("");
}

/* The factor of every tensor of a unit. */
static void weigh(const double *norms, long tensors, const struct weighting *weighting, double *weights) {
    for (long group = 0; group < weighting->groups; group++) {
        double squared = 0.0;
        for (long m = 0; m < tensors; m++)
            if (weighting->group_of[m] == group) squared += norms[m] * norms[m];
        const double norm = __builtin_sqrt(squared), allowed = weighting->largest_norms[group];
        double factor = norm > allowed ? allowed / norm : 1.0;
        if (factor < weighting->smallest_factor) factor = 0.0;
        for (long m = 0; m < tensors; m++)
            if (weighting->group_of[m] == group) weights[m] = factor;
    }
}

/* What the rows add to a weight: Σ weight · left rightᵀ, in float32; what cancels goes to the sums in float64. Overwrites
   the rows. */
static void add_products(const struct own *own, long layer, const long *d, long rows, int first_kind, const double *weights,
                         const uint8_t *cancels, double *sums) {
    const long height = d[layer], width = d[layer - 1], ls = stride_of(height), rs = stride_of(width);
    for (long r = 0; r < ROWS; r++)
        for (long kind = first_kind; kind < KINDS; kind++) {
            float *left = own->u[layer] + (kind * ROWS + r) * ls, *right = own->h[layer - 1] + (kind * ROWS + r) * rs;
            const double weight = r < rows ? weights[r] : 0.0;
            if (weight != 0.0 && !cancels[r]) {
                const float factor = (float)weight;
                if (factor != 1.0f)
                    for (long i = 0; i < height; i++) left[i] *= factor;
                continue;
            }
            if (weight != 0.0) {
#pragma omp critical
                for (long i = 0; i < height; i++)
                    for (long j = 0; j < width; j++) sums[i * width + j] += weight * left[i] * right[j];
            }
            memset(left, 0, sizeof(float) * height); /* 0 · inf would leave NaN */
            memset(right, 0, sizeof(float) * width);
        }
    float *total = own->products[layer];
    for (long j = 0; j < width; j += WIDE)
        for (long i = 0; i < height; i += TALL, total += TALL * WIDE)
            tile(own->u[layer] + first_kind * ROWS * ls + i, ls, own->h[layer - 1] + first_kind * ROWS * rs + j, rs,
                 (KINDS - first_kind) * ROWS, total);
}

static void add_vector(const float *vector, long size, double weight, double *restrict sums) {
    if (weight == 0.0) return; /* of a vector that may hold NaN */
    for (long j = 0; j < size; j++) sums[j] += weight * vector[j];
}

static void add_block(const struct critic *critic, const struct shared *shared, const struct own *own,
                      const struct draw *draw, int first_kind, float penalty, const struct weighting *weighting,
                      const struct limits *limits, long first, long units, double *norms, uint8_t *contributes,
                      double *sums) {
    const long *d = critic->sizes, layers = critic->layers, tensors = 2 * layers + 1, each = draw->rows_per_unit;
    const uint8_t *present = draw->present + first * each;
    uint8_t finite[ROWS], cancels[DEEPEST + 1][ROWS] = {{0}};
    double of_row[DEEPEST + 1][ROWS];
    pass(critic, shared, own, draw, first * each, units * each, penalty, finite);
    for (long unit = 0; unit < units; unit++) {
        const long start = unit * each;
        double *norm = norms + (first + unit) * tensors, weights[2 * DEEPEST + 1] = {0};
        int usable = 0, fine = 1;
        for (long r = start; r < start + each; r++) {
            usable |= present[r];
            fine &= finite[r] || !present[r];
        }
        for (long l = 1; l <= layers; l++) {
            struct factors factors;
            uint8_t cancelling = 0;
            find_factors(own, l, d, present, start, each, first_kind, &factors);
            norm[2 * l - 2] = product_norm(&factors, d[l], d[l - 1], limits, &cancelling);
            norm[2 * l - 1] = add_rows(own->u[l], d[l], present, start, each, first_kind, REAL, 1.0f, limits,
                                       own->of_unit[l]);
            memset(cancels[l] + start, cancelling, each);
        }
        norm[2 * layers] = add_rows(own->h[layers], d[layers], present, start, each, first_kind, BETWEEN, -1.0f, limits,
                                    own->of_unit[layers + 1]);
        for (long m = 0; m < tensors; m++) fine &= norm[m] <= limits->largest_norm; /* not NaN */
        contributes[first + unit] = usable && fine;
        if (!sums) continue;
        if (usable && fine) {
            if (weighting->given)
                memcpy(weights, weighting->given + (first + unit) * tensors, sizeof(double) * tensors);
            else
                weigh(norm, tensors, weighting, weights);
        }
        for (long l = 1; l <= layers; l++) {
            for (long r = start; r < start + each; r++) of_row[l][r] = present[r] ? weights[2 * l - 2] : 0.0;
            add_vector(own->of_unit[l], d[l], weights[2 * l - 1], own->vectors[l]);
        }
        add_vector(own->of_unit[layers + 1], d[layers], weights[2 * layers], own->vectors[layers + 1]);
    }
    if (!sums) return;
    for (long l = 1; l <= layers; l++) {
        add_products(own, l, d, units * each, first_kind, of_row[l], cancels[l], sums);
        sums += d[l] * d[l - 1] + d[l];
    }
}

/* ---- All of them ------------------------------------------------------------------------------------------------------ */

static void clear_sums(const struct critic *critic, const struct own *own) {
    const long *d = critic->sizes, layers = critic->layers;
    for (long l = 1; l <= layers; l++)
        memset(own->products[l], 0, sizeof(float) * rounded_up(d[l], TALL) * rounded_up(d[l - 1], WIDE));
    for (long l = 1; l <= layers + 1; l++) memset(own->vectors[l], 0, sizeof(double) * d[l <= layers ? l : layers]);
}

/* What the threads have added up goes to the sums of all, a share of every tensor at a time. */
static void hand_in(const struct critic *critic, const struct own *owns, struct share share, double *restrict sums) {
    const long *d = critic->sizes, layers = critic->layers;
    for (long l = 1; l <= layers + 1; l++) {
        const long height = d[l <= layers ? l : layers], width = l <= layers ? d[l - 1] : 0;
        for (int part = 0; part < share.parts; part++) {
            const float *strip = owns[part].products[l];
            for (long j = 0; j < width; j += WIDE, strip += rounded_up(height, TALL) * WIDE) {
                const long columns = width - j < WIDE ? width - j : WIDE;
                for (long i = first_of(share, height); i < end_of(share, height); i++)
                    for (long c = 0; c < columns; c++) sums[i * width + j + c] += strip[i * WIDE + c];
            }
        }
        sums += height * width;
        for (int part = 0; part < share.parts; part++)
            for (long i = first_of(share, height); i < end_of(share, height); i++) sums[i] += owns[part].vectors[l][i];
        sums += height;
    }
}

/* Floats that `perceptron_gradients` works in. */
long space_for(const struct critic *critic, int threads) {
    struct arena arena = {0};
    struct shared shared;
    struct own own;
    take_shared(&arena, critic, &shared);
    for (int part = 0; part < threads; part++) take_own(&arena, critic, &own);
    return arena.taken;
}

/* Norms (units, tensors) and contributes (units,) of every unit; and with sums, Σ_i weight_i,m · g_i,m is added to them,
   tensor after tensor in the order of W_1, b_1, …, W_{layers + 1}. paired: with D(G(z)). */
void perceptron_gradients(const struct critic *critic, const struct draw *draw, int paired, float penalty,
                          const struct weighting *weighting, const struct limits *limits, double *norms,
                          uint8_t *contributes, double *sums, float *space, int threads) {
    const long per_block = ROWS / draw->rows_per_unit, blocks = (draw->units + per_block - 1) / per_block;
    struct arena arena = {space, 0};
    struct shared shared;
    struct own own[threads];
    take_shared(&arena, critic, &shared);
    for (int part = 0; part < threads; part++) take_own(&arena, critic, &own[part]);
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int part = 0; part < threads; part++) fill(critic, (struct share){part, threads}, &shared);
    for (long start = 0; start < blocks; start += (long)BLOCKS_IN_FLOAT32 * threads) {
        const long left = blocks - start, now = left < BLOCKS_IN_FLOAT32 * threads ? left : BLOCKS_IN_FLOAT32 * threads;
#pragma omp parallel for num_threads(threads) schedule(static, 1)
        for (int part = 0; part < threads; part++) {
            const struct share share = {part, threads};
            if (sums) clear_sums(critic, &own[part]);
            for (long at = start + first_of(share, now); at < start + end_of(share, now); at++) {
                const long first = at * per_block, units = draw->units - first;
                add_block(critic, &shared, &own[part], draw, paired ? FAKE : REAL, penalty, weighting, limits, first,
                          units < per_block ? units : per_block, norms, contributes, sums);
            }
        }
        if (!sums) continue;
#pragma omp parallel for num_threads(threads) schedule(static, 1)
        for (int part = 0; part < threads; part++) hand_in(critic, own, (struct share){part, threads}, sums);
    }
}
