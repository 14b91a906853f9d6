# Every habit of this project. `make help` lists them.

GO           ?= go
GOTESTSUM     = $(GO) run gotest.tools/gotestsum@v1.13.0
STATICCHECK   = $(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2
DEADCODE      = $(GO) run golang.org/x/tools/cmd/deadcode@v0.52.0
GOVULNCHECK   = $(GO) run golang.org/x/vuln/cmd/govulncheck@v1.1.4
ACTIONLINT    = $(GO) run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
VERSION      ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
PREFIX       ?= $(HOME)/.local
TEST_TIMEOUT ?= 60m
FUZZ_TIME    ?= 60s

# Without paths, what one target compiles serves all of them, except for the race detector's.
export CGO_ENABLED ?= 0
export GOFLAGS := -trimpath $(GOFLAGS)

.DEFAULT_GOAL := help
.PHONY: help fmt lint test needs sim race torture soak others fuzz bench bench-check compare demo build install generate conformance mutate dist house check releases imports

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/sluice
	$(GO) build -ldflags "-s -w -X main.version=$(VERSION)" -o bin/sluice ./cmd/sluice

dist: ## archives, Debian packages and checksums in dist/; the same commit gives the same bytes
	$(GO) run ./deploy/dist -out dist -version $(VERSION)

install: build ## install bin/sluice to $(PREFIX)/bin
	install -D -m 755 bin/sluice $(DESTDIR)$(PREFIX)/bin/sluice

demo: build ## the main job, from spec to DONE, on a throw-away repo: no key, no network
	bin/sluice demo $(if $(CI),--yes)

fmt: ## format the code
	gofmt -w $$(git ls-files '*.go')

# Compilers and linters take a quarter less time if they collect garbage less often.
build dist lint: export GOGC ?= 400
lint: ## gofmt, vet, types on macOS, staticcheck, deadcode, the documents' workflow for CI, govulncheck where it can reach its data
	@test -z "$$(gofmt -l $$(git ls-files '*.go') | tee /dev/stderr)" || { echo "not formatted: make fmt"; exit 1; }
	$(GO) vet ./...
	@echo "types on macOS"
	@$(subst run,run -exec "env GOOS=darwin",$(DEADCODE)) -test -filter '^none$$' ./...
	$(STATICCHECK) ./...
	@.ci/deadcode "$(DEADCODE)"
	@sed -n '/^## In GitHub/,$$ { /^```yaml/,/^```/ { /^```/!p } }' docs/evidence.md | $(ACTIONLINT) -
	@.ci/vulns "$(GOVULNCHECK)"

check: lint ## lint, and the tests of what a change touches; CHECK=COMMIT: since then
	@.ci/check $(CHECK)

test: ## all tests, with the race detector; installs what they need (asks first, unless CI=true)
	@.ci/needs
	@GOTESTSUM="$(GOTESTSUM)" TEST_TIMEOUT=$(TEST_TIMEOUT) .ci/tests

sim: ## the long simulation: 200,000 crash-restarts, and every mutant
	SIM_CRASHES=200000 $(GO) test -count=1 -timeout 60m -run 'TestSimulation' -v ./daemon/
	SEEDS=20000 $(GO) test -count=1 -timeout 60m -run 'TestHistories|TestListHistories|TestFiringHistories|TestOracle|TestListOracle|TestDeterministic' -v ./engine/
	SLUICE_MUTANTS=all $(GO) test -count=1 -timeout 120m -run 'TestMutants' -v ./engine/ ./daemon/

race: ## the tests that start the built program, themselves with the race detector; make test has all others with it
	CGO_ENABLED=1 GORACE=atexit_sleep_ms=0 $(GO) test -race -count=1 -vet=off -timeout 60m ./test ./tools/bench

torture: ## 1,000 kills of the real daemon and 300 while it takes and lands work, every system call failing, full disks, 60 power cuts, 1,000 starts at once, 1,000 races of people, 1,000 adoptions, 1,000 runs on many machines under fire, 200 stops of the leader, 60 s of random keys, 100,000 programs on a checkout
	SLUICE_TORTURE=1000 SLUICE_LANDINGS=300 SLUICE_CALLS=all SLUICE_POWER_CUTS=60 SLUICE_STARTS=1000 SLUICE_DAMAGED_STARTS=100 $(GO) test -count=1 -timeout 120m \
		-run 'TestTorture|TestCallFails|TestDisk|TestPowerCut|TestStartOn|TestDamageBefore|TestTwo|TestRepair' -v ./test/
	SLUICE_CALLS=all SLUICE_WRITERS=200 SLUICE_LARGE=5120 $(GO) test -count=1 -timeout 120m -run 'IsCompleted|TestRewrite|TestTakeALarge|Damaged' -v ./internal/tree/
	SLUICE_WRITERS=200 SLUICE_CANARIES=200 $(GO) test -count=1 -timeout 60m -run 'TestWriters|TestNothingFires' -v ./internal/world/
	SLUICE_PROGRAMS=100000 $(GO) test -count=1 -timeout 180m -run 'TestPrograms' -v ./internal/tree/
	SLUICE_TORTURE=1 $(GO) test -count=1 -timeout 20m -run 'TestDeciderAndServerDieTogether' -v ./internal/cluster/
	SLUICE_CLUSTER_STOPS=200 $(GO) test -count=1 -timeout 40m -run 'TestStoppedLeader' -v ./internal/cluster/workers/
	SLUICE_CLUSTER_RUNS=1000 SLUICE_CLUSTER_WORKERS=8 $(GO) test -count=1 -timeout 300m -run 'TestClusterStorm' -v ./test/
	SLUICE_KEYS=60s $(GO) test -count=1 -timeout 10m -run 'TestRandomKeys' -v ./test/
	SLUICE_PEOPLE=1000 $(GO) test -count=1 -timeout 60m -run 'TestTwoPeopleAtOnce|TestVetoAtTheLast|TestLateVetoRaces' -v ./test/
	SLUICE_FLOOD=100000 $(GO) test -count=1 -timeout 30m -run 'TestWatchFlood' -v ./test/
	SLUICE_TREES=200 SLUICE_ADOPTIONS=1000 $(GO) test -count=1 -timeout 60m -run 'TestTreesLeaveNothing|UsedAgain' -v ./agents/
	$(GO) test -count=1 -run 'TestTruncatedAtEveryByte|TestEveryFlippedBitIsFound' -v ./journal/

soak: ## a week of 100,000 runs in the real daemon, by a faster clock: nothing may grow; a day of 10,000 firings: each key one run
	SLUICE_SOAK=100000 $(GO) test -count=1 -timeout 4h -run 'TestSoak' -v ./test/

others: ## opencode, qwen and gemini against a stand-in; SLUICE_OTHERS=DIR names the node_modules/.bin that has them
	$(GO) test -count=1 -timeout 30m -run 'TestOthers' -v ./test/

releases: ## runs handed over between the release OLD (a commit) and this one, both ways; on several machines too
	@.ci/releases $(OLD)

house: ## measures of the rooms: lines, largest file, function and type, calls against the order
	@$(GO) run ./tools/house

fuzz: ## every fuzz target for $(FUZZ_TIME) each
	@.ci/fuzz $(FUZZ_TIME)

bench: ## how fast it is, each figure beside its floor in the same run; BENCH="-rows 1,3 -profile DIR" says which
	@$(GO) run ./tools/bench $(BENCH)

bench-check: ## two commits in turns on one machine, a verdict for each figure; OLD=COMMIT (HEAD), NEW=COMMIT (these files), BENCH="-rows 1,3 -rounds 20"
	@$(GO) run ./tools/bench -check "$(or $(OLD),HEAD)$(if $(NEW),..$(NEW))" $(BENCH)

compare: ## the same workflow driven by sluice and by an orchestrating agent (the table of docs/orchestrator.md)
	@.ci/needs
	SLUICE_COMPARE=1 $(GO) test -count=1 -timeout 20m -run 'TestDrivenBothWays' -v ./test/

imports: ## import the published workflows of Archon and takt; IMPORTS="-repo CLONE takt" takes one from a clone
	@$(GO) run ./tools/imports $(IMPORTS)

mutate: ## tests that cannot fail, and the rows they hold; MUTATE="-v ./specs" says which
	@$(GO) run ./tools/mutate $(MUTATE)

generate: ## what is made from the code: the language's schema, tables of the documents, docs/commands.md
	$(GO) generate ./...
	$(GO) test ./engine ./internal/settings ./internal/tui ./cmd/sluice -run AreDocumented -update

conformance: ## docs/conformance.md, from the tests that hold each rule
	@.ci/conformance
