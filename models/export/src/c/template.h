/*
 * @PREFIX@: a policy for the shared buffer of a switch, in C99 with 32-bit floating point.
 *
@ABOUT@
 *
 * The network sets the threshold factor alpha @AND_EARLY@of every port from what the switch has seen of the
 * port in the last decisions. Features of one decision and port, in this order:
@FEATURES@
 *
 * Levels: alpha of level l is 2^(l - NDT_UNIT_LEVEL), l from 0 to NDT_LEVELS - 1.
 * Before the first decision every port has level NDT_UNIT_LEVEL.
@EARLY_LEVELS@ *
 * Nothing is allocated, no function of another library is called, and all state is in the
 * workspace, so that several switches can be decided about at once, each with its own.
 */
#ifndef @GUARD@
#define @GUARD@

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Most ports of a switch. It must be the same wherever this file is included. */
#ifndef NDT_MAX_PORTS
#define NDT_MAX_PORTS 256
#endif

#define NDT_HISTORY @HISTORY@
#define NDT_FEATURES @FEATURE_COUNT@
#define NDT_LEVELS @LEVELS@
#define NDT_UNIT_LEVEL @UNIT@
@EARLY_MACROS@
#ifndef NDT_STATUS
#define NDT_STATUS
enum { NDT_OK = 0, NDT_ERROR_PORTS = -1 };
#endif

/* Scratch memory, static or on the stack of the caller; it needs no initialisation. */
struct @PREFIX@_workspace {
@WORKSPACE@
};

/*
 * The network's output@PLURAL@ for every port, before tanh.
 *
 * observation: [ports][NDT_HISTORY][NDT_FEATURES], the newest decision last
 * mean:        [ports]@OUTPUTS@
 *
 * Returns NDT_OK, or NDT_ERROR_PORTS where ports is 0 or above NDT_MAX_PORTS; nothing is written
 * then.
 */
int @PREFIX@_forward(struct @PREFIX@_workspace *workspace, const float *observation,
    uint32_t ports, float *mean);

/*
 * The level of alpha of every port; levels: [ports]. @EARLY_LEVEL@Otherwise as @PREFIX@_forward.
 */
int @PREFIX@_decide(struct @PREFIX@_workspace *workspace, const float *observation,
    uint32_t ports, uint8_t *levels@EARLY_ARGUMENT@);

#ifdef __cplusplus
}
#endif

#endif
