
/* A filter of every channel over the steps: weight[features][filters][NDT_TAP_BYTES]. */
static void ndt_convolve(const uint8_t *codes, uint8_t *y)
{
    uint8_t windows[NDT_FEATURES][NDT_HISTORY + NDT_TAPS - 1 + NDT_TAP_BYTES];
    for (uint32_t feature = 0; feature < NDT_FEATURES; feature++) {
        memset(windows[feature], ndt_padding[feature], sizeof windows[feature]);
        for (uint32_t step = 0; step < NDT_HISTORY; step++) {
            windows[feature][NDT_TAPS / 2 + step] = codes[step * NDT_FEATURES + feature];
        }
    }
    for (uint32_t step = 0; step < NDT_HISTORY; step++) {
        for (uint32_t feature = 0; feature < NDT_FEATURES; feature++) {
            const uint8_t *const window = windows[feature] + step;
            const uint32_t first = feature * NDT_FILTERS;
            uint8_t *const out = y + step * (NDT_FEATURES * NDT_FILTERS);
#if NDT_WIDE && NDT_FILTERS % 16 == 0 && NDT_TAP_BYTES == 4
            const __m512i x = ndt_group(window, 0);
            for (uint32_t channel = first; channel < first + NDT_FILTERS; channel += 16) {
                const __m512i bias = _mm512_loadu_si512(ndt_convolution_bias + channel);
                const __m512i weight = _mm512_loadu_si512(ndt_convolution_weight + 4 * channel);
                const __m512i sums = _mm512_dpbusd_epi32(bias, x, weight);
                ndt_rescale_16(sums, &ndt_convolution_rescale, channel, out);
            }
#else
            for (uint32_t channel = first; channel < first + NDT_FILTERS; channel++) {
                const int8_t *const weight = ndt_convolution_weight + NDT_TAP_BYTES * channel;
                int32_t sum = ndt_convolution_bias[channel];
                for (uint32_t tap = 0; tap < NDT_TAPS; tap++) {
                    sum += weight[tap] * window[tap];
                }
                out[channel] = ndt_rescale_1(sum, &ndt_convolution_rescale, channel);
            }
#endif
        }
    }
}
