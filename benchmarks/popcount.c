/* Ones that two bitmaps share, counted in three ways; what the kernel is measured against. */
#include <stdint.h>

static int64_t by_word(const uint64_t *left, const uint64_t *right, int64_t n) {
    uint64_t ones = 0;
    for (int64_t i = 0; i < n; i++) ones += __builtin_popcountll(left[i] & right[i]);
    return (int64_t)ones;
}

#define IN_TURN(name, count)                                                                                  \
    int64_t name(const uint64_t *left, const uint64_t *rights, int64_t n, int64_t last, int64_t turns) {      \
        int64_t total = 0;                                                                                    \
        for (int64_t turn = 0; turn < turns; turn++) total += count(left, rights + (turn & last) * n, n);     \
        return total;                                                                                         \
    }

IN_TURN(loop, by_word)

/* Reads every word once: the speed of memory, where the array is larger than all caches. */
int64_t read_all(const uint64_t *words, int64_t n) {
    uint64_t sum = 0;
    for (int64_t i = 0; i < n; i++) sum += words[i];
    return (int64_t)sum;
}

#ifdef __AVX2__
#include <immintrin.h>

/* The ones of each byte, looked up by half bytes and summed by eights. */
static inline __m256i ones_of(__m256i words) {
    const __m256i known = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
                                           0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
    const __m256i half = _mm256_set1_epi8(15);
    __m256i low = _mm256_shuffle_epi8(known, _mm256_and_si256(words, half));
    __m256i high = _mm256_shuffle_epi8(known, _mm256_and_si256(_mm256_srli_epi16(words, 4), half));
    return _mm256_sad_epu8(_mm256_add_epi8(low, high), _mm256_setzero_si256());
}

static inline __m256i shared(const uint64_t *left, const uint64_t *right, int64_t i) {
    return _mm256_and_si256(_mm256_loadu_si256((const __m256i *)(left + i)),
                            _mm256_loadu_si256((const __m256i *)(right + i)));
}

static inline int64_t sum_of(__m256i sums) {
    return _mm256_extract_epi64(sums, 0) + _mm256_extract_epi64(sums, 1) + _mm256_extract_epi64(sums, 2)
           + _mm256_extract_epi64(sums, 3);
}

static int64_t by_shuffle(const uint64_t *left, const uint64_t *right, int64_t n) {
    __m256i ones = _mm256_setzero_si256();
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) ones = _mm256_add_epi64(ones, ones_of(shared(left, right, i)));
    return sum_of(ones) + by_word(left + i, right + i, n - i);
}

/* A full adder on 256 columns at once. */
static inline __m256i add(__m256i *carry, __m256i a, __m256i b, __m256i c) {
    __m256i odd = _mm256_xor_si256(a, b);
    *carry = _mm256_or_si256(_mm256_and_si256(a, b), _mm256_and_si256(odd, c));
    return _mm256_xor_si256(odd, c);
}

/* Harley and Seal: sixteen vectors are added bit by bit, so that only one of them has to be counted. */
static int64_t by_adders(const uint64_t *left, const uint64_t *right, int64_t n) {
    __m256i total = _mm256_setzero_si256(), ones = total, twos = total, fours = total, eights = total;
    __m256i sixteens, two[2], four[2], eight[2];
    int64_t i = 0;
    for (; i + 64 <= n; i += 64) {
        for (int k = 0; k < 2; k++) {
            for (int j = 0; j < 2; j++) {
                const int64_t at = i + 32 * k + 16 * j;
                ones = add(&two[0], ones, shared(left, right, at), shared(left, right, at + 4));
                ones = add(&two[1], ones, shared(left, right, at + 8), shared(left, right, at + 12));
                twos = add(&four[j], twos, two[0], two[1]);
            }
            fours = add(&eight[k], fours, four[0], four[1]);
        }
        eights = add(&sixteens, eights, eight[0], eight[1]);
        total = _mm256_add_epi64(total, ones_of(sixteens));
    }
    total = _mm256_slli_epi64(total, 4);
    total = _mm256_add_epi64(total, _mm256_slli_epi64(ones_of(eights), 3));
    total = _mm256_add_epi64(total, _mm256_slli_epi64(ones_of(fours), 2));
    total = _mm256_add_epi64(total, _mm256_slli_epi64(ones_of(twos), 1));
    total = _mm256_add_epi64(total, ones_of(ones));
    return sum_of(total) + by_shuffle(left + i, right + i, n - i);
}

IN_TURN(shuffle, by_shuffle)
IN_TURN(adders, by_adders)
#endif
