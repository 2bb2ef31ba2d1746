/* Attaches to the NVTX copies of a program. */
#include "harness/live/collector/inside.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <wchar.h>

enum { NAME = 128, BUCKETS = 1024, STRING_BYTES = 1 << 18 };

static void (*_Atomic tell)(const char *name);

/* Strings that the program registers. They are kept for ever, each once: a program may register the same string in each
 * iteration. Beyond the room, new ones have no name. An entry is complete before its bucket points at it, so readers
 * need no lock. */
typedef struct entry {
    const struct entry *next;
    char text[];
} entry;

static _Alignas(entry) char strings[STRING_BYTES];
static _Atomic size_t strings_used;
static const entry *_Atomic bucket[BUCKETS];

static void say(const char *name) {
    void (*mark)(const char *) = atomic_load_explicit(&tell, memory_order_acquire);
    if (mark && name)
        mark(name);
}

/* The text as UTF-8, cut where the next character has no room. What is no character becomes '?'. */
static const char *narrow(const wchar_t *wide, char text[NAME]) {
    size_t n = 0;
    for (; wide && *wide; wide++) {
        const uint32_t u = (uint32_t)*wide, c = u > 0x10ffff || (u >= 0xd800 && u < 0xe000) ? '?' : u;
        const unsigned more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3; /* bytes after the first */
        static const unsigned char FIRST[] = {0, 0xc0, 0xe0, 0xf0};
        if (n + more + 1 >= NAME)
            break;
        text[n++] = (char)(FIRST[more] | c >> 6 * more);
        for (unsigned i = more; i-- > 0;)
            text[n++] = (char)(0x80 | (c >> 6 * i & 0x3f));
    }
    text[n] = '\0';
    return text;
}

static void say_wide(const wchar_t *wide) {
    char text[NAME];
    say(narrow(wide, text));
}

static void say_attributes(const fl_nvtx_attributes *a) {
    if (!a || a->size < sizeof *a)
        return;
    if (a->message_type == FL_NVTX_UNICODE)
        say_wide(a->message);
    else if (a->message_type == FL_NVTX_ASCII || a->message_type == FL_NVTX_REGISTERED)
        say(a->message); /* what a registration returned is the string */
}

static void mark_w(const wchar_t *name) { say_wide(name); }

/* Ids and depths are only for who reads ends, which nobody here does. */
static uint64_t start_ex(const fl_nvtx_attributes *a) {
    say_attributes(a);
    return 0;
}

static uint64_t start_a(const char *name) {
    say(name);
    return 0;
}

static uint64_t start_w(const wchar_t *name) {
    say_wide(name);
    return 0;
}

static int push_ex(const fl_nvtx_attributes *a) {
    say_attributes(a);
    return FL_NVTX_NO_TRACKING;
}

static int push_a(const char *name) {
    say(name);
    return FL_NVTX_NO_TRACKING;
}

static int push_w(const wchar_t *name) {
    say_wide(name);
    return FL_NVTX_NO_TRACKING;
}

static void domain_mark_ex(void *domain, const fl_nvtx_attributes *a) {
    (void)domain;
    say_attributes(a);
}

static uint64_t domain_start_ex(void *domain, const fl_nvtx_attributes *a) {
    (void)domain;
    return start_ex(a);
}

static int domain_push_ex(void *domain, const fl_nvtx_attributes *a) {
    (void)domain;
    return push_ex(a);
}

static size_t bucket_of(const char *text, size_t size) {
    size_t sum = 5381;
    for (size_t i = 0; i < size; i++)
        sum = sum * 33 + (unsigned char)text[i];
    return sum % BUCKETS;
}

/* What a registration returns is the string itself. Two threads that register the same text at once may both keep it.
 */
static const char *register_a(void *domain, const char *text) {
    (void)domain;
    if (!text)
        return NULL;
    const size_t size = strnlen(text, NAME - 1), whole = sizeof(entry) + size + 1,
                 room = (whole + _Alignof(entry) - 1) / _Alignof(entry) * _Alignof(entry);
    const entry *_Atomic *head = &bucket[bucket_of(text, size)];
    const entry *first = atomic_load_explicit(head, memory_order_acquire);
    for (const entry *e = first; e; e = e->next)
        if (!strncmp(e->text, text, size) && !e->text[size])
            return e->text;
    size_t at = atomic_load(&strings_used);
    do {
        if (sizeof strings - at < room)
            return NULL;
    } while (!atomic_compare_exchange_weak(&strings_used, &at, at + room));
    entry *own = (entry *)(void *)(strings + at); /* zero so far, and given out once */
    memcpy(own->text, text, size);
    do
        own->next = first;
    while (!atomic_compare_exchange_weak_explicit(head, &first, own, memory_order_release, memory_order_acquire));
    return own->text;
}

static const char *register_w(void *domain, const wchar_t *wide) {
    char text[NAME];
    return register_a(domain, narrow(wide, text));
}

typedef struct callback {
    fl_nvtx_module module;
    unsigned id;
    fl_nvtx_function function;
} callback;

#define CALL(module, id, function)                                                                                     \
    { FL_NVTX_##module, FL_NVTX_##id, (fl_nvtx_function)(function) }
static const callback CALLBACKS[] = {
    CALL(CORE, MARK_EX, say_attributes),
    CALL(CORE, MARK_A, say),
    CALL(CORE, MARK_W, mark_w),
    CALL(CORE, RANGE_START_EX, start_ex),
    CALL(CORE, RANGE_START_A, start_a),
    CALL(CORE, RANGE_START_W, start_w),
    CALL(CORE, RANGE_PUSH_EX, push_ex),
    CALL(CORE, RANGE_PUSH_A, push_a),
    CALL(CORE, RANGE_PUSH_W, push_w),
    CALL(CORE2, DOMAIN_MARK_EX, domain_mark_ex),
    CALL(CORE2, DOMAIN_RANGE_START_EX, domain_start_ex),
    CALL(CORE2, DOMAIN_RANGE_PUSH_EX, domain_push_ex),
    CALL(CORE2, DOMAIN_REGISTER_STRING_A, register_a),
    CALL(CORE2, DOMAIN_REGISTER_STRING_W, register_w),
};

void fl_nvtx_attach(fl_nvtx_export *get, void (*mark)(const char *name)) {
    const fl_nvtx_callbacks *callbacks = get ? get(FL_NVTX_CALLBACKS) : NULL;
    if (!callbacks || callbacks->size < sizeof *callbacks)
        return;
    atomic_store_explicit(&tell, mark, memory_order_release);
    for (size_t i = 0; i < sizeof CALLBACKS / sizeof *CALLBACKS; i++) {
        const callback *c = &CALLBACKS[i];
        fl_nvtx_function **slot = NULL;
        unsigned count = 0;
        if (callbacks->table(c->module, &slot, &count) && slot && c->id < count && slot[c->id])
            *slot[c->id] = c->function;
    }
}
