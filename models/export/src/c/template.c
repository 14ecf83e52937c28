/*
 * @PREFIX@: see @PREFIX@.h.
 *
@ABOUT@
 *
 * The order of all sums is fixed. Whether a product and the sum it goes into are rounded once or
 * twice is left to the compiler.
 */
#include "@PREFIX@.h"

enum {
    BLOCK = @BLOCK@,        /* ports that are computed together, so that each weight is read once for all */
    TILE = @TILE@,        /* outputs of a layer that are summed up together */
    INPUTS = NDT_HISTORY * NDT_FEATURES,
    WIDEST = @WIDEST@     /* values of a port between two layers, at most */
};

@WEIGHTS@

/* Where the output of the network enters the next level: atanh(-1 + 2 l / NDT_LEVELS). */
static const float level_edges[NDT_LEVELS - 1] = {
@EDGES@
};
@EARLY_EDGES@
@INPUT@

/* The number of the port in place `place` of a block; the last port fills the places behind it. */
static uint32_t port_of(uint32_t first, uint32_t place, uint32_t ports)
{
    return first + place < ports ? first + place : ports - 1;
}

@HELPERS@

int @PREFIX@_forward(struct @PREFIX@_workspace *workspace, const float *observation,
    uint32_t ports, float *mean)
{
@BODY@
}

int @PREFIX@_decide(struct @PREFIX@_workspace *workspace, const float *observation,
    uint32_t ports, uint8_t *levels@EARLY_ARGUMENT@)
{
    uint32_t port, edge;

    if (@PREFIX@_forward(workspace, observation, ports, workspace->mean) != NDT_OK)
        return NDT_ERROR_PORTS;
    for (port = 0; port < ports; port++) {
@LEVELS@
    }
    return NDT_OK;
}
