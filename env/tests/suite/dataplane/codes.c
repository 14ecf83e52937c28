#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ndt_control.h"

/* Reads lines "NAME X UNIT" and answers each with a number. */
int main(void)
{
    char name[8];
    uint64_t x, unit;

    while (scanf("%7s %" SCNu64 " %" SCNu64, name, &x, &unit) == 3) {
        uint64_t answer;

        if (strcmp(name, "log") == 0) {
            answer = ndt_log_code(x, unit);
        } else if (strcmp(name, "queue") == 0) {
            answer = ndt_queue_code(x, unit);
        } else if (strcmp(name, "drain") == 0) {
            answer = ndt_drain_ns(x, unit);
        } else {
            answer = ndt_level_code((uint8_t)x);
        }
        printf("%" PRIu64 "\n", answer);
    }
    return 0;
}
