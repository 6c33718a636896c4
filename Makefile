# The front door for everyone who works on gcluster. Bare `make` lists the verbs.
# On a machine that lacks make or Python, start with .ci/bootstrap: it installs what is missing.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
export PATH := $(CURDIR)/.venv/bin:$(PATH)

# Every tracked file whose first line names a shell.
SHELL_FILES = $$(git grep -nE '^\#!/(usr/)?bin/(env )?(ba|da)?sh' | sed -n 's/:1:.*//p')
LOCK := uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate \
	--python-version 3.11 $(if $(UPGRADE),--upgrade)
# Tests without nodes, on all cores; those of a file stay together, for its fixtures.
PARALLEL := -n auto --dist loadfile
UNIT := "not local and not package and not editor and not stores and not monitoring and not kubernetes_api and not dashboard"
# Their folders are in memory where it can hold them: they write, with fsync, tens of thousands of files.
IN_MEMORY := $(shell [ "$$(df --output=avail /dev/shm 2>/dev/null | tail -1)" -gt 4000000 ] 2>/dev/null \
	&& ! findmnt -no OPTIONS -T /dev/shm | grep -qw noexec && echo PYTEST_DEBUG_TEMPROOT=/dev/shm)
FOLDERS := -o tmp_path_retention_policy=failed -o tmp_path_retention_count=1
# What the wheel carries; the other tests are about the checkout.
PACKAGES := schemas inventory stacks lifecycle cli
# Built in its own module: its checksums are in its own go.sum, not all of them in the sum database.
SOPS := 3.13.3
# Where a stage leaves its JUnit report for the closing count (.ci/count.py).
REPORT := $(if $(GCLUSTER_REPORT),--junitxml=$(GCLUSTER_REPORT))

.PHONY: help
help:
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## install what this machine lacks and make .venv equal to the lock
	@.ci/bootstrap setup

.PHONY: demo
demo: ## bring up examples/local.yaml to a passed AllReduce
	@.ci/bootstrap demo

.PHONY: test
test: ## run everything CI runs, stage by stage, with a table of times
	@.ci/bootstrap test

.PHONY: test-unit
test-unit: environment ## run the tests that need no nodes
	@$(IN_MEMORY) pytest -q $(PARALLEL) $(FOLDERS) -m $(UNIT) $(REPORT)

.PHONY: test-wheel
test-wheel: environment ## the same against the wheel as people install it (CI's stage unit)
	@.ci/wheel
	@code=0; \
		$(IN_MEMORY) PYTHONPATH=$(CURDIR)/.cache/wheel/site pytest -q $(PARALLEL) $(FOLDERS) \
			-m $(UNIT) -o pythonpath=. -p no:cacheprovider $(PACKAGES:%=tests/%) $(REPORT) || code=$$?; \
		$(IN_MEMORY) pytest -q $(PARALLEL) $(FOLDERS) -m $(UNIT) $(PACKAGES:%=--ignore=tests/%) \
			$(REPORT:.xml=-checkout.xml) || code=$$?; \
		exit $$code

