# Everything a developer types. Both `make demo` and `make test` work on a fresh machine with Python 3.11+.
PYTHON ?= python3
PY := .venv/bin/python
SHELL := /bin/bash
.DEFAULT_GOAL := help

.PHONY: help venv tools demo test test-unit test-component test-e2e test-kubernetes-versions fuzz cel-cost verify benchmark generate snapshot golden lock clean

help:  ## This text.
	@echo "torchtpu-operator: native PyTorch on Cloud TPU slices, from one TorchTPUJob"
	@grep -hE '^[a-z][a-z0-9-]*:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 27

venv:  ## The Python environment (.venv), from requirements.lock; cached.
	@$(PYTHON) tools/make_venv.py

tools: venv  ## etcd, Kubernetes, KubeRay, CoreDNS, helm and celcost, built from their Go modules; cached (8 min the first time).
	@$(PY) -m sim.tools build

demo: venv tools  ## Run a real TorchTPUJob on the bench, end to end, with a live view.
	@$(PY) -m sim demo

test: venv tools  ## Every test, in four rings.
	$(PY) -m pytest

test-unit: venv  ## Unit and property tests only (2 min).
	$(PY) -m pytest tests/unit

test-component: venv tools  ## Tests against the real kube-apiserver only.
	$(PY) -m pytest tests/component

test-e2e: venv tools  ## Tests on the bench only.
	$(PY) -m pytest tests/e2e

test-kubernetes-versions: venv tools  ## CRDs on the apiservers of three minors; builds the older two (5 min the first time).
	@$(PY) -m sim.tools build kubernetes-1.34 kubernetes-1.35
	$(PY) -m pytest tests/component/test_crds.py tests/component/test_compat_on_apiserver.py tests/component/test_explain.py \
	  --kubernetes 1.34 --kubernetes 1.35 --kubernetes 1.36

fuzz: venv tools  ## COUNT=20000 random objects, SEED=1: the apiserver's verdict beside the planner's.
	@$(PY) -m tests.fuzz --count $(or $(COUNT),20000) --seed $(or $(SEED),1)

cel-cost: venv tools  ## What kube-apiserver estimates each CEL rule to cost.
	@$(PY) -m tests.cel_cost

benchmark: venv tools  ## From apply to RUNNING, as a ratio to a RayCluster and RayJob written by hand (5 min).
	$(PY) -m tests.benchmark.start_to_running

generate: venv  ## Write what is generated: CRDs, the chart's copies, the API reference.
	@$(PY) -m torchtpu_operator.api.crd
	@$(PY) -m torchtpu_operator.api.reference

snapshot: venv  ## Keep this version's CRDs in tests/compat; later ones are held against them.
	@$(PY) -m tests.compat.snapshot

golden: venv  ## Rewrite the golden manifests; read the diff before you commit it.
	$(PY) -m pytest tests/unit -q --golden

verify: generate  ## Generated files are current; lint, types, layers.
	@git diff --exit-code --stat -- crds charts docs || { echo "generated files differ: commit what 'make generate' wrote" >&2; exit 1; }
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	.venv/bin/lint-imports

lock: venv  ## Renew requirements.lock from pyproject.toml.
	@$(PYTHON) tools/make_venv.py lock

clean:  ## Remove what make wrote into this checkout (not the shared cache).
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache dist
