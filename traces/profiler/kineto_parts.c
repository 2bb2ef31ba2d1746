/* Numbers of JSON, mending of what is nearly JSON, and memory for YAJL. */
#include "traces/profiler/inside.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- numbers ---- */

bool fl_us_to_ns(const char *text, size_t size, int64_t *ns) {
    const char *end = text + size;
    bool minus = text < end && *text == '-';
    text += minus;
    uint64_t digits = 0;
    int64_t power = 3; /* ns = digits * 10^power */
    bool any = false;
    for (bool point = false; text < end && ((*text >= '0' && *text <= '9') || (*text == '.' && !point)); text++) {
        if (*text == '.') {
            point = true;
            continue;
        }
        any = true;
        if (digits < UINT64_MAX / 10 - 1) {
            digits = digits * 10 + (uint64_t)(*text - '0');
            power -= point;
        } else {
            power += !point;
        }
    }
    if (any && text < end && (*text == 'e' || *text == 'E')) {
        bool down = ++text < end && *text == '-';
        text += text < end && (*text == '-' || *text == '+');
        int64_t e = 0;
        any = text < end;
        for (; text < end && *text >= '0' && *text <= '9'; text++)
            e = e < 100000 ? e * 10 + (*text - '0') : e;
        power += down ? -e : e;
    }
    if (!any || text != end)
        return false;
    for (; power > 0 && digits; power--) {
        if (digits > UINT64_MAX / 10)
            return false;
        digits *= 10;
    }
    uint64_t last = 0; /* the digit that decides how to round */
    for (; power < 0 && (digits || last); power++) {
        last = digits % 10;
        digits /= 10;
    }
    digits += last >= 5;
    if (digits > INT64_MAX)
        return false;
    *ns = minus ? -(int64_t)digits : (int64_t)digits;
    return true;
}

bool fl_json_whole(const char *text, size_t size, int64_t *value) {
    const char *point = memchr(text, '.', size);
    bool minus = size && *text == '-';
    uint64_t n = 0;
    size_t digits = (point ? (size_t)(point - text) : size);
    for (size_t i = minus; i < digits; i++) {
        if (text[i] < '0' || text[i] > '9' || n > (INT64_MAX - 9) / 10)
            return false;
        n = n * 10 + (uint64_t)(text[i] - '0');
    }
    for (size_t i = digits + 1; i < size; i++)
        if (text[i] != '0')
            return false;
    *value = minus ? -(int64_t)n : (int64_t)n;
    return digits > minus;
}

/* ---- mending ---- */

static bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/* In a text, at a backslash: the bytes of its escape; 0 where more must be seen. */
static size_t mend_escape(fl_json_mend *m, char *at, size_t left, bool last) {
    if (left < 6 && !last)
        return 0;
    if (left > 1 && at[1] && strchr("\"\\/bfnrt", at[1]))
        return 2;
    if (left > 5 && at[1] == 'u' && is_hex(at[2]) && is_hex(at[3]) && is_hex(at[4]) && is_hex(at[5]))
        return 6;
    *at = '/';
    m->slashes++;
    return 1;
}

/* At a sign or letter outside of texts: the bytes of the word; 0 where more must be seen. */
static size_t mend_word(fl_json_mend *m, char *at, size_t left, bool last) {
    static const char *const word[] = {"nan", "inf", "infinity"};
    const size_t sign = *at == '-' || *at == '+';
    size_t size = sign;
    while (size < left && is_letter(at[size]))
        size++;
    if (size == left && !last && size < FL_MEND_ROOM)
        return 0;
    for (size_t i = 0; i < sizeof word / sizeof *word; i++)
        if (strlen(word[i]) == size - sign && !strncasecmp(at + sign, word[i], size - sign)) {
            memset(at, ' ', size);
            at[0] = at[1] = '"';
            m->unknown++;
        }
    return size ? size : 1;
}

/* At a comma: it and the blanks behind it; 0 where more must be seen. */
static size_t mend_comma(char *at, size_t left, bool last) {
    size_t size = 1;
    while (size < left && at[size] && strchr(" \t\r\n", at[size]))
        size++;
    if (size == left && !last && size < FL_MEND_ROOM)
        return 0;
    if (size == left ? last : at[size] == ']' || at[size] == '}')
        *at = ' ';
    return size;
}

size_t fl_json_mend_bytes(fl_json_mend *m, char *bytes, size_t size, bool last) {
    size_t i = 0;
    while (i < size) {
        char *at = bytes + i;
        size_t taken = 1;
        if (*at == '"')
            m->in_text = !m->in_text;
        else if (m->in_text && *at == '\\')
            taken = mend_escape(m, at, size - i, last);
        else if (m->in_text)
            *at = (unsigned char)*at < 0x20 ? ' ' : *at;
        else if (*at == ',')
            taken = mend_comma(at, size - i, last);
        else if (*at == '-' || *at == '+' || is_letter(*at))
            taken = mend_word(m, at, size - i, last);
        if (!taken)
            break;
        i += taken;
    }
    return i;
}

/* ---- memory for YAJL ---- */

#if FL_HAS_YAJL

typedef struct fl_yajl_block {
    struct fl_yajl_block *before, *after;
    max_align_t bytes[];
} block;

static void link_in(fl_yajl_memory *m, block *b, block *before, block *after) {
    b->before = before;
    b->after = after;
    *(before ? &before->after : &m->first) = b;
    if (after)
        after->before = b;
}

static block *of(void *bytes) { return (block *)(void *)((char *)bytes - offsetof(block, bytes)); }

static void *change(void *user, void *bytes, size_t size) {
    fl_yajl_memory *m = user;
    block *old = bytes ? of(bytes) : NULL, *before = old ? old->before : NULL, *after = old ? old->after : m->first;
    block *b = size <= SIZE_MAX - sizeof *b ? realloc(old, sizeof *b + size) : NULL;
    if (!b) /* noted as any of ours */
        longjmp(m->out, 1);
    link_in(m, b, before, after);
    return b->bytes;
}

static void *take(void *user, size_t size) { return change(user, NULL, size); }

static void give(void *user, void *bytes) {
    fl_yajl_memory *m = user;
    block *b = bytes ? of(bytes) : NULL;
    if (!b)
        return;
    *(b->before ? &b->before->after : &m->first) = b->after;
    if (b->after)
        b->after->before = b->before;
    free(b);
}

yajl_alloc_funcs fl_yajl_functions(fl_yajl_memory *m) {
    m->first = NULL;
    return (yajl_alloc_funcs){.malloc = take, .realloc = change, .free = give, .ctx = m};
}

void fl_yajl_memory_free(fl_yajl_memory *m) {
    while (m->first)
        give(m, m->first->bytes);
}

#endif
