/* A stand-in for an exported network: levels by a hash of all codes (FNV-1a). With STANDIN_EARLY it sets
 * early drop too, with STANDIN_OF_BUFFER over gaps that grow with the buffer. */
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
#ifdef STANDIN_EARLY
#define NDT_OUTPUTS 2
#define NDT_EARLY_LEVELS 8
#ifdef STANDIN_OF_BUFFER
#define NDT_EARLY_GAPS { 0, 64, 32, 16, 8, 4, 2, 1 }
#define NDT_EARLY_GAP_BYTES 125000
#else
#define NDT_EARLY_GAPS { 0, 1024, 512, 256, 128, 64, 32, 16 }
#endif
#define STANDIN_ARGUMENT , uint8_t *early
#else
#define STANDIN_ARGUMENT
#endif

enum { NDT_OK = 0, NDT_ERROR_PORTS = -1 };

struct ndt_int8_workspace {
    uint32_t hashes[NDT_MAX_PORTS];
};

int ndt_int8_decide(struct ndt_int8_workspace *workspace, const uint8_t *codes, uint32_t ports,
                    uint8_t *levels STANDIN_ARGUMENT);

#endif
