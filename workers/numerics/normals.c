/* Normals from a keystream: Box and Muller in float64. compiling.py compiles it, kernels.py calls it. */

#include <stdint.h>
#include <string.h>

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
