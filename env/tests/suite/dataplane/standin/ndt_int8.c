#include "ndt_int8.h"

#define HISTORY (NDT_HISTORY * NDT_FEATURES)

static uint32_t mixed(uint32_t hash, uint32_t value)
{
    return (hash ^ value) * 16777619u;
}

int ndt_int8_decide(struct ndt_int8_workspace *workspace, const uint8_t *codes, uint32_t ports,
                    uint8_t *levels STANDIN_ARGUMENT)
{
    uint32_t all = 2166136261u, port, place;

    if (ports == 0 || ports > NDT_MAX_PORTS) {
        return NDT_ERROR_PORTS;
    }
    for (port = 0; port < ports; port++) {
        uint32_t hash = 2166136261u;

        for (place = 0; place < HISTORY; place++) {
            hash = mixed(hash, codes[port * HISTORY + place]);
        }
        workspace->hashes[port] = hash;
        all = mixed(all, hash);
    }
    for (port = 0; port < ports; port++) {
        const uint32_t hash = mixed(all, workspace->hashes[port]);

        levels[port] = (uint8_t)(hash >> 13 & (NDT_LEVELS - 1));
#ifdef STANDIN_EARLY
        early[port] = (uint8_t)(hash >> 17 & (NDT_EARLY_LEVELS - 1));
#endif
    }
    return NDT_OK;
}
