/* Scenes that are built in turn: what is built again is what was built first, or the change of its trace is told. */
#include "harness/base/cli/cli.h"
#include "harness/input/scene/scene.h"
#include "traces/io/io.h"
#include "traces/open/inside.h"
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include <sys/stat.h>

enum { KERNELS = 60000 }; /* more than are held, and a file that something is kept beside */

static char source[512], kinds[512];

static void write_trace(char last_digit) {
    snprintf(source, sizeof source, "%s", fl_temp_path("again.csv"));
    FILE *f = fopen(source, "w");
    CU_ASSERT_FATAL(f != NULL);
    fputs("# foldline-kernels 1\n"
          "device,process,stream,start_ns,end_ns,name,grid_x,grid_y,grid_z,block_x,block_y,block_z\n",
          f);
    for (int i = 0; i < KERNELS; i++)
        fprintf(f, "0,0,7,%d,%d,a_kernel_of_this_trace_with_a_name_of_%s,1,1,1,%d,1,1\n", 10000 * i,
                10000 * i + 5000 + i % 9, i % 2 ? "some_length" : "more_length", 64);
    fseek(f, -2, SEEK_END);
    fputc(last_digit, f);
    fclose(f);
}

static void write_kinds(void) {
    snprintf(kinds, sizeof kinds, "%s", fl_temp_path("again.kinds.csv"));
    fl_temp_text("again.kinds.csv", "# foldline-kinds 1\nname,tc,tm,tl,sharpness,alpha,beta,sm_demand,sm_mhz,mem_mhz\n"
                                    "*,1,0,0,2,0.7,0.3,1,0,0\n");
}

static void open_one(fl_scenes *scenes, bool no_cache) {
    fl_texts traces = {0};
    fl_diag d = {0};
    const fl_scene_options o = {.platform = "generic", .hold = FL_SCENES_COUNTED, .no_cache = no_cache};
    FL_CHECK(!fl_texts_add(&traces, source, &d) && !fl_scenes_open(&o, &traces, scenes, &d), "%s", d.message);
    CU_ASSERT_FATAL(scenes->count == 1);
    fl_texts_free(&traces);
}

static bool builds(fl_scene *s) {
    fl_diag d = {0};
    FL_CHECK(!fl_scene_build(s, &d), "%s", d.message);
    const bool whole = s->rates && s->w->op_count == KERNELS && s->w->stream_count == 1 &&
                       s->w->stream[0].rec[KERNELS - 1].work_ns == 5000 + (KERNELS - 1) % 9;
    fl_scene_give_back(s);
    return whole;
}

static void refuses(fl_scene *s, const char *what) {
    fl_diag d = {0};
    FL_CHECK(fl_scene_build(s, &d) == FL_BAD_INPUT && strstr(d.message, "changed while the command ran") &&
                 strstr(d.file, "again.csv"),
             "%s: %s", what, d.message);
    FL_CHECK(!s->rates, "%s: not built", what);
}

static void test_same(void) {
    fl_scenes scenes;
    write_trace('1');
    write_kinds();
    for (int kept = 0; kept < 2; kept++) {
        open_one(&scenes, false);
        fl_scene *s = scenes.item[0];
        FL_CHECK(!s->rates, "given back");
        FL_CHECK(builds(s) && builds(s), "built twice, kept %d", kept);
        write_trace('1');
        FL_CHECK(builds(s), "the same bytes, written anew");
        fl_temp_text("again.kinds.csv", "no kinds file any more\n");
        FL_CHECK(builds(s), "its kinds were read before");
        write_kinds();
        fl_scenes_free(&scenes);
    }
    fl_temp_remove();
}

/* With what was kept beside it, and without; a byte of the same length, and a row less. */
static void test_changed(void) {
    fl_scenes scenes;
    write_kinds();
    for (int way = 0; way < 4; way++) {
        write_trace('1');
        open_one(&scenes, false);
        FL_CHECK(builds(scenes.item[0]), "as it was");
        if (way & 1)
            unlink(fl_temp_path("again.csv.foldline-cache"));
        if (way & 2)
            CU_ASSERT_FATAL(!truncate(source, (off_t)FL_CACHE_FROM));
        if (way == 2) { /* whole rows */
            size_t size = 0;
            char *bytes = fl_temp_slurp(source, &size);
            while (bytes[size - 1] != '\n')
                size--;
            fl_temp_write("again.csv", bytes, size);
            free(bytes);
        }
        if (!(way & 2))
            write_trace('2');
        if (way != 3)
            refuses(scenes.item[0], way & 2 ? "fewer rows" : "another digit");
        else { /* a torn row is told as such */
            fl_diag d = {0};
            FL_CHECK(fl_scene_build(scenes.item[0], &d) == FL_BAD_INPUT, "%s", d.message);
        }
        fl_scenes_free(&scenes);
    }
    fl_temp_remove();
}

/* Held, as to read it anew each time would take long; and nobody's folder is written to. */
static void test_no_cache(void) {
    fl_scenes scenes;
    write_trace('1');
    write_kinds();
    open_one(&scenes, true);
    FL_CHECK(scenes.item[0]->rates && !scenes.item[0]->again, "held");
    fl_scene_give_back(scenes.item[0]);
    FL_CHECK(scenes.item[0]->rates != NULL, "still");
    FL_CHECK(fl_temp_count() == 2, "the trace and its kinds, no more");
    fl_scenes_free(&scenes);
    open_one(&scenes, false);
    FL_CHECK(fl_temp_count() == 3, "and a cache, which is kept again");
    fl_scenes_free(&scenes);
    fl_temp_remove();
}

FL_SUITE("scene_again", {"same", test_same}, {"changed", test_changed}, {"no_cache", test_no_cache})
