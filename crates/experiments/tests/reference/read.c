/* SPDX-License-Identifier: Apache-2.0
 *
 * The plain C loop that `untax bench pages --access direct` is held against: the same rows, the
 * same keys, the same verification, memory of its own.
 *
 *   cc -O2 -o read read.c && ./read 4k|2m ROW-BYTES ROWS READERS
 *
 * Fills the table, and starts READERS processes that share it and touch all of it. Prints "ready", then
 * reads "SECONDS SEED" lines and answers each with the reads per second of all together.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define STEP 0x9e3779b97f4a7c15u
#define BATCH 64

static volatile sig_atomic_t done;

static void on_alarm(int signal) { done = signal; }

static inline uint64_t mix(uint64_t n) {
    n = (n ^ (n >> 30)) * 0xbf58476d1ce4e5b9u;
    n = (n ^ (n >> 27)) * 0x94d049bb133111ebu;
    return n ^ (n >> 31);
}

static uint64_t *map(size_t bytes, int huge) {
    int flags = MAP_SHARED | MAP_ANONYMOUS;
    if (huge)
        flags |= MAP_HUGETLB | (21 << MAP_HUGE_SHIFT);
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (at == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    if (!huge)
        madvise(at, bytes, MADV_NOHUGEPAGE);
    return at;
}

static void fill(uint64_t *table, uint64_t rows, uint64_t width) {
    for (uint64_t row = 0; row < rows; row++) {
        uint64_t value = mix(row);
        for (uint64_t word = 0; word < width; word++, value += STEP)
            table[row * width + word] = value;
    }
}

/* Reads until the alarm; exits when a row does not hold what it must. */
static uint64_t read_rows(const uint64_t *table, uint64_t rows, uint64_t width, uint64_t state) {
    const uint64_t steps = STEP * (width * (width - 1) / 2);
    uint64_t reads = 0;
    while (!done) {
        for (int i = 0; i < BATCH; i++) {
            state += STEP;
            uint64_t row = (uint64_t)(((unsigned __int128)mix(state) * rows) >> 64);
            const uint64_t *words = table + row * width;
            uint64_t header = mix(row), sum = 0;
            for (uint64_t word = 0; word < width; word++)
                sum += words[word];
            if (words[0] != header || sum != header * width + steps) {
                fprintf(stderr, "row %llu is corrupt\n", (unsigned long long)row);
                exit(1);
            }
        }
        reads += BATCH;
    }
    return reads;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

struct order {
    double seconds;
    unsigned long long seed;
};

/* Works for each order until there are no more. */
static void serve(int orders, int answers, const uint64_t *table, uint64_t rows, uint64_t width) {
    struct order order;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    volatile uint64_t touched = 0;
    for (uint64_t word = 0; word < rows * width; word += 512)
        touched += table[word];
    double rate = 0;
    while (write(answers, &rate, sizeof rate) == sizeof rate &&
           read(orders, &order, sizeof order) == sizeof order) {
        long whole = (long)order.seconds;
        struct itimerval timer = {.it_value = {whole, (long)((order.seconds - whole) * 1e6)}};
        done = 0;
        double began = now();
        setitimer(ITIMER_REAL, &timer, NULL);
        uint64_t reads = read_rows(table, rows, width, mix(order.seed));
        rate = reads / (now() - began);
    }
    exit(0);
}

/* The answers of all readers together. */
static double collect(int answers, int readers) {
    double sum = 0, rate;
    for (int i = 0; i < readers; i++) {
        if (read(answers, &rate, sizeof rate) != sizeof rate)
            exit(1);
        sum += rate;
    }
    return sum;
}

int main(int count, char **args) {
    if (count != 5)
        return 2;
    int readers = atoi(args[4]), orders[2], answers[2];
    uint64_t width = (strtoull(args[2], NULL, 10) + 7) / 8, rows = strtoull(args[3], NULL, 10);
    size_t page = 2 << 20, bytes = (rows * width * 8 + page - 1) / page * page;
    uint64_t *table = map(bytes, strcmp(args[1], "2m") == 0);
    fill(table, rows, width);
    signal(SIGALRM, on_alarm);
    if (pipe(orders) || pipe(answers))
        return 1;
    for (int i = 0; i < readers; i++)
        if (fork() == 0)
            serve(orders[0], answers[1], table, rows, width);
    collect(answers[0], readers);
    puts("ready");
    fflush(stdout);
    struct order order;
    while (scanf("%lf %llu", &order.seconds, &order.seed) == 2) {
        for (int i = 0; i < readers; i++, order.seed += 1000000)
            if (write(orders[1], &order, sizeof order) != sizeof order)
                return 1;
        printf("%.3f\n", collect(answers[0], readers));
        fflush(stdout);
    }
    return 0;
}
