/* Looks for a real driver as programs do that know nothing of a session: opens each path that it is given, and where it
 * can load libraries, the driver's. Says what it found, as the first line of a decoy. Static too. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#ifndef SEEK_STATIC
#include <dlfcn.h>
#endif

int main(int argc, char **argv) {
    int found = 0;
    for (int i = 1; i < argc; i++) {
        char text[64] = "";
        const int fd = open(argv[i], O_RDONLY | O_CLOEXEC);
        const ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
        text[n > 0 ? n : 0] = 0;
        text[strcspn(text, "\n")] = 0;
        if (fd >= 0)
            printf("opened %s: %s\n", argv[i], text);
        found += fd >= 0;
    }
#ifndef SEEK_STATIC
    static const char *const name[] = {"libnvidia-ml.so.1", "libcuda.so.1"};
    for (size_t i = 0; i < 2; i++) {
        void *library = dlopen(name[i], RTLD_NOW);
        const char *(*decoy)(void) = NULL;
        if (library)
            *(void **)&decoy = dlsym(library, "decoy");
        if (decoy)
            printf("loaded %s: %s\n", name[i], decoy());
        else if (library)
            printf("simulated %s\n", name[i]);
        found += decoy != NULL;
    }
#endif
    printf("found %d\n", found);
    return 0;
}
