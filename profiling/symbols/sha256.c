/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/symbols/sha256.c - the contract is in sha256.h. Any thread; owns nothing. The names of
 * the variables are those of the standard. */
#include "profiling/symbols/sha256.h"

#include <string.h>

enum { BLOCK = 64, ROUNDS = 64, WORDS = 8, LENGTH_BYTES = 8 };

static const uint32_t constants[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t word, unsigned bits)
{
    return word >> bits | word << (32 - bits);
}

static void expand(uint32_t w[ROUNDS], const uint8_t block[BLOCK])
{
    for (unsigned t = 0; t < 16; t++, block += 4)
        w[t] = (uint32_t)block[0] << 24 | (uint32_t)block[1] << 16 | (uint32_t)block[2] << 8 |
               (uint32_t)block[3];
    for (unsigned t = 16; t < ROUNDS; t++) {
        const uint32_t x = w[t - 15];
        const uint32_t y = w[t - 2];
        w[t] = w[t - 16] + w[t - 7] + (rotate(x, 7) ^ rotate(x, 18) ^ x >> 3) +
               (rotate(y, 17) ^ rotate(y, 19) ^ y >> 10);
    }
}

static void digest_block(uint32_t state[WORDS], const uint8_t block[BLOCK])
{
    uint32_t w[ROUNDS];
    uint32_t v[WORDS]; /* a to h */
    expand(w, block);
    memcpy(v, state, sizeof v);
    for (unsigned t = 0; t < ROUNDS; t++) {
        const uint32_t a = v[0];
        const uint32_t e = v[4];
        const uint32_t t1 = v[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
                            ((e & v[5]) ^ (~e & v[6])) + constants[t] + w[t];
        const uint32_t t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +
                            ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, (WORDS - 1) * sizeof v[0]);
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (unsigned i = 0; i < WORDS; i++)
        state[i] += v[i];
}

void oteli_sha256(const void *bytes, size_t length, uint8_t digest[OTELI_SHA256_BYTES])
{
    uint32_t state[WORDS] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                             0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    const uint8_t *at = bytes;
    size_t left = length;
    for (; left >= BLOCK; left -= BLOCK, at += BLOCK)
        digest_block(state, at);
    uint8_t last[2 * BLOCK] = {0};
    if (left != 0)
        memcpy(last, at, left);
    last[left] = 0x80;
    const size_t end = left + 1 + LENGTH_BYTES <= BLOCK ? BLOCK : 2 * BLOCK;
    const uint64_t bits = (uint64_t)length * 8;
    for (unsigned i = 0; i < LENGTH_BYTES; i++)
        last[end - 1 - i] = (uint8_t)(bits >> (8 * i));
    digest_block(state, last);
    if (end > BLOCK)
        digest_block(state, last + BLOCK);
    for (unsigned i = 0; i < OTELI_SHA256_BYTES; i++)
        digest[i] = (uint8_t)(state[i / 4] >> (24 - 8 * (i % 4)));
}
