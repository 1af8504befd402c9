# What one types here; each installs the Debian packages it needs and that are missing.

UNTAX_CACHE ?= $(HOME)/.cache/untax
export UNTAX_CACHE
CARGO_TARGET_DIR ?= $(UNTAX_CACHE)/target
export CARGO_TARGET_DIR

.PHONY: help check test kubernetes bench clean

help:
	@echo "make check   build untax and check the databases that run here, or a scratch one"
	@echo "make test    every test: formatting, lints, tests, real servers, a guest machine"
	@echo "make kubernetes"
	@echo "             what plans hand over, on a cluster of one node; builds it the first time"
	@echo "make bench   the figures of docs/results/, measured anew; takes hours"
	@echo "make clean   remove what was built and fetched"

check:
	@scripts/check.sh

test:
	@scripts/test.sh

kubernetes:
	@scripts/kubernetes.sh

bench:
	@scripts/bench.sh

clean:
	cargo clean
	rm -rf "$(UNTAX_CACHE)/kernel" "$(UNTAX_CACHE)/guests" "$(UNTAX_CACHE)/kubernetes" "$(UNTAX_CACHE)/report.html"
