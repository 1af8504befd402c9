# What one types here; each installs the Debian packages it needs and that are missing.

UNTAX_CACHE ?= $(HOME)/.cache/untax
export UNTAX_CACHE
CARGO_TARGET_DIR ?= $(UNTAX_CACHE)/target
export CARGO_TARGET_DIR

.PHONY: help check dist test test-long kubernetes bench clean

help:
	@echo "make check   install what is missing, build untax, and check the databases that run here,"
	@echo "             or a scratch PostgreSQL under load where none does"
	@echo "make dist    one static file that runs on any Linux of this architecture, into target/dist"
	@echo "make test    what must pass before a change lands: formatting, lints, unit tests, short tests on"
	@echo "             real servers, a guest machine; 25 minutes"
	@echo "make test-long"
	@echo "             the other tests; docs/testing.md says which"
	@echo "make kubernetes"
	@echo "             what plans hand over, on a cluster of one node; builds it the first time"
	@echo "make bench   the figures of docs/results/, measured anew into target/bench/; takes nine hours"
	@echo "make clean   remove what was built and fetched"

check:
	@scripts/check.sh

dist:
	@scripts/dist.sh

test:
	@scripts/test.sh

test-long:
	@scripts/test.sh --long

kubernetes:
	@scripts/kubernetes.sh

bench:
	@scripts/bench.sh

clean:
	cargo clean
	rm -rf "$(UNTAX_CACHE)/kernel" "$(UNTAX_CACHE)/guests" "$(UNTAX_CACHE)/kubernetes" "$(UNTAX_CACHE)/report.html"
