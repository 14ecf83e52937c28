/* A stand-in for an exported network: levels by a hash of all codes (FNV-1a). */
#ifndef NDT_INT8_H
#define NDT_INT8_H

#include <stdint.h>

#ifndef NDT_MAX_PORTS
#define NDT_MAX_PORTS 256
#endif

#define NDT_HISTORY 8
#define NDT_FEATURES 5
#define NDT_LEVELS 8
#define NDT_UNIT_LEVEL 2

enum { NDT_OK = 0, NDT_ERROR_PORTS = -1 };

struct ndt_int8_workspace {
    uint32_t hashes[NDT_MAX_PORTS];
};

int ndt_int8_decide(struct ndt_int8_workspace *workspace, const uint8_t *codes, uint32_t ports,
                    uint8_t *levels);

#endif
