# `make` builds bin/mlpromote and bin/mlpromote-node; `make help` lists the rest. Nothing depends on the flags
# of the environment that it runs in; that they are the same everywhere lets programs,
# checks and tests share what is compiled.
export GOFLAGS := -buildvcs=false -trimpath

VERSION    ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo 0.0.0-dev)
COUNT      := go run ./tools/testcount
# Names of toolchains, from their rows: of those that `make test` installs, of those whose tests run with `make toolchains-all`, of
# those that make engines, and of those that import or quantize. torch takes 5.5 GiB.
TOOLCHAINS_OF = $(shell go run ./tools/toolchainstable -list $(1))
OTHERS        = $(call TOOLCHAINS_OF,others)

.PHONY: gpu-proof tekton-bundle mirror-action ci-examples screenshots build help dist image demo setup test e2e-web interop interop-kubernetes servers lint bench bench-registry soak mutants test-fresh test-large node-tests validation architectures toolchains-all toolchains-table generate clean

build: setup ## Build bin/mlpromote (with cgo, which ONNX Runtime needs) and bin/mlpromote-node (without)
	CGO_ENABLED=1 go build -ldflags '-s -w -X main.version=$(VERSION)' -o bin/mlpromote ./cmd/mlpromote
	CGO_ENABLED=0 go build -ldflags '-s -w -X main.version=$(VERSION)' -o bin/mlpromote-node ./cmd/mlpromote-node

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Check for what a build needs; as root on Debian, install it
	@sh tools/setup.sh

# Released programs sign with keys of these services. Each adds an SDK.
PROVIDERS := kms_aws,kms_azure,kms_gcp,kms_vault

# Archives for who has no Go: without cgo, so without ONNX Runtime, but for everything else.
# The manual pages are written by a build of their own, since what renders them is not released.
dist: setup ## Build release archives with checksums and manual pages, in dist
	rm -rf dist/man
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) CGO_ENABLED=0 go run -tags manpages -ldflags '-X main.version=$(VERSION)' ./cmd/mlpromote reference man dist/man/man1
	for arch in amd64 arm64; do \
		CGO_ENABLED=0 GOOS=linux GOARCH=$$arch go build -tags $(PROVIDERS) -ldflags '-s -w -X main.version=$(VERSION)' -o dist/linux-$$arch/ ./cmd/mlpromote ./cmd/mlpromote-node && \
		tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@$$(git log -1 --format=%ct) -C dist/linux-$$arch -cf - mlpromote mlpromote-node -C "$(CURDIR)/dist" man -C "$(CURDIR)" LICENSE | \
		gzip -n >dist/mlpromote-$(VERSION)-linux-$$arch.tar.gz || exit 1; done
	cd dist && sha256sum mlpromote-$(VERSION)-linux-*.tar.gz >mlpromote-$(VERSION)-SHA256SUMS && cat mlpromote-$(VERSION)-SHA256SUMS

# The image needs no container engine to be made. It has CA certificates of this machine.
CERTIFICATES := /etc/ssl/certs/ca-certificates.crt
IMAGE        := dist/image
IMAGE_ARCHS  := amd64 arm64
image: setup ## Put the container image together, in dist/image and as files for `docker load`
	@test -f $(CERTIFICATES) || { echo 'image: no $(CERTIFICATES): install ca-certificates' >&2; exit 1; }
	for arch in $(IMAGE_ARCHS); do \
		CGO_ENABLED=0 GOOS=linux GOARCH=$$arch go build -ldflags '-s -w -X main.version=$(VERSION)' -tags $(PROVIDERS) -o dist/mlpromote-linux-$$arch ./cmd/mlpromote || exit 1; done
	go run ./tools/image -version '$(subst +,-,$(VERSION))' -ca $(CERTIFICATES) -layout $(IMAGE) $(foreach arch,$(IMAGE_ARCHS),$(arch)=dist/mlpromote-linux-$(arch))
	@ls -l $(IMAGE)-*.tar

