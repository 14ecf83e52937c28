/*
 * Holds the exported C against recorded observations with known outputs.
 *
 *     check_f32 FOLDER PORTS [PORTS ...]
 *
 * For every number of ports FOLDER has observations-PORTS.npy (float32 [batch, ports, 8, 5]),
 * means-PORTS.npy (float32 [batch, ports]) and levels-PORTS.npy (uint8 [batch, ports]). Means may
 * differ by 1e-5 times their size, or 1e-5; levels in one of 10,000, and each that does is listed
 * with its distance to the edge between the two. A network that sets early drop too has the same of its
 * second output in early-means-PORTS.npy and early-levels-PORTS.npy. Compile with ndt_f32.c and its folder on the
 * include path.
 */
#include "ndt_f32.h"
#include "npy.h"

#if NDT_OUTPUTS == 2
#define LEVELS(levels) levels[0], levels[1]
#else
#define LEVELS(levels) levels[0]
#endif

#define TOLERANCE 1e-5f
#define LEVELS_EQUAL_OF 10000ul

static float difference(float a, float b)
{
    return a > b ? a - b : b - a;
}

/* How far a mean is from the nearest edge between levels: atanh of -3/4, -1/2, -1/4, 0, ... */
static float edge_distance(float mean)
{
    static const float edges[] = { 0.0f, 0.25541282f, 0.54930615f, 0.97295507f };
    float size = mean < 0.0f ? -mean : mean, nearest = size;
    unsigned k;

    for (k = 1; k < sizeof edges / sizeof *edges; k++)
        if (difference(size, edges[k]) < nearest)
            nearest = difference(size, edges[k]);
    return nearest;
}

/* Returns the number of failures. */
static int check_output(const char *folder, unsigned long ports, unsigned output)
{
    static struct ndt_f32_workspace workspace;
    static float mean[NDT_MAX_PORTS * NDT_OUTPUTS];
    static uint8_t both[2][NDT_MAX_PORTS];
    const uint8_t *const level = both[output];
    const struct array observations = read_named(folder, "observations", ports, "'<f4'", 4, 4);
    const struct array means = read_output(folder, output, "means", ports, "'<f4'", 4);
    const struct array levels = read_output(folder, output, "levels", ports, "'|u1'", 1);
    const unsigned long batch = observations.sizes[0];
    unsigned long sample, port, wrong = 0, off = 0;
    float worst = 0.0f;

    if (means.sizes[0] != batch || levels.sizes[0] != batch || observations.sizes[2] != NDT_HISTORY
        || observations.sizes[3] != NDT_FEATURES || ports > NDT_MAX_PORTS)
        stop(folder, "has arrays that do not belong together");
    for (sample = 0; sample < batch; sample++) {
        const float *observation = (const float *)(const void *)observations.data
            + sample * ports * NDT_HISTORY * NDT_FEATURES;
        const float *expected = (const float *)(const void *)means.data + sample * ports;

        if (ndt_f32_forward(&workspace, observation, (uint32_t)ports, mean) != NDT_OK
            || ndt_f32_decide(&workspace, observation, (uint32_t)ports, LEVELS(both)) != NDT_OK)
            stop(folder, "was refused");
        for (port = 0; port < ports; port++) {
            const float size = expected[port] < 0.0f ? -expected[port] : expected[port];
            const float error = difference(mean[port * NDT_OUTPUTS + output], expected[port]);

            worst = error > worst ? error : worst;
            wrong += !(error <= TOLERANCE * (size > 1.0f ? size : 1.0f));
            if (level[port] != levels.data[sample * ports + port]) {
                off++;
                printf("level %d, not %d: mean %.9g, %.3g from the edge\n", level[port],
                    levels.data[sample * ports + port], expected[port],
                    edge_distance(expected[port]));
            }
        }
    }
    printf("%lu x %lu ports: %smeans differ by up to %.2g, %lu levels of %lu differ\n", batch, ports,
        prefixes[output], worst, off, batch * ports);
    free(observations.data);
    free(means.data);
    free(levels.data);
    return (wrong != 0) + (off * LEVELS_EQUAL_OF > batch * ports);
}

/* The same for every output. */
static int check_case(const char *folder, unsigned long ports)
{
    unsigned output;
    int failures = 0;

    for (output = 0; output < NDT_OUTPUTS; output++)
        failures += check_output(folder, ports, output);
    return failures;
}

/* Numbers of ports that there cannot be are refused, and nothing is written. */
static int check_refusals(void)
{
    static struct ndt_f32_workspace workspace;
    static const uint32_t ports[] = { 0, NDT_MAX_PORTS + 1, UINT32_MAX };
    static float observation[(NDT_MAX_PORTS + 1) * NDT_HISTORY * NDT_FEATURES];
    float mean[1] = { 77.0f };
    uint8_t level[2][1] = { { 99 }, { 99 } };
    unsigned k;
    int failures = 0;

    for (k = 0; k < sizeof ports / sizeof *ports; k++) {
        failures += ndt_f32_forward(&workspace, observation, ports[k], mean) != NDT_ERROR_PORTS;
        failures += ndt_f32_decide(&workspace, observation, ports[k], LEVELS(level))
            != NDT_ERROR_PORTS;
        failures += mean[0] != 77.0f || level[0][0] != 99 || level[1][0] != 99;
    }
    return failures;
}

int main(int argc, char **argv)
{
    return run_checks(argc, argv, check_refusals(), check_case);
}