.PHONY: test-engine-double
test-engine-double: environment ## run every cloud program through the Automation API; the engine is a double
	@GCLUSTER_ENGINE_DOUBLE=all pytest -q $(PARALLEL) --dist load tests/stacks/*/test_double_run.py \
		tests/lifecycle/test_every_request_is_met.py $(REPORT)

.PHONY: test-aws-double
test-aws-double: environment ## bring an AWS site up and down, killed ten times each; engine and AWS are doubles
	@GCLUSTER_ENGINE_DOUBLE=all pytest -q -n0 tests/stacks/aws/test_moto_run.py $(REPORT)

.PHONY: test-package
test-package: environment ## build wheel and sdist, install the wheel apart and test that
	@pytest -q -m package tests/repository/test_package.py $(REPORT)

.PHONY: test-editor
test-editor: environment ## try the schema in the YAML language server that editors run
	@lock=$$(sha256sum tests/editor/package-lock.json | cut -c1-16); \
	cd tests/editor; [ "$$(cat node_modules/.lock 2>/dev/null)" = "$$lock" ] || { \
		npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null; \
		echo "$$lock" >node_modules/.lock; }
	@pytest -q -m editor tests/editor $(REPORT)

.PHONY: test-stores
test-stores: environment ## run state on emulators of S3, Azure and GCS, and its secrets under sops
	@lock=$$(sha256sum tests/stores/package-lock.json | cut -c1-16); \
	cd tests/stores; [ "$$(cat node_modules/.lock 2>/dev/null)" = "$$lock" ] || { \
		npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null; \
		echo "$$lock" >node_modules/.lock; }; \
	[ -x bin/fake-gcs-server ] || \
		GOBIN=$$PWD/bin go install github.com/fsouza/fake-gcs-server@v1.56.1; \
	[ "$$(bin/sops --disable-version-check --version 2>/dev/null)" = "sops $(SOPS)" ] || { \
		source=$$(go mod download -json github.com/getsops/sops/v3@v$(SOPS) | \
			sed -n 's/.*"Dir": "\(.*\)",/\1/p'); \
		go build -C "$$source" -mod=readonly -buildvcs=false -o $$PWD/bin/sops ./cmd/sops; }
	@pytest -q -n0 tests/lifecycle/state/test_bucket.py tests/lifecycle/secrets/test_sops.py $(REPORT)

.PHONY: test-alerts
test-alerts: environment ## hold alert and recording rules to their cases with promtool
	@programs=$$(.ci/prometheus); PATH=$$programs:$$PATH pytest -q $(PARALLEL) -m monitoring tests/inventory/alerts tests/inventory/waste tests/inventory/dashboards tests/lifecycle/status $(REPORT)

.PHONY: test-dashboard
test-dashboard: environment ## try the page of `gcluster dashboard` in Chromium (PICTURES=1 writes those of the docs)
	@lock=$$(sha256sum tests/dashboard/package-lock.json | cut -c1-16); \
	cd tests/dashboard; [ "$$(cat node_modules/.lock 2>/dev/null)" = "$$lock" ] || { \
		npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null; \
		echo "$$lock" >node_modules/.lock; }
	@command -v chromium >/dev/null || .ci/as-root sh -c 'apt-get update -qq && apt-get install -qq --no-install-recommends chromium fonts-dejavu-core' >/dev/null
	@programs=$$(.ci/prometheus); PATH=$$programs:$$PATH GCLUSTER_PICTURES=$(PICTURES) pytest -q -n0 -m dashboard tests/dashboard $(REPORT)

.PHONY: test-roles
test-roles: environment ## run the molecule scenario of every role on local nodes
	@image=$$(python .ci/node_image.py); GCLUSTER_MOLECULE_IMAGE=$$image molecule/run-all

.PHONY: test-roles-core
test-roles-core: environment ## run the scenarios that CI runs: the core, and roles changed since GCLUSTER_BASE
	@image=$$(python .ci/node_image.py); \
		GCLUSTER_MOLECULE_IMAGE=$$image molecule/run-all $$(.ci/scenarios)

.PHONY: break-roles
break-roles: environment ## change roles' nodes behind their backs: each time verify must fail
	@molecule/break-roles

.PHONY: test-local
test-local: environment ## run the end-to-end tests on real local nodes
	@pytest -q -m "local and not stack and not bundle and not pull and not slurm and not burst and not reconcile and not kubernetes and not slurm_build and not cloud_like and not aws_up and not gcp_up and not azure_up and not oci_up and not acceptance and not no_scheduler and not waste and not training and not torture" $(REPORT)

.PHONY: test-acceptance
test-acceptance: environment ## run an acceptance that is killed, with a busy node, exclusions and drills
	@pytest -q -m local tests/e2e/test_acceptance.py $(REPORT)

.PHONY: test-monitoring
test-monitoring: environment ## run jobs that leave GPUs idle, and hold top and report to their cost
	@pytest -q -m waste tests/e2e $(REPORT)

.PHONY: test-training
test-training: environment ## train through lost nodes, full disks, torn checkpoints, preemption (KILLS=processes)
	@GCLUSTER_KILLS=$${KILLS:-5} pytest -q -n0 -m training tests/e2e/test_training.py tests/e2e/test_training_torch.py tests/e2e/test_training_recipes.py tests/e2e/test_kubernetes_workloads.py $(REPORT)

.PHONY: test-no-scheduler
test-no-scheduler: environment ## bring nodes without a scheduler up, with programs of people on them
	@pytest -q -m no_scheduler tests/e2e $(REPORT)

.PHONY: test-stack
test-stack: environment ## bring servers up on doubles, upgrade their driver under a job, go back
	@pytest -q -m stack tests/e2e/test_whole_stack.py $(REPORT)

.PHONY: test-cloud-like
test-cloud-like: environment ## bring Slurm up on nodes that start as machines of a cloud do
	@pytest -q -m cloud_like tests/e2e/test_cloud_like.py $(REPORT)

.PHONY: test-aws-up
test-aws-up: environment ## bring Slurm up on an AWS of doubles and local nodes, killed ten times, and down
	@pytest -q -n0 -m aws_up tests/e2e/test_aws.py $(REPORT)

.PHONY: test-azure-up
test-azure-up: environment ## bring Slurm up on an Azure of doubles and local nodes, killed ten times, and down
	@pytest -q -n0 -m azure_up tests/e2e/test_azure.py $(REPORT)

.PHONY: test-gcp-up
test-gcp-up: environment ## bring Slurm up on a Google of doubles and local nodes, killed ten times, and down
	@pytest -q -n0 -m gcp_up tests/e2e/test_google.py $(REPORT)

.PHONY: test-oci-up
test-oci-up: environment ## bring Slurm up on an OCI of doubles and local nodes, killed ten times, and down
	@pytest -q -n0 -m oci_up tests/e2e/test_oci.py $(REPORT)

.PHONY: test-pull
test-pull: environment ## have nodes converge themselves, and wait for their jobs
	@pytest -q -m pull tests/e2e/test_pull.py $(REPORT)

.PHONY: test-reconcile
test-reconcile: environment ## have a merge become a cluster with a certificate, and expire
	@pytest -q -m reconcile tests/e2e/test_reconcile.py $(REPORT)

.PHONY: test-slurm
test-slurm: environment ## hold Slurm to its spec: accounts, order of jobs, operations, failures
	@pytest -q -m slurm tests/e2e $(REPORT)

.PHONY: test-slurm-core
test-slurm-core: environment ## run the core of test-slurm and prove-burst
	@pytest -q -m core tests/e2e $(REPORT)

.PHONY: test-slurm-suite
test-slurm-suite: environment ## run Slurm's own testsuite on a local cluster (ONLY=regular expression)
	@python -m tests.e2e.slurm_suite

.PHONY: test-kubernetes-suite
test-kubernetes-suite: environment bundle-kubernetes ## run Kubernetes' own conformance tests on a local cluster (ONLY=...)
	@python -m tests.e2e.kubernetes_suite

.PHONY: test-upgrade
test-upgrade: environment ## take over a local cluster that an older gcluster made (FROM=commit)
	@python -m tests.e2e.upgrade $${FROM:?say from which commit}

.PHONY: prove-restore
prove-restore: environment ## lose every machine ten times (FOR=... times): the backup brings all jobs back
	@GCLUSTER_ROUNDS=$${FOR:-10} pytest -q -n0 tests/e2e/test_restore.py $(REPORT)

.PHONY: test-slurm-build
test-slurm-build: environment ## build Slurm from its source on a node, and bring a cluster to it (minutes)
	@pytest -q -m slurm_build tests/e2e/test_slurm_build.py $(REPORT)

.PHONY: test-kubernetes
test-kubernetes: environment bundle-kubernetes ## bring Kubernetes up on a control plane and a node, and break it
	@pytest -q -m kubernetes tests/e2e/test_kubernetes.py $(REPORT)

.PHONY: test-kubernetes-full
test-kubernetes-full: test-kubernetes ## the same, then on two nodes: grow, shrink, preempt, restore, upgrade
	@GCLUSTER_KUBERNETES_PROGRAMS=tests/e2e/kubernetes_previous python .ci/bundle_kubernetes.py
	@pytest -q -m kubernetes tests/e2e/test_kubernetes_nodes.py tests/e2e/test_kubernetes_rotation.py tests/e2e/test_kubernetes_gate.py tests/e2e/test_kubernetes_escapes.py \
		tests/e2e/test_kubernetes_ha.py tests/e2e/test_kubernetes_upgrade.py tests/e2e/test_kubernetes_elastic.py

.PHONY: prove-burst
prove-burst: environment ## kill the burst agent at every step, then have jobs spill between local sites
	@pytest -q -n0 tests/lifecycle/burst/agent/test_killed.py $(REPORT)
	@pytest -q -m burst tests/e2e $(REPORT)

.PHONY: test-bundle
test-bundle: environment bundle-kubernetes ## bundle specs, and bring nodes without a network up from that alone
	@pytest -q -m bundle tests/e2e/test_air_gap.py tests/e2e/test_kubernetes_air_gap.py $(REPORT)

.PHONY: test-scale
test-scale: environment ## run 1,008 slurmd with the compiled configuration: sinfo under a second
	@python -m bench.simulated.slurm_scale

.PHONY: search
search: environment ## search freely for cases that break a law (CI's are always the same ones)
	@GCLUSTER_SEARCH=1 pytest -q $(PARALLEL) -m $(UNIT) $$(git grep -lE '^from hypothesis' -- tests) $(REPORT)

.PHONY: fuzz
fuzz: environment ## fuzz the loader for a while (FOR=600 seconds; crashes are left in .cache/fuzz)
	@python tests/fuzz/corpus.py .cache/fuzz/corpus
	@python tests/fuzz/fuzz_load.py -max_total_time=$${FOR:-600} -max_len=4096 -print_final_stats=1 \
		-artifact_prefix=.cache/fuzz/ .cache/fuzz/corpus 2>&1 | grep -v "^INFO: Instrumenting"

.PHONY: mutate-checks
mutate-checks: environment ## disable each check in turn: each time a golden case must fail
	@python -m tests.schemas.mutate_checks

.PHONY: test-model
test-model: environment ## run 10,000 scenarios of faults against the lifecycle (FOR=... scenarios, SEED=...)
	@python -m tests.lifecycle.model.search $${FOR:-10000} $(SEED)

.PHONY: mutate-lifecycle
mutate-lifecycle: environment ## take out what protects a cluster, piece by piece: the model must notice
	@python -m tests.lifecycle.model.mutate

.PHONY: torture
torture: environment ## hurt simulated clusters by pairs of faults, 500 runs (FOR=... runs, SEED=...), and bad inputs
	@python -m tests.torture $${FOR:-500} $(SEED)

.PHONY: torture-nodes
torture-nodes: environment ## hurt a real local cluster: containers, services, network, disk, hung nodes (SEED=...)
	@GCLUSTER_SEED=$${SEED:-0} pytest -q -n0 -s -m torture tests/torture/test_nodes.py $(REPORT)

.PHONY: soak
soak: environment ## keep a local cluster at work for hours and see whether anything grows (FOR=4h)
	@python -m tests.e2e.soak $${FOR:-4h}

.PHONY: chaos
chaos: environment ## kill up and down of real local nodes 200 times (FOR=... kills): nothing is orphaned
	@GCLUSTER_KILLS=$${FOR:-200} pytest -q -n0 -s tests/e2e/test_chaos.py $(REPORT)

.PHONY: lint
lint: lint-python lint-types lint-roles lint-modules lint-shell ## run every static check

.PHONY: lint-python
lint-python: environment ## check Python style and format (ruff)
	@ruff check --quiet
	@ruff format --check --quiet

.PHONY: lint-types
lint-types: environment ## check types: all Python, the clouds against their real SDKs (mypy strict)
	@mypy --no-error-summary --exclude '/ansible_collections/.*/roles/' src/gcluster bench .ci/*.py \
		$$(dirname roles/*/files/*/__init__.py) roles/*/files/*.py roles/*/files/libexec/*.py \
		roles/slurm/files/job_launch/*.py

