# Everything a person does here more than once. `make help` lists it.

GO       ?= go
TOOLS    := -modfile=internal/tools/go.mod
CHAPTER  ?= 06-cacher
RUN      ?= .
PLATFORMS := linux/amd64 darwin/arm64 windows/amd64

.DEFAULT_GOAL := help
.PHONY: help run test race lint generate recordings screenshots cross bench debug

help: ## show this list
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 18

run: ## start everything in one process: etcd, API server, client half, page
	$(GO) run ./cmd/viz

test: lint race cross ## everything CI runs: vet, all tests under -race, the real kubectl, client-go and browser, cross builds

race: ## all tests of both modules under the race detector
	$(GO) test -race -timeout 30m ./...
	cd internal/compat && $(GO) test -race -timeout 30m ./...

lint: ## gofmt, vet and fresh generated files
	@test -z "$$(gofmt -l $$(git ls-files '*.go' | grep -v _templ.go))" || { gofmt -l $$(git ls-files '*.go' | grep -v _templ.go); exit 1; }
	$(GO) vet ./...
	cd internal/compat && $(GO) vet ./...

generate: ## write the generated files anew: templ pages, docs/MAP.md, docs/DIFFERENCES.md
	$(GO) tool $(TOOLS) templ generate
	$(GO) test ./internal/policy -run Fresh -update

recordings: ## make the chapters' recordings anew: internal/takes/*.lw.gz
	$(GO) test ./internal/takes -run TestMake -update

screenshots: ## take the README's pictures from a recording, and those of all key moments, in every look, into ./.screenshots
	cd internal/compat && $(GO) test ./e2e -count=1 -run TestEveryKeyMomentIsShown -opening $(CURDIR)/docs -screenshots $(CURDIR)/.screenshots

cross: ## build cmd/viz for the systems attendees bring
	@for p in $(PLATFORMS); do \
	  echo "build ./cmd/viz for $$p"; \
	  GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 $(GO) build -o /dev/null ./cmd/viz || exit 1; \
	done

bench: ## benchmarks, side by side with the real thing where there is one
	$(GO) test -run '^$$' -bench . -benchmem ./...
	cd internal/compat && $(GO) test -run '^$$' -bench . -benchmem ./...

debug: ## step through a chapter's tests: make debug CHAPTER=06-cacher RUN=TestName
	$(GO) run github.com/go-delve/delve/cmd/dlv@v1.27.2 test ./chapters/$(CHAPTER) -- -test.run '$(RUN)'
