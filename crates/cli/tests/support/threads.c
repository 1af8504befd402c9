/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads in numbers: the first word says what they do, the second how many there are.
 *
 *   crowd N B   N threads, of which B work a tenth of their time and the others sleep
 *   later N B   the same, started when a line is said to it
 *   pairs N _   N pairs of threads that wake each other in turn
 *   pool N M    N threads that wait for work in a queue, which gets some every M ms (0: never)
 *   held N _    N threads that take turns with a mutex, each at work while it has it
 *   spliced N _ N threads that wait in splice(2), and one that works a tenth of its time
 *   storm N A   threads that live for a moment, N at a time at most, A of them a second if the
 *               machine can; says ten times a second how many there were so far
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static atomic_long alive;

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void spin(long long ns)
{
	long long end = now_ns() + ns;

	while (now_ns() < end)
		;
}

static void *sleeps(void *nothing)
{
	for (;;)
		pause();
	return nothing;
}

/* A tenth of its time. */
static void *works(void *nothing)
{
	for (;;) {
		spin(2000000);
		usleep(18000);
	}
	return nothing;
}

static void *lives_briefly(void *nothing)
{
	spin(20000);
	atomic_fetch_sub(&alive, 1);
	return nothing;
}

static void start(void *(*what)(void *), void *with)
{
	static pthread_attr_t small;
	static int ready;
	pthread_t thread;

	if (!ready++) {
		pthread_attr_init(&small);
		pthread_attr_setstacksize(&small, 32 << 10);
		pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
	}
	if (pthread_create(&thread, &small, what, with)) {
		perror("pthread_create");
		exit(1);
	}
}

static void *answers(void *ends)
{
	int *end = ends;
	char byte;

	while (read(end[0], &byte, 1) == 1 && write(end[1], &byte, 1) == 1)
		;
	exit(1);
}

static void pairs(long count)
{
	for (long i = 0; i < count; i++) {
		int there[2], back[2], *ends = malloc(4 * sizeof(int));

		if (!ends || pipe(there) || pipe(back)) {
			perror("pipe");
			exit(1);
		}
		ends[0] = there[0];
		ends[1] = back[1];
		ends[2] = back[0];
		ends[3] = there[1];
		start(answers, ends);
		start(answers, ends + 2);
		if (write(there[1], "", 1) != 1)
			exit(1);
	}
}

static void crowd(long count, long busy)
{
	for (long i = 0; i < count; i++)
		start(i < busy ? works : sleeps, NULL);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static long queued;

static void *takes_work(void *nothing)
{
	for (;;) {
		pthread_mutex_lock(&mutex);
		while (!queued)
			pthread_cond_wait(&more, &mutex);
		queued--;
		pthread_mutex_unlock(&mutex);
		spin(1000000);
	}
	return nothing;
}

static void pool(long count, long each_ms)
{
	for (long i = 0; i < count; i++)
		start(takes_work, NULL);
	puts("ready");
	fflush(stdout);
	while (each_ms) {
		usleep(each_ms * 1000);
		pthread_mutex_lock(&mutex);
		queued++;
		pthread_cond_signal(&more);
		pthread_mutex_unlock(&mutex);
	}
	sleeps(NULL);
}

static void *takes_turns(void *nothing)
{
	for (;;) {
		pthread_mutex_lock(&mutex);
		spin(2000000);
		pthread_mutex_unlock(&mutex);
		usleep(100);
	}
	return nothing;
}

static void *splices(void *nothing)
{
	int from[2], to[2];

	if (pipe(from) || pipe(to)) {
		perror("pipe");
		exit(1);
	}
	splice(from[0], NULL, to[1], NULL, 1, 0);
	exit(1);
	return nothing;
}

static void spliced(long count)
{
	for (long i = 0; i < count; i++)
		start(splices, NULL);
	start(works, NULL);
}

static void held(long count)
{
	for (long i = 0; i < count; i++)
		start(takes_turns, NULL);
}

static void storm(long most, long a_second)
{
	long long begun = now_ns(), told = 0, each_ns = 1000000000 / a_second;

	for (long total = 0;; total++) {
		while (atomic_load(&alive) >= most || now_ns() - begun < total * each_ns)
			usleep(500);
		atomic_fetch_add(&alive, 1);
		start(lives_briefly, NULL);
		if (now_ns() - told > 100000000) {
			told = now_ns();
			printf("%ld\n", total);
			fflush(stdout);
		}
	}
}

int main(int argc, char **argv)
{
	long most = atol(argv[2]), number = atol(argv[3]);

	if (!strcmp(argv[1], "storm"))
		storm(most, number);
	if (!strcmp(argv[1], "pool"))
		pool(most, number);
	if (!strcmp(argv[1], "later"))
		getchar();
	if (!strcmp(argv[1], "pairs"))
		pairs(most);
	else if (!strcmp(argv[1], "held"))
		held(most);
	else if (!strcmp(argv[1], "spliced"))
		spliced(most);
	else
		crowd(most, number);
	puts("ready");
	fflush(stdout);
	sleeps(NULL);
}
