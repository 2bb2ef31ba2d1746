#include "harness/emulate/emulate_calls.h"

#include "harness/emulate/client/abi.h"
#include "harness/emulate/emulate_lists.h"
#include "harness/emulate/emulate_numbers.h"
#include "harness/emulate/emulate_uuid.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static uint32_t bus_of(uint32_t gpu) { return 0x10 + gpu; }

static void text_of(const fl_boards *all, uint32_t gpu, fl_ask_text what, char *out, size_t size) {
    uint8_t uuid[FL_RING_UUID];
    switch (what) {
    case FL_TEXT_NAME:
        snprintf(out, size, "%s", fl_boards_device(all, gpu)->name);
        break;
    case FL_TEXT_UUID:
        fl_emulated_uuid(all->o->scene->facts.seed, gpu, uuid);
        fl_ring_uuid_text(uuid, out);
        break;
    case FL_TEXT_SERIAL:
        snprintf(out, size, "%013u", gpu + 1);
        break;
    case FL_TEXT_PCI:
        snprintf(out, size, "%08X:%02X:%02X.0", bus_of(gpu) >> 8, bus_of(gpu) & 0xff, 0u);
        break;
    case FL_TEXT_DRIVER:
        snprintf(out, size, "550.54.15");
        break;
    case FL_TEXT_LIBRARY:
        snprintf(out, size, "12.550.54.15");
        break;
    case FL_TEXT_VBIOS:
        snprintf(out, size, "00.00.00.00.01");
        break;
    }
}

/* Domains are written with four digits or with eight. */
static const char *short_pci(const char *id) { return strlen(id) > 12 && id[8] == ':' ? id + 4 : id; }

static int32_t find_by_text(const fl_boards *all, const fl_ask *q, uint32_t *index) {
    for (uint32_t i = 0; i < all->gpu_count; i++) {
        char text[96];
        text_of(all, i, (fl_ask_text)q->a, text, sizeof text);
        const bool pci = q->a == FL_TEXT_PCI;
        if (!strcasecmp(pci ? short_pci(text) : text, pci ? short_pci(q->text) : q->text)) {
            *index = i;
            return NVML_SUCCESS;
        }
    }
    return NVML_NOT_FOUND;
}

static nvmlPciInfo_t pci_of(uint32_t gpu) {
    nvmlPciInfo_t p = {
        .domain = bus_of(gpu) >> 8, .bus = bus_of(gpu) & 0xff, .pciDeviceId = 0x20b010de, .pciSubSystemId = 0x145f10de};
    snprintf(p.busIdLegacy, sizeof p.busIdLegacy, "%04X:%02X:00.0", p.domain & 0xffff, p.bus & 0xff);
    snprintf(p.busId, sizeof p.busId, "%08X:%02X:00.0", p.domain, p.bus & 0xff);
    return p;
}

/* Is it what was asked to go wrong? */
static bool is_about(const fl_refusal *r, int64_t now_ns, const fl_ask *q, bool about_gpu) {
    const bool there = r->gpu < 0 || (about_gpu && (uint32_t)r->gpu == q->gpu);
    const bool then = now_ns >= r->from_ns && now_ns < r->until_ns;
    return there && then && (r->call[0] ? !fnmatch(r->call, q->call, FNM_EXTMATCH) : about_gpu);
}

bool fl_calls_without_effect(const fl_boards *all, const fl_ask *q) {
    bool without = false;
    for (size_t i = 0; i < all->o->refusal_count; i++)
        without = without || (!all->o->refusal[i].result && is_about(&all->o->refusal[i], all->now_ns, q, true));
    return without;
}

int32_t fl_calls_refused(const fl_boards *all, uint32_t inits, const fl_ask *q) {
    const bool system = q->op == FL_ASK_TEXT && (q->a == FL_TEXT_DRIVER || q->a == FL_TEXT_LIBRARY);
    const bool about_gpu = q->op >= FL_ASK_TEXT && !system;
    if (q->op != FL_ASK_INIT && !inits)
        return q->op == FL_ASK_SHUTDOWN ? NVML_SUCCESS : NVML_UNINITIALIZED;
    if (about_gpu && q->gpu >= all->gpu_count)
        return NVML_INVALID_ARGUMENT;
    if (q->op == FL_ASK_NUMBER && q->a == FL_NUMBER_LOCK)
        return NVML_SUCCESS;
    for (size_t i = 0; i < all->o->refusal_count; i++)
        if (all->o->refusal[i].result && is_about(&all->o->refusal[i], all->now_ns, q, about_gpu))
            return all->o->refusal[i].result;
    return about_gpu && fl_node_gpu(all->node, q->gpu)->lost ? NVML_GPU_IS_LOST : NVML_SUCCESS;
}

void fl_calls_answer(fl_boards *all, uint32_t *inits, const fl_ask *q, fl_answer *out, bool *reading) {
    uint64_t v = 0;
    uint32_t index = 0;
    char text[96] = "";
    nvmlPciInfo_t pci;
    *reading = false;
    out->size = 0;
    out->result = fl_calls_refused(all, *inits, q);
    if (out->result)
        return;
    switch ((fl_ask_op)q->op) {
    case FL_ASK_INIT:
        *inits = q->a ? 1 : *inits + 1;
        break;
    case FL_ASK_SHUTDOWN:
        *inits -= *inits > 0; /* one too many is no error */
        break;
    case FL_ASK_COUNT:
        fl_list_put(out, &all->gpu_count, sizeof all->gpu_count);
        break;
    case FL_ASK_BY_INDEX:
        out->result = q->a < all->gpu_count ? NVML_SUCCESS : NVML_INVALID_ARGUMENT;
        fl_list_put(out, &q->a, sizeof q->a);
        break;
    case FL_ASK_BY_TEXT:
        out->result = find_by_text(all, q, &index);
        fl_list_put(out, &index, sizeof index);
        break;
    case FL_ASK_TEXT:
        text_of(all, q->gpu < all->gpu_count ? q->gpu : 0, (fl_ask_text)q->a, text, sizeof text);
        fl_list_put(out, text, strlen(text) + 1);
        break;
    case FL_ASK_NUMBER:
        out->result = fl_number_of(all, q, &v);
        *reading = fl_number_is_reading(q);
        fl_list_put(out, &v, sizeof v);
        break;
    case FL_ASK_PCI:
        pci = pci_of(q->gpu);
        fl_list_put(out, &pci, sizeof pci);
        break;
    case FL_ASK_CLOCKS:
        fl_list_clocks(fl_boards_device(all, q->gpu), q, out);
        break;
    case FL_ASK_PROCESSES:
        fl_list_processes(all, q, out);
        break;
    case FL_ASK_SHARES:
        out->result = fl_list_shares(all, q, out);
        *reading = true;
        break;
    case FL_ASK_SAMPLES:
        out->result = fl_list_samples(all, q, out);
        *reading = true;
        break;
    case FL_ASK_FIELD:
        fl_list_field(all, q, out);
        *reading = true;
        break;
    case FL_ASK_PROFILE:
        fl_list_profile(all, q, out);
        *reading = true;
        break;
    default:
        out->result = NVML_INVALID_ARGUMENT;
    }
}
