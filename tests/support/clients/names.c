/* Calls every function of the simulated library by the table of names: before it is begun, with everything right, with
 * each argument wrong. Says what is not as it should be. names all | names hidden: those that are not there. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct name {
    const char *name, *arguments; /* NULL: answered */
} name;
#define FL_ANSWERED(name, since) {#name, NULL},
#define FL_ABSENT(name, since, arguments) {#name, arguments},
static const name names[] = {
#include "harness/emulate/client/nvml_names.inc"
};
enum {
    NAMES = sizeof names / sizeof *names,
    OK = 0,
    UNINITIALIZED = 1,
    INVALID = 2,
    ABSENT = 3,
    NOT_FOUND = 6,
    VERSION = 25
};

typedef int function(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);
static void *library;
static int wrong, calls;

static int call(const char *text, const uintptr_t *v) {
    function *f;
    *(void **)&f = dlsym(library, text);
    calls++;
    return f ? f(v[0], v[1], v[2], v[3], v[4], v[5]) : -1;
}

static void expect(const char *text, const uintptr_t *v, int want, const char *when) {
    const int got = call(text, v);
    if (got == want)
        return;
    printf("%s, %s: %d, expected %d\n", text, when, got, want);
    wrong++;
}

/* What is said of nothing that could be there: of handles that no call gives out. */
static int verdict(const char *arguments) {
    for (; *arguments; arguments++)
        if (strchr("ictnx", *arguments))
            return INVALID;
        else if (*arguments == 'v')
            return NOT_FOUND;
    return ABSENT;
}

static void try(const name *n, uintptr_t device) {
    static unsigned char room[4096];
    unsigned version = 1u << 24 | 8;
    uintptr_t v[6] = {0};
    memcpy(room, &version, sizeof version);
    for (size_t i = 0; n->arguments[i]; i++)
        v[i] = n->arguments[i] == 'd' ? device : strchr("pos", n->arguments[i]) ? (uintptr_t)room : 1;
    const int whole = verdict(n->arguments);
    expect(n->name, v, whole, "all right");
    for (size_t i = 0; n->arguments[i]; i++) {
        const uintptr_t kept = v[i];
        v[i] = n->arguments[i] == 'd' ? 77 : 0;
        if (strchr("dps", n->arguments[i]))
            expect(n->name, v, whole == NOT_FOUND ? NOT_FOUND : INVALID, "an argument wrong");
        else if (n->arguments[i] == 'o')
            expect(n->name, v, whole, "an argument left out");
        else if (n->arguments[i] == 'v')
            expect(n->name, v, INVALID, "no vGPU");
        v[i] = kept;
        if (n->arguments[i] == 's' && whole == ABSENT) {
            memset(room, 0, sizeof version);
            expect(n->name, v, VERSION, "no version");
            memcpy(room, &version, sizeof version);
        }
    }
}

/* Asked before the library is begun, or of use without. */
static int free_of_begin(const char *text) {
    static const char *const list[] = {"nvmlInit",          "nvmlInit_v2",
                                       "nvmlInitWithFlags", "nvmlErrorString",
                                       "nvmlShutdown",      "nvmlSystemGetCudaDriverVersion",
                                       "nvmlGpmSampleFree", "nvmlSystemGetCudaDriverVersion_v2"};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (!strcmp(text, list[i]))
            return 1;
    return 0;
}

int main(int argc, char **argv) {
    const uintptr_t none[6] = {0};
    uintptr_t device = 0;
    library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!library || argc != 2)
        return 2;
    for (size_t i = 0; i < NAMES; i++) {
        const int there = dlsym(library, names[i].name) != NULL;
        if (!there)
            printf("%s\n", names[i].name);
        else if (!strcmp(argv[1], "all") && !free_of_begin(names[i].name))
            expect(names[i].name, none, UNINITIALIZED, "not begun");
    }
    if (!strcmp(argv[1], "hidden"))
        return 0;
    if (call("nvmlInit_v2", none) || call("nvmlDeviceGetHandleByIndex_v2", (uintptr_t[6]){0, (uintptr_t)&device}))
        return 2;
    for (size_t i = 0; i < NAMES; i++)
        if (names[i].arguments)
            try(&names[i], device);
        else if (!free_of_begin(names[i].name))
            expect(names[i].name, none, INVALID, "nothing given");
    printf("%d names, %d calls, %d wrong\n", (int)NAMES, calls, wrong);
    return wrong != 0;
}
