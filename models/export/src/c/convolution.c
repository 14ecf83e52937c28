/*
 * Filters over the steps of each feature, zero-padded at both ends, then ReLU.
 * in: [NDT_HISTORY][NDT_FEATURES]; out: [NDT_HISTORY][NDT_FEATURES][FILTERS]
 */
static void convolve(const float *restrict in, float *restrict out)
{
    int step, feature, tap, j;

    for (step = 0; step < NDT_HISTORY; step++)
        for (feature = 0; feature < NDT_FEATURES; feature++, out += FILTERS) {
            for (j = 0; j < FILTERS; j++)
                out[j] = @NAME@_bias[feature * FILTERS + j];
            for (tap = 0; tap < TAPS; tap++) {
                const int source = step + tap - TAPS / 2;
                const float *weight = @NAME@_weight + (feature * TAPS + tap) * FILTERS;

                if (source < 0 || source >= NDT_HISTORY)
                    continue;
                for (j = 0; j < FILTERS; j++)
                    out[j] += in[source * NDT_FEATURES + feature] * weight[j];
            }
            for (j = 0; j < FILTERS; j++)
                out[j] = out[j] > 0.0f ? out[j] : 0.0f;
        }
}