demo: build ## Build, verify, promote and pull the digits example
	sh examples/demo.sh

# Programs by others that tests run against what we serve and sign. Each is pinned in a
# module of its own and built once; go's own cache makes it quick on a machine that did.
CLIENTS := act actionlint cosign crane helm kustomize oras regctl
PROGRAMS := $(foreach name,$(CLIENTS),tools/$(name)/bin/$(name))
.SECONDEXPANSION:
$(PROGRAMS): tools/$$(@F)/go.mod tools/$$(@F)/go.sum
	@echo 'building $(@F), to check that it works with what we serve; once' >&2
	cd tools/$(@F) && go build -o bin/$(@F) tool

# Likewise an S3 server, whose program has another name than its folder.
S3SERVER := $(CURDIR)/tools/s3server/bin/versitygw
$(S3SERVER): tools/s3server/go.mod tools/s3server/go.sum
	@echo 'building an S3 server, to test object storage against; a minute or two, once' >&2
	cd tools/s3server && go build -o bin/versitygw github.com/versity/versitygw/cmd/versitygw

# A plugin that signs with keys in a hardware module, here SoftHSM.
SOFTHSM := $(CURDIR)/tools/softhsm/bin/sigstore-kms-softhsm
$(SOFTHSM): $(wildcard tools/softhsm/*.go) tools/softhsm/go.mod tools/softhsm/go.sum
	cd tools/softhsm && go build -o bin/sigstore-kms-softhsm .

# A server for timestamps, as others run it.
TIMESTAMPSERVER := $(CURDIR)/tools/timestampserver/bin/timestampserver
$(TIMESTAMPSERVER): $(wildcard tools/timestampserver/*.go) tools/timestampserver/go.mod tools/timestampserver/go.sum
	@echo 'building a server for timestamps, to sign with; minutes, once' >&2
	cd tools/timestampserver && go build -o bin/timestampserver .

# What Tekton's controller does with a task before it takes it.
TEKTON := $(CURDIR)/tools/tekton/bin/tekton
$(TEKTON): $(wildcard tools/tekton/*.go) tools/tekton/go.mod tools/tekton/go.sum
	@echo 'building the check of tasks of Tekton; a minute, once' >&2
	cd tools/tekton && go build -o bin/tekton .

# What changes YAML files as Flux and Argo CD Image Updater do.
WRITERS := $(CURDIR)/tools/kustomize/bin/writers
$(WRITERS): $(wildcard tools/kustomize/writers/*.go) tools/kustomize/go.mod tools/kustomize/go.sum
	cd tools/kustomize && go build -o bin/writers ./writers

# What training scripts of tutorials import and no toolchain has.
TUTORIALS := $(CURDIR)/tools/tutorials/.venv
$(TUTORIALS)/complete: tools/tutorials/requirements.lock
	python3 -m venv $(TUTORIALS)
	$(TUTORIALS)/bin/python -m pip install --quiet --require-hashes --only-binary=:all: --no-deps --requirement tools/tutorials/requirements.lock
	touch $@

# Checks of workflows and pipelines. Their versions are those of CPython 3.11.
CILINT := $(CURDIR)/tools/cilint/.venv/bin
$(CILINT)/zizmor: tools/cilint/requirements.lock
	python3 -m venv tools/cilint/.venv
	$(CILINT)/python -m pip install --quiet --require-hashes --only-binary=:all: --no-deps --requirement tools/cilint/requirements.lock
	touch $@

# What opens pages in Chromium, and axe-core, which checks them there.
PAGECHECK := $(CURDIR)/tools/pagecheck/bin/pagecheck
AXE       := $(CURDIR)/tools/pagecheck/node_modules/axe-core/axe.min.js
$(PAGECHECK): $(wildcard tools/pagecheck/*.go) tools/pagecheck/go.mod tools/pagecheck/go.sum
	cd tools/pagecheck && go build -o bin/pagecheck .
$(AXE): tools/pagecheck/package-lock.json
	@command -v npm >/dev/null 2>&1 || { echo 'npm (on Debian: apt-get install npm) is not here, so pages are not checked' >&2; exit 1; }
	cd tools/pagecheck && npm ci --ignore-scripts --no-audit --no-fund
	touch $(AXE)

e2e-web: setup $(PAGECHECK) $(AXE) ## Check the pages of the service in Chromium, in light, dark and forced colours
	@sh tools/setup.sh browser
	@MLPROMOTE_PAGECHECK=$(PAGECHECK) MLPROMOTE_AXE=$(AXE) MLPROMOTE_ALL_COLORS=1 $(COUNT) -count=1 -run 'InABrowser|InBrowsers|WithoutScripts|SessionEndsWhileTyping' ./web ./cmd/mlpromote/endtoend

test soak test-large: export MLPROMOTE_S3SERVER := $(S3SERVER)
# What tests can do without. It comes before `test`, whose variables are read when its first line begins.
.PHONY: optional
optional: setup
	@sh tools/setup.sh test
	@$(MAKE) --no-print-directory $(AXE) || echo 'the test of the pages in a browser will be skipped' >&2
	@$(MAKE) --no-print-directory $(TUTORIALS)/complete || echo 'the tutorials on DataFrames and a CNN will be skipped' >&2
	@$(MAKE) --no-print-directory $(CILINT)/zizmor || echo 'checks of workflows by zizmor and check-jsonschema will be skipped' >&2

# Without the race detector run: programs that tests of cmd and of drivers start, since they mostly wait for one another;
# packages without goroutines whose tests compute for long, ten times as long with it; and interleavings of a service's
# operations, of which one is at work at a time. `make soak` runs all of them with it. Fuzz targets run their seeds here,
# and more there. The packages that take longest come first, so that no processor is idle at the end.
SEQUENTIAL   := ./pipeline/toolchain/script ./pipeline/validation ./validators/accuracy ./validators/format ./validators/format/onnx ./validators/stats ./signer/keyfile
INTERLEAVING := ^(TestTwoAtOnce|TestFourAtOnce|TestPauseDuringRemoval)$$
LONGEST      := ./registry/service ./pipeline ./registry/sqlite ./registry/postgres
test: export MLPROMOTE_ACT := $(CURDIR)/tools/act/bin/act
test: export MLPROMOTE_ACTIONLINT := $(CURDIR)/tools/actionlint/bin/actionlint
test: export MLPROMOTE_TEKTON := $(TEKTON)
test: export MLPROMOTE_HELM := $(CURDIR)/tools/helm/bin/helm
test: export MLPROMOTE_KUSTOMIZE := $(CURDIR)/tools/kustomize/bin/kustomize
test: export MLPROMOTE_YAML_WRITERS := $(WRITERS)
test: export MLPROMOTE_TUTORIALS = $(shell test -f $(TUTORIALS)/complete && echo $(TUTORIALS))
test: export MLPROMOTE_ZIZMOR = $(shell test -x $(CILINT)/zizmor && echo $(CILINT)/zizmor)
test: export MLPROMOTE_CHECK_JSONSCHEMA = $(shell test -x $(CILINT)/check-jsonschema && echo $(CILINT)/check-jsonschema)
test: export MLPROMOTE_COSIGN := $(CURDIR)/tools/cosign/bin/cosign
test: export MLPROMOTE_CRANE := $(CURDIR)/tools/crane/bin/crane
test: export MLPROMOTE_ORAS := $(CURDIR)/tools/oras/bin/oras
test: export MLPROMOTE_REGCTL := $(CURDIR)/tools/regctl/bin/regctl
test: export MLPROMOTE_PAGECHECK = $(shell command -v chromium >/dev/null 2>&1 && test -f $(AXE) && echo $(PAGECHECK))
test: export MLPROMOTE_AXE := $(AXE)
test: export MLPROMOTE_SOFTHSM := $(SOFTHSM)
test: export MLPROMOTE_TIMESTAMPSERVER := $(TIMESTAMPSERVER)
test: build $(PROGRAMS) $(S3SERVER) $(SOFTHSM) $(TIMESTAMPSERVER) $(TEKTON) $(WRITERS) $(PAGECHECK) optional ## Run all tests; the last line is the count
	@for name in $(call TOOLCHAINS_OF,routine); do bin/mlpromote toolchain install $$name || echo "tests of $$name will be skipped" >&2; done
	go vet ./...
	CGO_ENABLED=0 go build ./...
	@sh tools/sizes.sh
	@$(COUNT) -race -vet=off -timeout=60m $$(go list $(LONGEST)) $$(go list ./... | grep -vxF "$$(go list $(LONGEST) $(SEQUENTIAL) ./cmd/mlpromote/...)") \
		-- -vet=off -timeout=60m ./cmd/mlpromote ./cmd/mlpromote/endtoend $(SEQUENTIAL) $$(go list ./cmd/mlpromote/... | grep -v '/mlpromote$$\|/endtoend$$') \
		-- -vet=off -run='$(INTERLEAVING)' ./registry/service

# Python programs by others that read what `mlpromote export` writes. Their versions are those of CPython 3.11.
INTEROP := $(CURDIR)/tools/interop/.venv/bin/python
$(INTEROP): tools/interop/requirements.lock
	python3 -m venv tools/interop/.venv
	$(INTEROP) -m pip install --quiet --require-hashes --only-binary=:all: --no-deps --requirement tools/interop/requirements.lock
	touch $(INTEROP)

# An MLflow server, and the frameworks that log models to it.
MLFLOW := $(CURDIR)/tools/mlflow/.venv/bin/python
$(MLFLOW): tools/mlflow/requirements.lock
	python3 -m venv tools/mlflow/.venv
	$(MLFLOW) -m pip install --quiet --require-hashes --only-binary=:all: --no-deps --requirement tools/mlflow/requirements.lock
	touch $(MLFLOW)

# Model servers by others, each in a Python of its own: Triton, which is in a wheel with its Python backend, and MLServer.
TRITON   := $(CURDIR)/tools/servers/triton/.venv
MLSERVER := $(CURDIR)/tools/servers/mlserver/.venv
$(TRITON)/complete: tools/servers/triton/requirements.lock tools/servers/triton/layout.py
	python3 -m venv $(TRITON)
	$(TRITON)/bin/python -m pip install --quiet --require-hashes --only-binary=:all: --no-deps --requirement tools/servers/triton/requirements.lock
	$(TRITON)/bin/python tools/servers/triton/layout.py
	touch $@
$(MLSERVER)/complete: tools/servers/mlserver/requirements.lock
	python3 -m venv $(MLSERVER)
	$(MLSERVER)/bin/python -m pip install --quiet --require-hashes --only-binary=:all: --no-deps --requirement tools/servers/mlserver/requirements.lock
	touch $@

servers: setup $(TRITON)/complete $(MLSERVER)/complete ## Install Triton and MLServer, to serve engines with; 0.8 GB

# The transit engine of Vault, to sign with its keys.
VAULTSERVER := $(CURDIR)/tools/vaultserver/bin/vaultserver
$(VAULTSERVER): $(wildcard tools/vaultserver/*.go) tools/vaultserver/go.mod tools/vaultserver/go.sum
	@echo "building the transit engine of Vault, to sign with its keys; minutes, once" >&2
	cd tools/vaultserver && go build -o bin/vaultserver .

interop: setup servers $(INTEROP) $(MLFLOW) tools/cosign/bin/cosign $(VAULTSERVER) ## Let programs by others read what is exported (Model Signing, CycloneDX, cosign), fetch models from MLflow, serve engines by Triton and MLServer, and sign with keys of Vault
	@MLPROMOTE_VAULTSERVER='$(VAULTSERVER)' $(COUNT) -timeout=5m -tags=kms_vault -run 'TestVault$$' ./signer/kms
	@MLPROMOTE_INTEROP_PYTHON='$(INTEROP)' MLPROMOTE_COSIGN='$(CURDIR)/tools/cosign/bin/cosign' $(COUNT) -timeout=20m -run 'TestPlainClients/(exported_policy|model_signing|bom)$$' ./cmd/mlpromote/endtoend
	@MLPROMOTE_MLFLOW_PYTHON='$(MLFLOW)' $(COUNT) -timeout=20m -run 'TestMLflow$$' ./cmd/mlpromote/endtoend
	@MLPROMOTE_SERVERS='$(CURDIR)/tools/servers' $(COUNT) -timeout=20m -run 'TestServers$$' ./cmd/mlpromote/endtoend

# A cluster for tests: Kubernetes and etcd in one program, containerd with what it starts, and runc, which has seccomp by cgo.
KUBERNETES         := $(CURDIR)/tools/kubernetes/bin
KUBERNETES_VERSION  = $(shell awk '$$1 == "k8s.io/kubernetes" {print $$2}' tools/kubernetes/components/go.mod)
kubernetes-sources  = $(wildcard tools/kubernetes/$(1)/*.go) tools/kubernetes/$(1)/go.mod tools/kubernetes/$(1)/go.sum
$(KUBERNETES)/components: $(call kubernetes-sources,components)
	@echo 'building Kubernetes, to run tests in a cluster; some 15 minutes of a processor, once' >&2
	cd tools/kubernetes/components && CGO_ENABLED=0 go build -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$(KUBERNETES_VERSION) \
		-X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=$(word 2,$(subst ., ,$(KUBERNETES_VERSION)))" -o $@ .
$(KUBERNETES)/containerd: $(call kubernetes-sources,node)
	@echo 'building containerd, to run tests in a cluster; minutes, once' >&2
	cd tools/kubernetes/node && CGO_ENABLED=0 go build -ldflags '-s -w' -o $(KUBERNETES)/ tool
	touch $@
$(KUBERNETES)/runc: $(call kubernetes-sources,runc)
	@sh tools/setup.sh kubernetes
	cd tools/kubernetes/runc && CGO_ENABLED=1 go build -tags seccomp -ldflags '-s -w' -o $@ tool
$(KUBERNETES)/policy-controller: $(call kubernetes-sources,policycontroller)
	@echo 'building policy-controller, to run tests in a cluster; minutes, once' >&2
	cd tools/kubernetes/policycontroller && CGO_ENABLED=0 go build -ldflags '-s -w' -o $@ tool
$(KUBERNETES)/kyverno: $(call kubernetes-sources,kyverno)
	@echo 'building Kyverno, to run tests in a cluster; minutes, once' >&2
	cd tools/kubernetes/kyverno && CGO_ENABLED=0 go build -ldflags '-s -w' -o $@ tool
.DELETE_ON_ERROR: # else half a file counts as made
# What their releases install beside the programs, which run outside of pods here.
$(KUBERNETES)/policy-controller.yaml: tools/kubernetes/policycontroller/go.mod $(KUBERNETES)/policy-controller
	cd tools/kubernetes/policycontroller && cd "$$(go list -m -f '{{.Dir}}' github.com/sigstore/policy-controller)/config" && \
		for file in $$(awk '$$1 == "-" {print $$2}' kustomization.yaml); do cat "$$file" && printf '\n---\n' || exit 1; done >$@
$(KUBERNETES)/kyverno.yaml: tools/kubernetes/kyverno/go.mod $(KUBERNETES)/kyverno
	cd tools/kubernetes/kyverno && awk 'BEGIN {RS = ORS = "\n---\n"} !/\nkind: Deployment\n/' \
		"$$(go list -m -f '{{.Dir}}' github.com/kyverno/kyverno)/config/install-latest-testing.yaml" >$@

# The part of KServe that downloads models for its servers.
KSERVE := $(CURDIR)/tools/kserve/.venv/bin/python
$(KSERVE): tools/kserve/requirements.lock
	python3 -m venv tools/kserve/.venv
	$(KSERVE) -m pip install --quiet --require-hashes --only-binary=:all: --no-deps --requirement tools/kserve/requirements.lock
	touch $(KSERVE)

# The tests have no network but a loopback of their own, so all that they install is installed before.
# RUN='^TestMounted$$' takes some tests; COMMAND='sh check.sh' runs a command of yours in the cluster in their place.
interop-kubernetes: setup build $(KUBERNETES)/components $(KUBERNETES)/containerd $(KUBERNETES)/runc $(KUBERNETES)/policy-controller.yaml $(KUBERNETES)/kyverno.yaml $(KSERVE) $(S3SERVER) tools/cosign/bin/cosign tools/helm/bin/helm ## Run the tests in a cluster that they start: Kubernetes, containerd and admission controllers, as root on Linux; half an hour of a processor once
	@sh tools/setup.sh kubernetes
	@$(MAKE) --no-print-directory image IMAGE='$(KUBERNETES)/image' IMAGE_ARCHS="$$(go env GOARCH)"
	bin/mlpromote toolchain install onnxruntime
	@MLPROMOTE_KUBERNETES='$(KUBERNETES)' MLPROMOTE_COSIGN='$(CURDIR)/tools/cosign/bin/cosign' MLPROMOTE_HELM='$(CURDIR)/tools/helm/bin/helm' MLPROMOTE_S3SERVER='$(S3SERVER)' MLPROMOTE_TEST_BUILT='$(CURDIR)/bin/mlpromote' MLPROMOTE_KSERVE_PYTHON='$(KSERVE)' MLPROMOTE_KUBERNETES_COMMAND='$(COMMAND)' MLPROMOTE_KUBERNETES_DIR='$(CURDIR)' \
		$(if $(COMMAND),go test -v,$(COUNT)) -count=1 -timeout=30m $(if $(COMMAND),-run '^TestCommand$$',$(if $(RUN),-run '$(RUN)')) ./cmd/mlpromote/kubernetes

lint: setup ## Check formatting, house rules and architecture
	@sh tools/lint.sh

bench: ## Run the benchmarks briefly
	go test -run '^$$' -bench . -benchtime 200ms -benchmem ./...

# As cosign above.
DISTRIBUTION := $(CURDIR)/tools/distribution/bin/registry
$(DISTRIBUTION): tools/distribution/go.mod tools/distribution/go.sum
	@echo 'building CNCF distribution, to measure beside it; minutes, once' >&2
	cd tools/distribution && go build -o bin/registry github.com/distribution/distribution/v3/cmd/registry

bench-registry: build $(DISTRIBUTION) ## Measure the service beside other registries; 8 minutes, or 1 with ARGS=-quick
	@sh tools/setup.sh bench
	cd tools/benchregistry && go test . && go build -o bin/benchregistry . && bin/benchregistry $(ARGS)

soak: setup $(S3SERVER) ## Run the long forms of seeded tests, and every fuzz target for a minute
	@MLPROMOTE_SOAK=1 $(COUNT) -fuzz 60s -race -timeout=60m ./...

# TO is a reference such as registry.example.com/tekton/mlpromote:1.0.0
tekton-bundle: setup ## Push the task of Tekton to a registry as a bundle: make tekton-bundle TO=REGISTRY/REPOSITORY:TAG
	@go run ./tools/tektonbundle ci/tekton/mlpromote.yaml '$(TO)'

mirror-action: ## Write the repository of the GitHub action that a marketplace lists: make mirror-action DIR=FOLDER
	@sh tools/mirroraction.sh '$(DIR)'

ci-examples: export MLPROMOTE_ACT := $(CURDIR)/tools/act/bin/act
ci-examples: export MLPROMOTE_ACTIONLINT := $(CURDIR)/tools/actionlint/bin/actionlint
ci-examples: export MLPROMOTE_TEKTON := $(TEKTON)
ci-examples: export MLPROMOTE_HELM := $(CURDIR)/tools/helm/bin/helm
ci-examples: export MLPROMOTE_KUSTOMIZE := $(CURDIR)/tools/kustomize/bin/kustomize
ci-examples: export MLPROMOTE_YAML_WRITERS := $(WRITERS)
ci-examples: export MLPROMOTE_ZIZMOR := $(CILINT)/zizmor
ci-examples: export MLPROMOTE_CHECK_JSONSCHEMA := $(CILINT)/check-jsonschema
ci-examples: setup tools/act/bin/act tools/actionlint/bin/actionlint tools/helm/bin/helm tools/kustomize/bin/kustomize $(TEKTON) $(WRITERS) $(CILINT)/zizmor ## Run what the pages on CI systems say: GitHub, GitLab, Tekton, Jenkins, gates of release managers, keys and deployments
	@$(COUNT) -count=1 -timeout=15m -run 'GitHub|GitLab|Tekton|Jenkins|GenericStep|GatesPage|AccessJobs|KeysPage|RenderBeside|StepsCanBeCancelled|MirrorAction|TestPush' ./cmd/mlpromote ./cmd/mlpromote/endtoend ./tools/tektonbundle

screenshots: build ## Take the pictures of README from the demo, with Chromium
	@sh tools/screenshots.sh

# Packages and sample: make mutants PACKAGES='./pipeline/... ./signer' ARGS='-n 40 -seed 2'
mutants: ## Change code at random, say how many changes each package's own tests notice; an hour with the defaults
	@go run ./tools/mutants $(ARGS) $(PACKAGES)

test-fresh: ## Run `make demo` and `make test` in a clean clone with empty caches; an hour or more
	@sh tools/testfresh.sh $(ARGS)

# The architectures go through every toolchain that is installed.
test-large: setup $(S3SERVER) ## Run the tests that need much memory, disk or time
	@sh tools/setup.sh torch
	@MLPROMOTE_LARGE=1 $(COUNT) -timeout=180m -run Large ./...

.PHONY: toolchains
toolchains: build
	@sh tools/setup.sh test
	@$(MAKE) --no-print-directory $(AXE) || echo 'the test of the pages in a browser will be skipped' >&2
	for name in $(call TOOLCHAINS_OF,engines); do bin/mlpromote toolchain install $$name || exit 1; done

# Scripts of tests that are skipped without one of these toolchains.
space  := $(subst ,, )
SCRIPTS = $(shell grep -lE '^\[!toolchain:($(subst $(space),|,$(OTHERS)))\]' cmd/mlpromote/testdata/script/*.txtar | sed 's:.*/::; s:\.txtar$$::')
toolchains-all: toolchains ## Test the toolchains that make test does not install, build twice and verify the examples with all; print the table; 10 GiB more than make test installs
	for name in $(OTHERS); do bin/mlpromote toolchain install $$name || exit 1; done
	go test -count=1 -timeout=60m ./pipeline/toolchain/script
	go test -count=1 -timeout=60m -run 'Bisect' ./pipeline
	go test -count=1 -timeout=60m -run 'TestSourceFormatsPage' ./cmd/mlpromote/endtoend
	go test -count=1 -timeout=60m -run 'TestScripts//($(subst $(space),|,$(SCRIPTS)))$$' ./cmd/mlpromote
	go run ./tools/toolchainstable -mlpromote bin/mlpromote

gpu-proof: build ## Prove engines on the GPU of this machine; write docs/gpu.md
	bin/mlpromote toolchain install onnxruntime && bin/mlpromote toolchain install iree
	sh tools/gpu-proof.sh

# It writes each row at once. MISSING=1 keeps the rows that are there, and so goes on where it was stopped.
# ONLY='digits . iree' measures some rows anew. Rows of torch are measured where torch is installed.
toolchains-table: toolchains ## Measure engines, imports and installs of every toolchain; write the tables into docs/toolchains
	for name in $(filter-out torch,$(call TOOLCHAINS_OF,importers)); do bin/mlpromote toolchain install $$name || exit 1; done
	go run ./tools/toolchainstable -mlpromote bin/mlpromote $(if $(MISSING),-missing) $(if $(ONLY),-only '$(ONLY)') docs/toolchains

node-tests: setup ## Run all of ONNX's backend node tests through our runner; write docs/validation-node-tests.md; some minutes
	@MLPROMOTE_NODE_TESTS='$(CURDIR)/docs/validation-node-tests.md' go test -count=1 -timeout=60m -run TestNodeTests ./pipeline/toolchain/ort

# It goes on where it was stopped. VALIDATION_TIME=30m stops each of its two parts, which then write what they have.
# VALIDATION_SEED=501 takes models of other seeds than those with which the default limits were set.
# Results of another commit are not gone on with. VALIDATION_ONLY='^tagger-401/onnxruntime/int8-static/' runs
# some engines alone, prints what came of them, and records nothing.
# The second part trains models with PyTorch. TRAINED_SEEDS=tuning takes the seeds for changing rules, and writes its summary beside the
# results, not into docs; TRAINED_SEEDS=102 takes one for judging. TRAINED_KINDS='cnn|text' takes a part of the kinds. VALIDATION_PARTS='TestTrained$$' runs this part alone.
VALIDATION       ?= $(HOME)/.cache/mlpromote/validation
VALIDATION_PARTS ?= TestValidation$$|TestTrained$$
validation: setup ## Count how often verify is wrong, on engines with faults and without; write docs/validation.md and docs/validation-trained.md; some hours
	@sh tools/setup.sh torch
	@MLPROMOTE_VALIDATION='$(VALIDATION)' MLPROMOTE_VALIDATION_TIME='$(VALIDATION_TIME)' MLPROMOTE_VALIDATION_SEED='$(VALIDATION_SEED)' MLPROMOTE_VALIDATION_PAGE='$(CURDIR)/docs/validation.md' \
		MLPROMOTE_VALIDATION_PROGRAM="$$(git describe --always --abbrev=12 --dirty)" MLPROMOTE_VALIDATION_ONLY='$(VALIDATION_ONLY)' \
		MLPROMOTE_TRAINED='$(VALIDATION)/trained' MLPROMOTE_TRAINED_SEEDS='$(TRAINED_SEEDS)' MLPROMOTE_TRAINED_KINDS='$(TRAINED_KINDS)' \
		MLPROMOTE_TRAINED_PAGE='$(if $(filter tuning,$(TRAINED_SEEDS)),,$(CURDIR)/docs/validation-trained.md)' \
		go test -count=1 -timeout=12h -v -run '$(VALIDATION_PARTS)' ./pipeline/validation

# It goes on where it was stopped. ARCHITECTURES_ONLY='vit lstm/iree' takes a part of them.
ARCHITECTURES ?= $(HOME)/.cache/mlpromote/architectures
architectures: setup ## Take models of torchvision and transformers through every runtime and precision; write docs/validation-architectures.md; an hour
	@sh tools/setup.sh torch
	@MLPROMOTE_ARCHITECTURES='$(ARCHITECTURES)' MLPROMOTE_ARCHITECTURES_ONLY='$(ARCHITECTURES_ONLY)' MLPROMOTE_ARCHITECTURES_PAGE='$(CURDIR)/docs/validation-architectures.md' \
		go test -count=1 -timeout=6h -v -run 'TestLargeArchitectures$$' ./cmd/mlpromote/architectures

generate: ## Write generated code anew
	go generate ./...

clean: ## Remove what builds made
	rm -rf bin dist
