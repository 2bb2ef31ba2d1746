/* Asks a shell's command for what it reads of a simulated GPU, line by line, and tells one; a pipe each way. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/wait.h>

int main(int argc, char **argv) {
    char command[512], line[512];
    if (argc != 2)
        return 2;
    snprintf(command, sizeof command, "%s sleep 2 show; exit 3", argv[1]);
    const time_t from = time(NULL);
    FILE *in = popen(command, "r"), *out = popen("sleep 1; sed 's/^/told: /'", "w");
    while (in && fgets(line, sizeof line, in))
        printf("heard: %s", line);
    const int status = in ? pclose(in) : -1;
    printf("status %d after %ld s\n", WEXITSTATUS(status), (long)(time(NULL) - from));
    fflush(stdout);
    if (out)
        fprintf(out, "line %d\n", 1);
    printf("other %d\n", out ? pclose(out) : -1);
    printf("wrong kind %d\n", popen("true", "x") == NULL);
    return 0;
}
