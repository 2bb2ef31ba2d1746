/* fl_normals_plain in vector registers of BITS bits, as the function LANES: normals.c includes this once for each width
 * that it has. Every operation is that of the plain form, in its order. */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define REALS JOIN(JOIN(__m, BITS), d)
#define V(operation) JOIN(JOIN(JOIN(_mm, BITS), _), operation)
#define I(operation, a, b) V(JOIN(operation, JOIN(_si, BITS)))(a, b)
#define INTEGERS_OF(x) V(JOIN(castpd_si, BITS))(x)
#define REALS_OF(x) V(JOIN(JOIN(castsi, BITS), _pd))(x)
#define ALL(bits) INTEGERS_OF(V(set1_pd)(of_bits(bits)))
#define HERE __attribute__((target(TARGET)))

HERE static inline REALS JOIN(horner_, BITS)(const double *coefficient, int count, REALS x) {
    REALS sum = V(set1_pd)(coefficient[0]);
    for (int i = 1; i < count; i++)
        sum = V(add_pd)(V(mul_pd)(sum, x), V(set1_pd)(coefficient[i]));
    return sum;
}

HERE static inline REALS JOIN(ln_, BITS)(REALS u) {
    const REALS one = V(set1_pd)(1);
    const JOIN(JOIN(__m, BITS), i) bits = V(add_epi64)(INTEGERS_OF(u), ALL(ONE - ROOT_HALF));
    const REALS k = V(sub_pd)(REALS_OF(I(or, V(srli_epi64)(bits, 52), ALL(TWO_52))), V(set1_pd)(BIASED));
    const REALS m = REALS_OF(V(add_epi64)(I(and, bits, ALL(FRACTION)), ALL(ROOT_HALF)));
    const REALS s = V(div_pd)(V(sub_pd)(m, one), V(add_pd)(m, one));
    const REALS sum = JOIN(horner_, BITS)(artanh, ARTANH, V(mul_pd)(s, s));
    return V(add_pd)(V(mul_pd)(k, V(set1_pd)(LN_2)), V(mul_pd)(V(mul_pd)(V(set1_pd)(2), s), sum));
}

HERE static inline REALS JOIN(cos_of_turns_, BITS)(REALS v) {
    const REALS off = REALS_OF(I(andnot, ALL(UINT64_C(1) << 63), INTEGERS_OF(V(sub_pd)(v, V(set1_pd)(0.5)))));
    const REALS angle = V(mul_pd)(V(set1_pd)(TURN), V(sub_pd)(off, V(set1_pd)(0.25)));
    return V(mul_pd)(angle, JOIN(horner_, BITS)(sine, SINE, V(mul_pd)(angle, angle)));
}

HERE static void LANES(const double *u, const double *v, double *value, size_t count) {
    for (size_t i = 0; i < count; i += BITS / 64) {
        const REALS square = V(mul_pd)(V(set1_pd)(-2), JOIN(ln_, BITS)(V(loadu_pd)(u + i)));
        V(storeu_pd)(value + i, V(mul_pd)(V(sqrt_pd)(square), JOIN(cos_of_turns_, BITS)(V(loadu_pd)(v + i))));
    }
}

#undef JOIN_
#undef JOIN
#undef REALS
#undef V
#undef I
#undef INTEGERS_OF
#undef REALS_OF
#undef ALL
#undef HERE
#undef BITS
#undef TARGET
#undef LANES
