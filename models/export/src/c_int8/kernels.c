/* Shifts of negative numbers keep the sign, or this does not compile. */
typedef char ndt_arithmetic_shift[(-1 >> 1) == -1 ? 1 : -1];

#if defined(__GNUC__)
#define NDT_ALIGNED __attribute__((aligned(64)))
/* Not every network needs every helper. */
#define NDT_HELPER __attribute__((unused)) static inline
#else
#define NDT_ALIGNED
#define NDT_HELPER static inline
#endif

/* Rows that are computed together, so that every weight is loaded once for all of them. */
#define NDT_BLOCK 4

/* min(max(sum, 0), cap) >> pre, times the multiplier, rounded, >> post, at most 255. */
struct ndt_rescale {
    int32_t cap;
    uint32_t pre;
    uint32_t post;
    const int16_t *multiplier;
};

#if defined(__AVX512VNNI__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#define NDT_WIDE 1
#include <immintrin.h>

NDT_HELPER __m512i ndt_group(const uint8_t *row, uint32_t group)
{
    int32_t four;
    memcpy(&four, row + 4 * group, 4);
    return _mm512_set1_epi32(four);
}

NDT_HELPER void ndt_rescale_16(__m512i sums, const struct ndt_rescale *rescale,
                                  uint32_t output, uint8_t *y)
{
    const __m256i narrow =
        _mm256_loadu_si256((const __m256i *)(const void *)(rescale->multiplier + output));
    const __m512i half = _mm512_set1_epi32((int32_t)1 << (rescale->post - 1));
    __m512i value = _mm512_max_epi32(sums, _mm512_setzero_si512());
    value = _mm512_min_epi32(value, _mm512_set1_epi32(rescale->cap));
    value = _mm512_srl_epi32(value, _mm_cvtsi32_si128((int)rescale->pre));
    /* Both factors are below 2^15, so that the upper halves of the lanes add nothing. */
    value = _mm512_madd_epi16(value, _mm512_cvtepi16_epi32(narrow));
    value = _mm512_srl_epi32(_mm512_add_epi32(value, half), _mm_cvtsi32_si128((int)rescale->post));
    _mm_storeu_si128((__m128i *)(void *)(y + output), _mm512_cvtusepi32_epi8(value));
}

#else
#define NDT_WIDE 0
#endif

NDT_HELPER uint8_t ndt_rescale_1(int32_t sum, const struct ndt_rescale *rescale,
                                 uint32_t output)
{
    const int32_t positive = sum > 0 ? sum : 0;
    const int32_t clipped = (positive < rescale->cap ? positive : rescale->cap) >> rescale->pre;
    const int32_t half = (int32_t)1 << (rescale->post - 1);
    const int32_t scaled = (clipped * rescale->multiplier[output] + half) >> rescale->post;
    return (uint8_t)(scaled < 255 ? scaled : 255);
}
