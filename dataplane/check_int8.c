/*
 * Holds the exported integer C against the outputs of the integer network in Rust, bit for bit.
 *
 *     check_int8 FOLDER PORTS [PORTS ...]
 *
 * For every number of ports FOLDER has codes-PORTS.npy (uint8 [batch, ports, 8, 5]),
 * outputs-int8-PORTS.npy (int32 [batch, ports]) and levels-int8-PORTS.npy (uint8 [batch, ports]).
 * A network that sets early drop too has the same of its second output in early-outputs-int8-PORTS.npy
 * and early-levels-int8-PORTS.npy. Compile with ndt_int8.c and its folder on the include path.
 */
#include "ndt_int8.h"
#include "npy.h"

#if NDT_OUTPUTS == 2
#define LEVELS(levels) levels[0], levels[1]
#else
#define LEVELS(levels) levels[0]
#endif

/* Returns whether any value or level of an output differs. */
static int check_output(const char *folder, unsigned long ports, unsigned number)
{
    static struct ndt_int8_workspace workspace;
    static int32_t all[NDT_MAX_PORTS * NDT_OUTPUTS];
    static uint8_t both[2][NDT_MAX_PORTS];
    const uint8_t *const level = both[number];
    const struct array codes = read_named(folder, "codes", ports, "'|u1'", 1, 4);
    const struct array outputs = read_output(folder, number, "outputs-int8", ports, "'<i4'", 4);
    const struct array levels = read_output(folder, number, "levels-int8", ports, "'|u1'", 1);
    const unsigned long batch = codes.sizes[0];
    unsigned long sample, port, differ = 0;

    if (outputs.sizes[0] != batch || levels.sizes[0] != batch || codes.sizes[2] != NDT_HISTORY
        || codes.sizes[3] != NDT_FEATURES || ports > NDT_MAX_PORTS)
        stop(folder, "has arrays that do not belong together");
    for (sample = 0; sample < batch; sample++) {
        const uint8_t *row = codes.data + sample * ports * NDT_HISTORY * NDT_FEATURES;

        if (ndt_int8_forward(&workspace, row, (uint32_t)ports, all) != NDT_OK
            || ndt_int8_decide(&workspace, row, (uint32_t)ports, LEVELS(both)) != NDT_OK)
            stop(folder, "was refused");
        for (port = 0; port < ports; port++) {
            const unsigned long at = sample * ports + port;
            const int32_t output = all[port * NDT_OUTPUTS + number];
            int32_t expected;

            memcpy(&expected, outputs.data + 4 * at, 4);
            if (output != expected || level[port] != levels.data[at]) {
                differ++;
                printf("sample %lu, port %lu: output %ld, level %d; Rust has %ld, %d\n", sample,
                    port, (long)output, level[port], (long)expected, levels.data[at]);
            }
        }
    }
    printf("%lu x %lu ports: %lu %soutputs and levels differ\n", batch, ports, differ,
        prefixes[number]);
    free(codes.data);
    free(outputs.data);
    free(levels.data);
    return differ != 0;
}

/* The same for every output. */
static int check_case(const char *folder, unsigned long ports)
{
    unsigned number;
    int failures = 0;

    for (number = 0; number < NDT_OUTPUTS; number++)
        failures += check_output(folder, ports, number);
    return failures;
}

/* Numbers of ports that there cannot be are refused, and nothing is written. */
static int check_refusals(void)
{
    static struct ndt_int8_workspace workspace;
    static const uint32_t ports[] = { 0, NDT_MAX_PORTS + 1, UINT32_MAX };
    static uint8_t codes[(NDT_MAX_PORTS + 1) * NDT_HISTORY * NDT_FEATURES];
    int32_t output[1] = { 77 };
    uint8_t level[2][1] = { { 99 }, { 99 } };
    unsigned k;
    int failures = 0;

    for (k = 0; k < sizeof ports / sizeof *ports; k++) {
        failures += ndt_int8_forward(&workspace, codes, ports[k], output) != NDT_ERROR_PORTS;
        failures += ndt_int8_decide(&workspace, codes, ports[k], LEVELS(level)) != NDT_ERROR_PORTS;
        failures += output[0] != 77 || level[0][0] != 99 || level[1][0] != 99;
    }
    return failures;
}

int main(int argc, char **argv)
{
    return run_checks(argc, argv, check_refusals(), check_case);
}
