/* Memory for YAJL, which checks no allocation of its own: the first that fails leaves the parser by a longjmp. */
#pragma once

#include <setjmp.h>
#include <yajl/yajl_common.h>

typedef struct fl_yajl_memory {
    jmp_buf out; /* set it before any call of YAJL; a longjmp with 1 arrives here when memory runs out */
    struct fl_yajl_block *first;
} fl_yajl_memory;

/* The allocator for yajl_alloc; m must stay at its address until fl_yajl_memory_free. */
yajl_alloc_funcs fl_yajl_functions(fl_yajl_memory *m);
/* Frees everything that YAJL allocated, including its handle. */
void fl_yajl_memory_free(fl_yajl_memory *m);
