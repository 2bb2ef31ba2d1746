/* What MF-GPOEO measures in a window, how windows are merged into a database, and the index that compares a window
 * with the database. Part of the second implementation; README.md says what that is. Times are nanoseconds in doubles.
 */
#pragma once

#include "policies/policy.h"

#include <stdbool.h>

/* ---- kinds ----
 * A product is one kind of kernel of one stream: name, rounded grid and block. A kind counts kernels of one product
 * (before = after), or the gaps between kernels of two products that followed each other. */
typedef struct ref_product {
    uint32_t stream, name_id;
    uint64_t grid, block;
} ref_product;

typedef struct ref_products {
    ref_product *at;
    size_t count, room;
} ref_products;

typedef struct ref_kind {
    uint32_t stream, before, after; /* before, after: indices of products */
    double count, sum_ns, squares;
} ref_kind;

typedef struct ref_kinds {
    ref_kind *at;
    size_t count, room;
} ref_kinds;

/* ---- a window, or several merged ones ---- */
enum { REF_POWER, REF_SM_CLOCK, REF_MEM_CLOCK, REF_UTIL, REF_MEM_UTIL, REF_READINGS };

typedef struct ref_data {
    double duration_ns, samples, kernels;
    double sum[REF_READINGS]; /* of whole watts, MHz, MHz, percent, percent */
    ref_kinds kernel, gap;
} ref_data;

void ref_data_free(ref_data *w);
void ref_products_free(ref_products *p);

/* The product of a kernel of `stream` on a GPU of `cores` cores; new ones are added. */
uint32_t ref_product_of(ref_products *p, uint32_t stream, const fl_kernel_kind *k, uint64_t cores);

/* One kernel, or one gap, of so many nanoseconds. */
void ref_count(ref_kinds *kinds, ref_kind key, double ns);

/* Mean of one reading over the samples; 0 where there are none. */
double ref_mean(const ref_data *w, int reading);

/* Merges `fresh` into `old` by the factor d, absolute or relative to their lengths. */
void ref_merge(ref_data *old, const ref_data *fresh, double d, bool relative);

typedef struct ref_index {
    double loss, exe, gap;
    double covered, matched, unmatched_streams; /* shares of kernel time */
    int streams, without_gap;                   /* how many were matched, and of these without a matched gap */
} ref_index;

/* Window c against database b. */
ref_index ref_compare(const ref_data *c, const ref_data *b);

/* A quotient; 0 where there is nothing to divide by. */
static inline double ref_ratio(double a, double b) { return b == 0 ? 0 : a / b; }