.PHONY: lint-roles
lint-roles: environment ## check roles and YAML (ansible-lint production, yamllint)
	@yamllint --strict -c .config/yamllint.yml .
	@ANSIBLE_COLLECTIONS_PATH=$(CURDIR)/src/gcluster python .ci/lint_roles.py

.PHONY: lint-modules
lint-modules: environment ## check the collection's modules (ansible-test sanity, what needs no network)
	@.ci/sanity

.PHONY: lint-shell
lint-shell: ## check shell files (shellcheck)
	@shellcheck -x $(SHELL_FILES)

.PHONY: format
format: environment ## format Python and apply the fixes of ruff
	@ruff format
	@ruff check --fix

.PHONY: schema
schema: environment ## write the JSON Schemas again from the types
	@for kind in cluster catalog policies; do gcluster schema $$kind > schemas/structure/$$kind.schema.json; done

.PHONY: docs
docs: schema ## write the generated pages again (spec reference, codes, roles)
	@python -m gcluster.schemas.structure.reference examples docs
	@python -m gcluster.schemas.codes --write
	@python .ci/roles.py
	@python .ci/dashboards.py

.PHONY: lock
lock: environment ## resolve the lock again (UPGRADE=1 takes newer versions)
	@$(LOCK) requirements/uv.in -o requirements/uv.txt
	@$(LOCK) pyproject.toml -o requirements/runtime.txt
	@$(LOCK) pyproject.toml --group dev --all-extras -o requirements/dev.txt

