# Everything that a developer does here more than once. `make help` lists the targets.

GO       ?= go
TOOLS    := -modfile=internal/check/tools/go.mod
CHAPTER  ?= 06-cacher
RUN      ?= .
STORM    ?= 10m
SEED     ?= 0
SITE_URL ?=
override SITE_URL := $(SITE_URL:%/=%)
RACE     ?=
RECIPE   ?=
ARGS     ?=
INIT     ?= $(if $(RECIPE),docs/debugger/$(RECIPE).dlv)
# DLV is the dlv on the PATH if it supports this Go (delve 1.26 supports Go up to 1.26), otherwise the pinned one.
DLV      ?= $(if $(shell [ "$$(dlv version 2>/dev/null | sed -n 's/^Version: 1\.\([0-9]*\).*/\1/p')" -ge \
              "$$($(GO) env GOVERSION | sed 's/^go1\.\([0-9]*\).*/\1/')" ] 2>/dev/null && echo new),dlv,$(GO) tool $(TOOLS) dlv)
BINARY    = bin/debugged-$(or $(RECIPE),$(notdir $(firstword $(DEBUGGED))))
DEBUGGED  = $(if $(RECIPE),$(shell sed -n 's/^\# debug //p' docs/debugger/$(RECIPE).dlv),./chapters/$(CHAPTER) -test.run '$(RUN)')
# PHASES are those of `make test`; each runs even if another has failed. Stale files are reported first, with the
# command that writes them.
PHASES   := fresh race plain compat browser
PLATFORMS := darwin/arm64 windows/amd64
# RACED are the packages whose tests run as race builds, with a fifth of each property's tries (-short); `make full`
# makes all tries. viz also runs without the race detector, because its scripts run only there. Plain tests wait more
# than they compute, so four packages run at once, and three of compat, of which the longest come first. Tests of compat
# build the program themselves, which go test does not notice, so their results are not cached.
RACED    := ./chapters/... ./internal/observe/probe ./internal/observe/hold ./internal/play/sandbox ./internal/play/otherserver ./internal/play/lens ./viz ./cmd/viz

.DEFAULT_GOAL := help
.PHONY: help run test fresh race plain compat browser lint fork where size generate recordings screenshots tab site cross bench debug debug-viz storm clients full

help: ## show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 18

run: ## start everything in one process: etcd, API server, client half, page
	$(GO) run ./cmd/viz

