/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel that lacks the tracepoints named in LACKS (words, separated by commas): preloaded, it
 * answers as such a kernel does when a program is to be attached to one of them.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

static int lacks(const char *name)
{
	const char *list = getenv("LACKS"), *at = list;
	size_t length = strlen(name);

	for (; at && (at = strstr(at, name)); at += length)
		if ((at == list || at[-1] == ',') && (!at[length] || at[length] == ','))
			return 1;
	return 0;
}

/* The C library's function, by which libbpf makes this system call. */
long syscall(long number, ...)
{
	long a[6];
	va_list arguments;

	va_start(arguments, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(arguments, long);
	va_end(arguments);
	if (number == SYS_bpf && a[0] == BPF_RAW_TRACEPOINT_OPEN &&
	    lacks((const char *)(unsigned long)((union bpf_attr *)a[1])->raw_tracepoint.name)) {
		errno = ENOENT;
		return -1;
	}
	return ((long (*)(long, ...))dlsym(RTLD_NEXT, "syscall"))(number, a[0], a[1], a[2], a[3],
								  a[4], a[5]);
}
