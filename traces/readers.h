/* The readers that traces/readers.c lists, one file each. */
#ifndef FL_READERS_H
#define FL_READERS_H

#include "traces/import.h"

extern const fl_reader fl_reader_kernels, fl_reader_telemetry, fl_reader_sweep; /* import_canonical.c */
extern const fl_reader fl_reader_nvidia_smi;                                    /* import_nvidia_smi.c */
extern const fl_reader fl_reader_dcgmi;                                         /* import_dcgmi.c */
extern const fl_reader fl_reader_nsys_csv;                                      /* import_nsys_csv.c */
extern const fl_reader fl_reader_rocprofv3;                                     /* import_rocprof.c */
extern const fl_reader fl_reader_geopm;                                         /* import_geopm.c */
extern const fl_reader fl_reader_geepafs;                                       /* import_geepafs.c */
extern const fl_reader fl_reader_kineto;                                        /* kineto.c */
extern const fl_reader fl_reader_nsys_sqlite;                                   /* nsys_sqlite.c */

#endif