test: ## everything CI runs: linters, all tests, the real kubectl, client-go and browser; 10 to 20 minutes on two cores
	@sh internal/check/tools/needs.sh # git, a C compiler, chromium
	@rm -rf bin/test && mkdir -p bin/test
	@# The linters run in the background at lower priority until the browser phase, which needs both cores. At the lowest
	@# priority they would not end on a busy machine.
	@{ $(MAKE) lint || echo "RED: make lint"; } > bin/test/lint 2>&1 & \
	for phase in $(PHASES); do \
	  if [ $$phase = browser ]; then wait; cat bin/test/lint; fi; \
	  { $(MAKE) $$phase || echo "RED: make $$phase"; } 2>&1 | tee bin/test/$$phase; \
	done; wait
	@! grep -hE '^(RED|FAIL[[:space:]]+[^ ]|[[:space:]]*--- FAIL)' bin/test/* # prints all failures again

fresh: ## check that generated files match their sources; if not, run make generate
	$(GO) test -vet=off -run 'Fresh' ./internal/observe/probe ./internal/play/lab ./internal/text/book ./internal/server/apiserver ./viz ./internal/check/policy

race: ## tests under the race detector: the chapters, and the packages around them that start goroutines
	$(GO) test -race -short -vet=off -timeout 1h $(RACED)

plain: ## all other tests
	$(GO) test -vet=off -p 4 -timeout 1h ./viz $$($(GO) list ./... | grep -vxF "$$($(GO) list $(RACED))")

compat: ## tests beside the real kubectl, client-go and apiserver; the commands of all pages, and the recipes of the debugger
	cd internal/check/compat && $(GO) test -p 3 -count=1 -vet=off -timeout 1h $$($(GO) list ./storm ./recipes ./... | grep -v '/e2e$$')

browser: ## the page in a headless browser; run it alone, because it needs both cores
	cd internal/check/compat && $(GO) test -count=1 -vet=off -timeout 1h ./e2e

storm: ## users, faults, kill -9 and restarts at once, and a check that every watcher got the right events: make storm STORM=1m SEED=7 RACE=1
	cd internal/check/compat && $(GO) test $(if $(RACE),-race) ./storm -count=1 -timeout 2h -v -run TestStorm -storm $(STORM) -seed $(SEED)

clients: ## run other projects' programs against us and a real kube-apiserver: kube-scheduler, kwok, k9s, helm ...; PICTURE=1: write docs/programs.png
	cd internal/check/compat && $(GO) test -tags full ./clients -count=1 -timeout 1h -v -args $(if $(PICTURE),-picture $(CURDIR)/docs/programs.png)

full: test storm cross tab clients ## what CI runs, and what takes too long for it: storms of ten minutes, all packages under the race detector, cross builds
	$(GO) test -race -vet=off -timeout 30m ./...
	$(GO) tool $(TOOLS) deadcode ./cmd/... > bin/unreached.txt # functions that no program calls
	@! grep . bin/unreached.txt
	$(MAKE) storm RACE=1
	cd internal/check/compat && FULL=1 $(GO) test ./mutations -count=1 -timeout 1h
	cd internal/check/compat && FULL=1 $(GO) test -tags full ./kubectl -count=1 -timeout 30m -run "TestSessions|TestTheDocuments|TestKeptKinds"
	FULL=1 $(GO) test -tags full -timeout 30m ./internal/play/lab ./internal/play/scenario ./internal/observe/takes
	FULL=1 $(GO) test ./viz/export -run TestAnExportIsWhole
	$(GO) test -tags full ./cmd/lab -run TestAStickIsEnough -count=1 -timeout 3h -v
	$(GO) test -tags full ./cmd/viz -run TestCompactionKeepsEtcdBelowItsQuota -count=1 -timeout 30m -v
	GOOS=js GOARCH=wasm $(GO) vet -modfile=bin/tab/go.mod -tags grpcnotrace ./cmd/tab
	$(GO) test -tags full ./cmd/tab -count=1
	cd internal/check/compat && FULL=1 $(GO) test -tags full ./e2e -count=1 -timeout 1h
	cd internal/check/compat && FULL=1 $(GO) test ./recipes -count=1 -timeout 1h -run "TestAPodIsFollowed|TestEveryDocumented" -stay 61s

lint: ## gofmt, vet, fresh templates, what .golangci.yml asks for, and the types of the page's scripts
	@test -z "$$(gofmt -l $$(git ls-files '*.go' | grep -v _templ.go))" || { gofmt -l $$(git ls-files '*.go' | grep -v _templ.go); exit 1; }
	nice -n 5 $(GO) vet ./... && nice -n 5 $(GO) vet -tags full ./cmd/viz
	cd internal/check/compat && nice -n 5 $(GO) vet ./... && nice -n 5 $(GO) vet -tags full ./e2e ./clients
	@# Notes that never fail: changed sentences of documents that may be true only in the usual case.
	@git diff -U0 $$(git merge-base HEAD main 2>/dev/null || echo HEAD) -- '*.md' | \
	  grep -iE '^[+].*(every|always|tables? above|the same)' | sed 's/^+/note: true of each row, with a cache and without? /' || true
	@rm -rf bin/fresh && mkdir -p bin/fresh && cp -R go.mod viz bin/fresh && nice -n 5 $(GO) tool $(TOOLS) templ generate -path bin/fresh
	diff -r viz bin/fresh/viz # if they differ: run make generate and commit the result
	nice -n 5 $(GO) tool -modfile=internal/check/tools/lint/go.mod golangci-lint run ./...
	cd internal/check/compat && nice -n 5 $(GO) tool -modfile=../tools/lint/go.mod golangci-lint run --build-tags full -c ../../../.golangci.yml ./...
	nice -n 5 $(GO) tool -modfile=internal/check/tools/types/go.mod tsgo -p viz || \
	  { echo "if types.d.ts lacks a name: declare it in Go's table, then run make generate"; exit 1; }
	nice -n 5 $(GO) tool -modfile=internal/check/tools/types/go.mod tsgo -p viz/tsconfig.pure.json # the scripts without DOM

fork: ## give the module another path: make fork MODULE=github.com/you/listwatch
	git grep -lz listwatch -- ':!*.svg' | MODULE=$(or $(MODULE),$(error name it: MODULE=github.com/you/listwatch)) xargs -0 perl -pi -e \
	  's{(?<![\w./-])listwatch(?=/(chapters|cmd|docs|internal|viz)\b|/\.\.\.|/["`]|$$| v0| =>)}{$$ENV{MODULE}}g if m{listwatch/|^(module|replace|\s)\s*listwatch}'

where: ## print a line's room, what changes with the line, and which tests cover it: make where LINE=viz/stage/plan.js:40
	@sh internal/check/tools/where.sh $(or $(LINE),$(error name it: LINE=viz/stage/plan.js:40))

size: ## count lines by room and kind, a line of more than 120 columns as two and more
	@git ls-files | grep -vE '(_templ|/probe/constants)\.go$$|\.(gz|png|svg|sum|pb|woff2)$$|^LICENSE|/OFL.txt$$' | tr '\n' '\0' | xargs -0 awk -f internal/check/tools/size.awk | sort

generate: ## write the generated files again: templ pages, docs/LABS.md, docs/KINDS.md, the chapters' first tries, the exchanges of concepts, the constants of points, the page's types, .vscode and .run
	$(GO) tool $(TOOLS) templ generate
	$(GO) test -tags generate ./internal/observe/probe -run Fresh -update
	$(GO) test ./viz -run Fresh -update
	$(GO) test ./internal/play/lab -run Fresh -update
	$(GO) test ./internal/text/book -run 'Fresh|Concept' -update
	$(GO) test ./internal/server/apiserver -run Fresh -update
	$(GO) test ./internal/observe/takes -run TestTheStoryInNumbers -update
	$(GO) test ./internal/check/policy -run Fresh -update

recordings: ## make the recordings of chapters and stories: internal/observe/takes/*.lw.gz
	$(GO) test ./internal/observe/takes -run TestMake -update
	$(GO) test ./internal/observe/takes -run TestTheTakesShow -update
	$(GO) test ./internal/play/lab -run TestEveryAnswer -update

screenshots: ## take the README's pictures and films from recordings, and pictures of all key moments, in every look, into ./.screenshots
	cd internal/check/compat && $(GO) test -tags full ./e2e -count=1 -run TestEveryKeyMomentIsShown -opening $(CURDIR)/docs -screenshots $(CURDIR)/.screenshots

tab: ## build the program for a browser's tab into bin/tab: WebAssembly, from the module cache
	GO="$(GO)" sh cmd/tab/build.sh

site: tab ## write the book, the stories, the stage and the program for a tab as static pages into ./site, with chromium also loops of the stories; SITE_URL=https://… is where they will be, for canonical links, previews and the handout
	rm -rf site
	$(GO) run ./cmd/viz -export site
	cp -R bin/tab/site site/machine
	sed -i.bak "s#<body #<body data-machine=\"$$(cat bin/tab/machine)\" #" site/index.html && rm site/index.html.bak
	@# Chromium draws the loops of the stories' pages, which have none without it.
	if sh internal/check/tools/needs.sh chromium; then cd internal/check/compat && $(GO) test -count=1 -timeout 1h ./loops -site $(CURDIR)/site; fi
	$(if $(SITE_URL),cd site && for page in index.html book/stories/*.html; do \
	  sed -i.bak 's#property="og:image" content="#&$(SITE_URL)/#' "$$page" && rm "$$page.bak"; done)
	$(if $(SITE_URL),cd site && find . -name '*.html' | sed 's#^\./##' | while read -r page; do \
	  sed -i.bak "s#</head>#<link rel=\"canonical\" href=\"$(SITE_URL)/$$page\"></head>#" "$$page" && rm "$$page.bak"; done)
	$(if $(SITE_URL),$(GO) tool $(TOOLS) qrcode -s 160 $(SITE_URL) > site/assets/site.png)
	$(if $(SITE_URL),sed -i.bak 's#<h1[^>]*>List-watch#<p class="qr"><img src="../../assets/site.png" alt="$(SITE_URL)"/></p>&#' \
	  site/book/docs/HANDOUT.html && rm site/book/docs/HANDOUT.html.bak)

cross: ## vet everything and build cmd/viz for the systems that attendees bring
	@for p in $(PLATFORMS); do \
	  echo "vet ./... and build ./cmd/viz for $$p"; \
	  export GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0; \
	  $(GO) vet -trimpath ./... && $(GO) build -trimpath -o /dev/null ./cmd/viz || exit 1; \
	done

bench: ## benchmarks, beside those of upstream's code where there are any
	$(GO) test -run '^$$' -bench . -benchmem ./...
	mkdir -p bin
	cd internal/check/compat && $(GO) test -run '^$$' -bench . -benchmem ./... > $(CURDIR)/bin/bench.txt
	$(GO) tool $(TOOLS) benchstat -col /side bin/bench.txt

debug: ## a recipe of docs/debugger or a chapter's tests in the debugger: make debug RECIPE=slow-watcher, CHAPTER=06-cacher RUN=TestName INIT=file
	$(GO) $(if $(findstring chapters,$(DEBUGGED)),test -c,build) -gcflags='listwatch/...=-N -l' -o $(BINARY) $(firstword $(DEBUGGED))
	$(DLV) exec $(BINARY) --allow-non-terminal-interactive=true --wd $(firstword $(DEBUGGED)) $(if $(INIT),--init $(INIT)) \
	  -- $(wordlist 2,99,$(DEBUGGED)) $(ARGS)

debug-viz: DEBUGGED = ./cmd/viz -clock=manual -demo=false
debug-viz: debug ## the whole program in the debugger, time moved by hand: make debug-viz ARGS=-demo=true INIT=file