.PHONY: bundle-kubernetes
bundle-kubernetes: environment ## build Kubernetes for local nodes from its Go modules, unless it is cached
	@python .ci/bundle_kubernetes.py

.PHONY: test-kubernetes-api
test-kubernetes-api: environment bundle-kubernetes ## have a real API server take compiled manifests, add-ons, and a cluster from up to down
	@pytest -q -n0 -m kubernetes_api tests/inventory/kubernetes_objects tests/lifecycle/kubernetes tests/lifecycle/managed tests/lifecycle/scheduler $(REPORT)

.PHONY: build
build: environment ## build wheel and sdist into dist/
	@hatchling build -d dist

.PHONY: sbom
sbom: environment ## write the bill of materials of what an installation brings into dist/
	@python .ci/sbom.py

.PHONY: bench
bench: environment ## measure what the README claims about speed (RATIOS=1: only what holds on any machine)
	@python -m bench.run $(if $(RATIOS),--ratios)

.PHONY: size-accuracy
size-accuracy: environment ## show how far `gcluster size` is from published runs
	@python -m bench.size.accuracy

.PHONY: bench-write
bench-write: environment ## measure, with local nodes too, and write the figures into README and docs
	@python -m bench.run --nodes --write

.PHONY: pictures
pictures: environment ## record the terminal pictures of the documentation from real runs (needs tmux)
	@python bench/record.py docs/up.svg "gcluster up examples/local.yaml --yes"
	@gcluster down demo --yes
	@python -m tests.e2e.record_aws docs/aws-up.svg

.PHONY: clean
clean: ## remove what builds and tests leave in the checkout (not .venv, not clusters)
	@rm -rf dist build .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .ansible .coverage*

.PHONY: environment
environment:
	@.ci/environment
