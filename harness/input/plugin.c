#include "harness/input/plugin.h"

#include "policies/registry.h"
#include "sim/instance.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SYMBOL "foldline_policy"

static fl_status open_plugin(const char *path, const fl_policy **policy, fl_diag *d) {
    char difference[512];
    /* The loader searches the system for a name without a slash; ours is a file. */
    char *here = NULL;
    if (!strchr(path, '/')) {
        size_t size = strlen(path) + sizeof "./";
        if (!(here = malloc(size)))
            return fl_no_memory(d, NULL);
        memcpy(here, "./", 2);
        memcpy(here + 2, path, size - 2);
    }
    void *library = dlopen(here ? here : path, RTLD_NOW | RTLD_LOCAL);
    free(here);
    if (!library)
        return fl_refuse(d, "cannot load policy plug-in: %s", dlerror());
    const fl_policy *found = dlsym(library, SYMBOL);
    if (!found) {
        dlclose(library);
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                       "no symbol '" SYMBOL "', expected a policy compiled with -DPOLICY_PLUGIN");
    }
    if (fl_abi_difference(&found->abi, difference, sizeof difference)) {
        fl_status status =
            fl_fail(d, FL_BAD_INPUT, path, 0, 0, "the plug-in was built against another contract: %s", difference);
        dlclose(library);
        return status;
    }
    *policy = found;
    return FL_OK;
}

static fl_status unknown(const char *name, fl_diag *d) {
    const char **names = calloc(fl_policies_count + 1, sizeof *names);
    if (!names)
        return fl_no_memory(d, NULL);
    for (size_t i = 0; i < fl_policies_count; i++)
        names[i] = fl_policies[i]->name;
    const char *near = fl_nearest(name, names, fl_policies_count);
    free(names);
    return fl_refuse(d, "unknown policy '%s'%s%s%s", name, near ? ", did you mean '" : "", near ? near : "",
                     near ? "'?" : ", expected a built-in or the path of a .so");
}

fl_status fl_policy_open(const char *name, const fl_policy **policy, fl_diag *d) {
    *policy = NULL;
    for (size_t i = 0; i < fl_policies_count; i++)
        if (strcmp(fl_policies[i]->name, name) == 0) {
            *policy = fl_policies[i];
            return FL_OK;
        }
    size_t length = strlen(name);
    bool so = length > 3 && strcmp(name + length - 3, ".so") == 0;
    if (so && (strchr(name, '/') || access(name, F_OK) == 0))
        return open_plugin(name, policy, d);
    return unknown(name, d);
}
