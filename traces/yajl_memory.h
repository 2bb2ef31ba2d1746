/* Memory for YAJL, which looks at no allocation of its own: the first that fails leaves the parser by a jump. */
#ifndef FL_YAJL_MEMORY_H
#define FL_YAJL_MEMORY_H

#include <setjmp.h>
#include <yajl/yajl_common.h>

typedef struct fl_yajl_memory {
    jmp_buf out; /* set before anything of YAJL is called; reached with 1 when out of memory */
    struct fl_yajl_block *first;
} fl_yajl_memory;

/* What yajl_alloc takes; m has to stay where it is until fl_yajl_memory_free. */
yajl_alloc_funcs fl_yajl_functions(fl_yajl_memory *m);
/* Frees all that YAJL has, its handle too. */
void fl_yajl_memory_free(fl_yajl_memory *m);

#endif
