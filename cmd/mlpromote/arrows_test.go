package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "mlpromote.dev/mlpromote"

// rule says what the packages of one room may import of ours. A pattern is a path
// inside the module, or one with a final "/*" for everything below it. "." is the
// module's root folder.
type rule struct {
	from string
	to   []string
}

// arrows is the house: the first rule that names a package holds for it. An arrow goes
// down; what an upper floor knows and a lower one needs is a port there, which
// cmd/mlpromote fills.
func arrows() []rule {
	return []rule{
		// Tests of the program from outside run it, and know no more of it than its users.
		{"cmd/mlpromote/internal/programtest", []string{"pipeline/toolchain/toolchaintest", "registry/registrytest"}},
		{"cmd/mlpromote/endtoend", nil},
		// What both programs have. mlpromote-node has no other code of ours, so that it stays small: nothing here
		// may import a driver, a database or what builds.
		{"cmd/internal/ui", []string{"pipeline/progress", "registry", "registry/strictyaml"}},
		{"cmd/internal/command", []string{"cmd/internal/ui", "registry"}},
		{"cmd/internal/connect", []string{"registry/api",
			"pipeline/confined", "registry", "registry/client", "registry/environments", "registry/oci", "registry/oci/remote", "registry/strictyaml", "signer", "signer/follow",
			"signer/jobtoken",
		}},
		{"cmd/internal/suggest", []string{"registry/api", "cmd/internal/connect", "cmd/internal/ui", "registry"}},
		{"cmd/internal/inspection", []string{"cmd/internal/connect", "registry", "registry/tempdir", "validators"}},
		{"cmd/internal/nodeverbs", []string{"registry/api",
			"cmd/internal/command", "cmd/internal/connect", "cmd/internal/inspection", "cmd/internal/ui", "pipeline/pull",
			"pipeline/toolchain/installed", "registry", "registry/node", "registry/oci", "validators/format*",
		}},
		{"cmd/mlpromote-node", []string{
			"cmd/internal/command", "cmd/internal/connect", "cmd/internal/nodeverbs", "cmd/internal/suggest", "cmd/internal/ui", "registry",
		}},
		{"cmd/mlpromote/internal/clock", nil},
		{"cmd/mlpromote/internal/printing", []string{"cmd/internal/inspection", "cmd/internal/nodeverbs", "cmd/internal/ui", "registry", "validators"}},
		{"cmd/mlpromote/internal/program", []string{"pipeline/ingest", "pipeline/run",
			"cmd/internal/command", "cmd/internal/connect", "cmd/internal/nodeverbs", "cmd/internal/suggest", "cmd/internal/ui", "cmd/mlpromote/internal/clock",
			"cmd/mlpromote/internal/toolchains", "cmd/mlpromote/internal/wiring", "pipeline", "pipeline/spec", "registry",
		}},
		{"cmd/mlpromote", []string{"*"}},
		{"cmd/mlpromote/*", []string{"*"}},
		{"tools/messages", []string{"registry"}},                                      // exit codes
		{"tools/toolchainstable", []string{"pipeline/toolchain/drivers", "registry"}}, // writes the rows of toolchains into a page
		{"tools/*", nil},
		{"examples", nil},   // files
		{"examples/*", nil}, // tests of what operators copy
		{"migrations", nil},

		{"web", []string{"registry/api", "registry", "web/page", "web/releases"}},
		{"web/page", []string{"registry/api", "registry"}},
		{"web/releases", []string{"registry/api", "registry", "registry/toolchains", "validators", "web/chart", "web/page"}}, // of validators, the words and units of figures
		{"web/chart", nil}, // draws numbers

		{"pipeline", nil}, // tests of the verbs from outside
		// The environment of the verbs, at the bottom, and the verbs above it.
		{"pipeline/run", []string{"registry/api",
			"pipeline/cases", "pipeline/consistency", "pipeline/fitness", "pipeline/plan", "pipeline/progress", "pipeline/spec", "pipeline/toolchain", "registry", "registry/tempdir",
			"validators", "validators/format*", "validators/tensor*",
		}},
		{"pipeline/goldenset", []string{"pipeline/cases", "pipeline/run", "pipeline/toolchain", "registry", "validators", "validators/format*", "validators/tensor*"}},
		{"pipeline/ingest", []string{"registry/toolchains", "pipeline/goldenset",
			"pipeline/cases", "pipeline/confined", "pipeline/plan", "pipeline/run", "pipeline/spec", "pipeline/toolchain", "registry", "registry/tempdir",
			"validators", "validators/format*", "validators/tensor*",
		}},
		{"pipeline/build", []string{"registry/api",
			"pipeline/cases", "pipeline/goldenset", "pipeline/ingest", "pipeline/plan", "pipeline/run", "pipeline/spec", "pipeline/toolchain", "registry",
			"registry/tempdir", "validators", "validators/accuracy", "validators/format*", "validators/parity", "validators/performance", "validators/tensor*",
		}},
		{"pipeline/verify", []string{"registry/api",
			"pipeline/cases", "pipeline/consistency", "pipeline/fitness", "pipeline/goldenset", "pipeline/plan", "pipeline/remedy", "pipeline/run", "pipeline/spec",
			"pipeline/toolchain", "registry", "registry/atomicfile", "registry/tempdir", "validators", "validators/accuracy", "validators/format*",
			"validators/parity", "validators/performance", "validators/tensor*",
		}},
		{"pipeline/remedy", []string{"registry", "validators"}}, // a pure table
		{"pipeline/diagnose", []string{
			"pipeline/cases", "pipeline/divergence", "pipeline/plan", "pipeline/run", "pipeline/toolchain", "pipeline/verify", "registry", "registry/tempdir",
			"validators", "validators/performance", "validators/tensor*",
		}},
		{"pipeline/tune", []string{
			"pipeline/build", "pipeline/cases", "pipeline/goldenset", "pipeline/plan", "pipeline/run", "pipeline/spec", "pipeline/toolchain", "pipeline/tradeoff",
			"pipeline/verify", "registry", "registry/tempdir", "validators", "validators/performance",
		}},
		{"pipeline/draft", []string{"registry/toolchains",
			"pipeline/cases", "pipeline/confined", "pipeline/ingest", "pipeline/run", "pipeline/spec", "pipeline/toolchain", "registry", "registry/tempdir", "validators",
			"validators/accuracy", "validators/format*", "validators/tensor*",
		}},
		{"pipeline/progress", nil},   // a leaf
		{"pipeline/divergence", nil}, // decides where a graph goes wrong, and runs nothing
		{"pipeline/pull", []string{"registry/api", "registry", "registry/tempdir"}},
		{"pipeline/cases", []string{"pipeline/cases/parquet", "pipeline/confined", "pipeline/spec", "pipeline/toolchain", "registry", "registry/atomicfile", "validators", "validators/accuracy", "validators/tensor*"}},
		{"pipeline/cases/parquet", nil}, // reads what strangers send
		{"pipeline/cases/images", []string{"pipeline/cases", "registry", "validators", "validators/tensor*"}},
		{"pipeline/capture", []string{"pipeline/capture/inference", "pipeline/cases", "registry", "validators", "validators/tensor*"}},
		{"pipeline/capture/inference", []string{"registry", "validators/tensor*"}}, // reads what strangers send
		// Decides what a build makes, and does nothing.
		{"pipeline/plan", []string{"pipeline/cases", "pipeline/spec", "pipeline/toolchain", "registry", "registry/toolchains", "validators", "validators/format*"}},
		{"pipeline/consistency", []string{"registry", "validators", "validators/parity", "validators/tensor*"}},
		{"pipeline/fitness", []string{"registry"}},                                                            // reads /proc and /sys
		{"pipeline/mlflow", []string{"pipeline/spec", "registry", "registry/strictyaml", "registry/tempdir"}}, // reads what strangers send
		{"pipeline/origin", []string{"registry"}},                                                             // runs git on what strangers wrote
		{"pipeline/confined", []string{"registry"}},                                                           // opens what specs and models name
		{"pipeline/approver", []string{"registry/api", "registry"}},
		{"pipeline/validation", nil}, // tests of the verifier from outside
		{"pipeline/spec", []string{"pipeline/confined", "registry", "registry/atomicfile", "registry/strictyaml", "registry/toolchains", "validators"}},
		{"pipeline/tradeoff", nil},                              // a pure leaf
		{"pipeline/spec/internal/*", []string{"pipeline/spec"}}, // writes its schema
		{"pipeline/toolchain", []string{"registry", "registry/atomicfile", "validators", "validators/format*", "validators/tensor*"}}, // of format, how engines are read
		// What every family of drivers stands on; families never know each other.
		{"pipeline/toolchain/sandbox", []string{"pipeline/toolchain", "registry", "registry/tempdir"}},
		{"pipeline/toolchain/driverproc", []string{"pipeline/toolchain", "pipeline/toolchain/sandbox", "registry", "registry/tempdir"}},
		// What drivers in Go share, and the first of them.
		{"pipeline/toolchain/caserun", []string{"pipeline/toolchain", "pipeline/toolchain/driverproc", "validators", "validators/tensor*"}},
		{"pipeline/toolchain/ort", []string{
			"pipeline/toolchain", "pipeline/toolchain/caserun", "pipeline/toolchain/driverproc", "pipeline/toolchain/install", "registry",
			"validators", "validators/tensor*",
		}},
		{"pipeline/toolchain/serving", []string{"pipeline/toolchain", "pipeline/toolchain/caserun", "pipeline/toolchain/driverproc", "validators", "validators/tensor*"}},
		{"pipeline/toolchain/elfdeps", nil}, // a leaf: which system software a program loads
		{"pipeline/toolchain/manifest", []string{
			"pipeline/confined", "pipeline/toolchain", "pipeline/toolchain/caserun", "pipeline/toolchain/driverproc", "pipeline/toolchain/drivers",
			"pipeline/toolchain/elfdeps", "pipeline/toolchain/install", "pipeline/toolchain/sandbox", "pipeline/toolchain/script", "pipeline/toolchain/serving",
			"registry", "registry/strictyaml", "registry/tempdir", "validators", // the interface of a served model
		}},
		{"pipeline/toolchain/conformance", []string{"pipeline/toolchain", "registry", "validators/tensor*"}},
		{"pipeline/toolchain/scoring", []string{"pipeline/toolchain", "pipeline/toolchain/driverproc", "pipeline/toolchain/install", "registry"}},
		{"pipeline/toolchain/container", []string{"pipeline/toolchain", "pipeline/toolchain/sandbox", "registry"}},
		{"pipeline/toolchain/drivers", []string{"pipeline/toolchain", "registry", "registry/toolchains", "validators/format*"}},
		{"pipeline/toolchain/drivers/internal/*", []string{"pipeline/toolchain/drivers", "registry/toolchains"}}, // writes the table of registry/toolchains
		{"pipeline/toolchain/installed", []string{"registry", "registry/toolchains"}},                            // reads what install wrote
		{"pipeline/toolchain/install", []string{
			"pipeline/confined", "pipeline/toolchain", "pipeline/toolchain/driverproc", "pipeline/toolchain/drivers", "pipeline/toolchain/installed",
			"pipeline/toolchain/sandbox", "registry", "registry/atomicfile",
		}},
		{"pipeline/toolchain/toolchaintest", []string{
			"pipeline/toolchain", "pipeline/toolchain/conformance", "pipeline/toolchain/driverproc", "pipeline/toolchain/drivers", "pipeline/toolchain/install",
			"pipeline/toolchain/installed", "pipeline/toolchain/sandbox", "registry", "validators/tensor*",
		}},
		{"pipeline/toolchain/*", []string{
			"pipeline/toolchain", "pipeline/toolchain/driverproc", "pipeline/toolchain/drivers", "pipeline/toolchain/install",
			"registry", "registry/tempdir", "validators", "validators/tensor*",
		}},

		{"validators/tensor", []string{"registry/figure"}},
		{"validators/tensor/tensorfile", []string{"validators/tensor"}},
		{"validators/tensor/tensortest", []string{"validators/tensor"}},
		{"validators/stats", nil}, // a pure leaf
		{"validators", []string{"registry", "validators/accuracy", "validators/percase", "validators/stats", "validators/tensor"}},
		{"validators/accuracy", []string{"registry", "validators/stats", "validators/tensor*"}},
		// A report of parity holds the accuracy on the same cases, measured in the same pass.
		{"validators/parity", []string{"registry", "validators", "validators/accuracy", "validators/percase", "validators/tensor*"}},
		{"validators/percase", []string{"registry", "validators/accuracy", "validators/tensor*"}}, // the file of a parity report
		{"validators/performance", []string{"registry", "validators/stats"}},
		{"validators/format", []string{
			"registry", "validators/format/bound", "validators/format/classical", "validators/format/gguf", "validators/format/jax", "validators/format/onnx",
			"validators/format/pickle", "validators/format/protobuf",
		}},
		{"validators/format/bound", []string{"registry"}},
		{"validators/format/classical", []string{"registry", "validators/format/bound"}},
		{"validators/format/formattest", []string{"registry"}},
		{"validators/format/gguf", []string{"registry", "validators/format/bound"}},
		{"validators/format/huggingface", []string{"registry", "validators/format", "validators/format/bound"}},
		{"validators/format/jax", []string{"registry"}},
		{"validators/format/onnx", []string{"registry", "validators/format/bound", "validators/format/protobuf"}},
		{"validators/format/pickle", []string{"validators/format/bound"}},
		{"validators/format/protobuf", []string{"registry", "validators/format/bound"}},
		{"validators/format/savedmodel", []string{"registry", "validators/format", "validators/format/bound", "validators/format/protobuf"}},
		{"validators/format/tie", []string{"registry", "validators/format/bound", "validators/format/jax", "validators/format/onnx"}},
		{"validators/format/torch", []string{"validators/format/bound"}},
		{"validators/*", []string{"registry", "validators", "validators/tensor"}},

		{"signer", []string{"registry"}},
		{"signer/authority", []string{"registry", "registry/strictyaml", "signer", "signer/jobtoken"}}, // asks over the network
		// Remembers trust bundles, and reads the checkpoints in them.
		{"signer/follow", []string{"registry", "registry/atomicfile", "registry/checkpoint", "signer"}},
		{"signer/*", []string{"registry", "registry/atomicfile", "signer"}},

		{"registry/toolchains", nil}, // a leaf: plain facts
		// The nouns of the registry and the rules on them, from the ground up. Elsewhere "registry" means them all.
		{"registry", nil},
		{"registry/figure", nil},
		{"registry/artifact", []string{"registry", "registry/toolchains"}},
		{"registry/imageform", []string{"registry", "registry/artifact"}},
		{"registry/evidence", []string{"registry", "registry/artifact", "registry/figure"}},
		{"registry/restriction", []string{"registry", "registry/artifact", "registry/evidence"}},
		{"registry/trust", []string{"registry", "registry/evidence", "registry/restriction"}},
		{"registry/policy", []string{"registry", "registry/artifact", "registry/evidence", "registry/figure", "registry/restriction", "registry/trust"}},
		{"registry/readiness", []string{"registry", "registry/artifact", "registry/evidence", "registry/policy"}},
		{"registry/history", []string{"registry", "registry/artifact", "registry/evidence", "registry/policy"}},
		{"registry/storage", []string{"registry", "registry/artifact", "registry/evidence", "registry/history"}},
		// What a registry answers: who asks one or offers one imports it.
		{"registry/api", []string{
			"registry", "registry/artifact", "registry/evidence", "registry/history", "registry/policy", "registry/restriction", "registry/storage", "registry/trust",
		}},
		// The operations as rows: who passes calls on to another one, or over HTTP, imports it.
		{"registry/rest", []string{"registry", "registry/api"}},
		{"registry/gc", []string{"registry"}},
		{"registry/gate", []string{"registry", "registry/internal/lru", "registry/oci"}},
		{"registry/composed", []string{"registry", "registry/internal/lru", "registry/oci"}},
		{"registry/access", []string{"registry", "registry/api", "registry/rest"}},
		{"registry/access/authn", []string{"registry/rest", "registry", "registry/access", "registry/internal/ratelimit", "registry/internal/requestid", "registry/internal/rounds"}},
		{"registry/access/oidc", []string{"registry", "registry/strictyaml"}},
		{"registry/access/signin/signintest", []string{"registry/registrytest"}},
		{"registry/access/signin", []string{"registry", "registry/access/authn", "registry/access/oidc"}},
		{"registry/config", []string{"registry", "registry/api", "registry/rest", "registry/access/oidc", "registry/environments", "registry/strictyaml"}},
		{"registry/environments", []string{"registry", "registry/strictyaml"}},
		{"registry/sqlite", []string{"migrations", "registry", "registry/internal/catalog", "registry/internal/rounds", "registry/sqlite/internal/*"}},
		{"registry/sqlite/internal/*", nil},
		{"registry/postgres", []string{"migrations", "registry", "registry/internal/catalog", "registry/postgres/internal/*"}},
		{"registry/postgres/internal/*", nil},
		{"registry/postgres/pgtest", nil},
		{"registry/airgap", []string{"registry/api", "registry", "registry/gate", "registry/oci", "registry/oci/layout"}},
		{"registry/backup", []string{"registry", "registry/atomicfile", "registry/composed"}},
		{"registry/blob", []string{"registry"}},
		{"registry/checkpoint", []string{"registry"}},
		{"registry/datadir", []string{"registry", "registry/atomicfile"}},
		{"registry/client", []string{"registry", "registry/api", "registry/rest"}},
		{"registry/distribution", []string{"registry", "registry/internal/lru"}},
		{"registry/host", []string{"registry"}},
		{"registry/internal/catalog", []string{"registry"}},
		{"registry/internal/lru", nil},       // a pure leaf
		{"registry/internal/ratelimit", nil}, // a pure leaf
		{"registry/internal/requestid", nil},
		{"registry/internal/rounds", nil}, // a pure leaf
		{"registry/mem", []string{"registry", "registry/internal/catalog"}},
		{"registry/node", []string{"registry", "registry/toolchains"}},
		{"registry/node/cluster", []string{"registry", "registry/node"}},
		{"registry/operations", []string{"registry/api", "registry"}},
		{"registry/oci", []string{"registry"}},
		{"registry/oci/layout", []string{"registry"}},
		{"registry/oci/transfer", []string{"registry"}},
		{"registry/oci/remote", []string{"registry", "registry/oci", "registry/oci/transfer"}},
		{"registry/registrytest", []string{"registry/api", "registry"}},
		{"registry/defaults", []string{"registry"}},
		{"registry/s3", []string{"registry"}},
		{"registry/server", []string{
			"registry", "registry/api", "registry/rest", "registry/internal/lru", "registry/internal/ratelimit", "registry/internal/requestid", "registry/server/feed",
			"registry/server/openapi",
		}},
		{"registry/server/feed", []string{"registry"}},
		{"registry/server/openapi", []string{"registry", "registry/api", "registry/rest"}},
		// The operations of a service. What they share lies at the bottom; promotion and rollback do not know each other.
		{"registry/service", []string{
			"registry", "registry/api", "registry/service/attachment", "registry/service/audit", "registry/service/backend", "registry/service/documents",
			"registry/service/heads", "registry/service/lookup", "registry/service/promotion", "registry/service/resolution", "registry/service/rollback",
		}},
		{"registry/service/backend", []string{"registry"}},
		{"registry/service/lookup", []string{"registry", "registry/service/backend"}},
		{"registry/service/documents", []string{"registry", "registry/service/backend"}},
		{"registry/service/audit", []string{"registry", "registry/service/backend", "registry/service/documents", "registry/service/lookup"}},
		{"registry/service/attachment", []string{"registry", "registry/api", "registry/service/backend", "registry/service/lookup"}},
		{"registry/service/heads", []string{"registry", "registry/api", "registry/service/backend", "registry/service/lookup"}},
		{"registry/service/resolution", []string{
			"registry", "registry/api", "registry/internal/lru", "registry/service/backend", "registry/service/documents", "registry/service/lookup",
		}},
		{"registry/service/promotion", []string{
			"registry", "registry/api", "registry/internal/lru", "registry/service/attachment", "registry/service/audit", "registry/service/backend",
			"registry/service/documents", "registry/service/heads", "registry/service/lookup",
		}},
		{"registry/service/rollback", []string{
			"registry", "registry/api", "registry/service/backend", "registry/service/documents", "registry/service/heads", "registry/service/lookup",
			"registry/service/resolution",
		}},
		{"registry/scrub", []string{"registry"}},
		{"registry/webhook", []string{"registry/api", "registry"}},
		{"registry/strictyaml", []string{"registry"}},
		{"registry/atomicfile", nil}, // a leaf
		{"registry/tempdir", nil},    // a leaf
		{"registry/telemetry", []string{"registry", "registry/api", "registry/rest", "registry/internal/requestid", "registry/internal/rounds"}},
	}
}

func TestArrowsGoDown(t *testing.T) {
	t.Parallel()
	// Files differ with cgo and with the system, so each kind of build is read.
	for _, env := range []string{"CGO_ENABLED=0", "CGO_ENABLED=1", "GOARCH=arm64"} {
		t.Run(env, func(t *testing.T) {
			t.Parallel()
			for pkg, imports := range listImports(t, env) {
				for _, imported := range imports {
					if why := judge(arrows(), pkg, imported); why != "" {
						t.Error(why)
					}
				}
				if _, ok := ruleFor(arrows(), pkg); !ok {
					t.Errorf("no rule names package %s: add one to arrows in cmd/mlpromote/arrows_test.go that says what it may import", pkg)
				}
			}
		})
	}
}

// maxImports is how many packages of this module one package may import. More is a sign that it has
// several tasks. The nouns of the registry do not count.
const maxImports = 25

func TestFewImports(t *testing.T) {
	t.Parallel()
	for pkg, imports := range listImports(t, "CGO_ENABLED=1") {
		others := slices.DeleteFunc(slices.Clone(imports), func(path string) bool { return slices.Contains(nouns(), path) })
		if len(others) > maxImports {
			t.Errorf("%s imports %d packages of this module, want at most %d: move a task of its own to another package", pkg, len(others), maxImports)
		}
	}
}

// The test above passes on a house in order; this one shows that it could fail.
func TestJudge(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		pkg, imported string
		allowed       bool
	}{
		{"cmd/mlpromote", "registry/sqlite", true},
		{"registry/sqlite", "registry", true},
		{"registry/sqlite", "registry/sqlite/internal/dbsqlc", true},
		{"registry/sqlite", "migrations", true},
		{"pipeline/toolchain/ort", "pipeline/toolchain/install", true},
		{"registry", "registry/oci", false},
		{"registry/service", "signer", false},
		{"registry/service/promotion", "registry/service/rollback", false},
		{"registry/service/lookup", "registry/service", false},
		{"registry/blob", "registry/mem", false},
		{"registry/sqlite", "registry/registrytest", false},
		{"registry/oci", "pipeline/run", false},
		{"pipeline/build", "registry/oci", false},
		{"pipeline/verify", "pipeline/build", false},
		{"pipeline/run", "pipeline/verify", false},
		{"pipeline/run", "signer/keyfile", false},
		{"pipeline/toolchain/ort", "pipeline/toolchain/script", false},
		{"pipeline/toolchain/caserun", "pipeline/toolchain/ort", false},
		{"validators/accuracy", "validators/parity", false},
		{"validators/tensor", "registry", false},
		{"web", "registry/service", false},
		{"cmd/mlpromote", "registry/registrytest", false},
		{"cmd/mlpromote", "cmd/mlpromote/internal/programtest", false},
		{"cmd/mlpromote/endtoend", "registry", false},
		{"cmd/mlpromote/internal/programtest", "pipeline/toolchain/toolchaintest", true},
		{"cmd/mlpromote/internal/programtest", "registry/sqlite", false},
		{"registry/registrytest", "registry/postgres/pgtest", false},
		{"pipeline/toolchain/ort", "pipeline/toolchain/toolchaintest", false},
		{"registry/client", "registry/server", false},
		{"registry/client", "registry/api", true},
		{"registry/api", "registry/rest", false},
		{"registry/service", "registry/rest", false},
		{"registry/blob", "registry/storage", true},
		{"registry/evidence", "registry/policy", false},
		{"registry/artifact", "registry/storage", false},
		{"registry/blob", "registry/api", false},
		{"registry/api", "registry/service", false},
		{"web", "cmd/mlpromote", false},
		{"web", "cmd/internal/ui", false},
		{"cmd/other", "cmd/mlpromote/internal/serving", false},
		{"cmd/mlpromote-node", "cmd/mlpromote/internal/serving", false},
		{"cmd/mlpromote-node", "cmd/internal/ui", true},
		{"cmd/mlpromote-node", "cmd/mlpromote", false},
		{"cmd/mlpromote-node", "registry/sqlite", false},
		{"cmd/internal/nodeverbs", "pipeline/run", false},
		{"cmd/mlpromote/endtoend", "cmd/internal/ui", false},
		{"cmd/mlpromote", "cmd/internal/ui", true},
		{"cmd/mlpromote", "cmd/mlpromote/internal/promoting", true},
		{"cmd/mlpromote/internal/promoting", "cmd/mlpromote/internal/program", true},
		{"cmd/mlpromote/internal/promoting", "cmd/mlpromote/internal/proving", false},
		{"cmd/mlpromote/internal/program", "cmd/mlpromote/internal/upkeep", false},
		{"cmd/mlpromote/internal/program", "cmd/mlpromote/internal/schemas", false},
		{"cmd/internal/ui", "registry/sqlite", false},
		{"cmd/mlpromote", "cmd/other", false},
		{"tools/testcount", "registry", false},
		{"attic", "registry", false},
	} {
		if why := judge(arrows(), tc.pkg, tc.imported); (why == "") != tc.allowed {
			t.Errorf("%s imports %s: %q, want allowed %t", tc.pkg, tc.imported, why, tc.allowed)
		}
	}
	if _, ok := ruleFor(arrows(), "attic"); ok {
		t.Error("a rule names package attic")
	}
}

// judge says in a sentence why pkg must not import imported, or nothing.
func judge(rules []rule, pkg, imported string) string {
	switch {
	case covers("cmd/*", imported) && !roomOf(pkg, imported):
		return fmt.Sprintf("%s imports %s: nobody imports a command", pkg, imported)
	case strings.HasSuffix(imported, "test") && !strings.HasSuffix(pkg, "test"):
		return fmt.Sprintf("%s imports %s outside of its tests: only tests need conformance suites and helpers", pkg, imported)
	}
	if slices.Contains(groupsOfVerbs(), imported) && pkg != "cmd/mlpromote" {
		return fmt.Sprintf("%s imports %s: only cmd/mlpromote imports a group of verbs; move what both need below them", pkg, imported)
	}
	r, _ := ruleFor(rules, pkg)
	if slices.Contains(nouns(), imported) && !slices.Contains(nouns(), pkg) && pkg != "registry/api" && slices.Contains(r.to, "registry") {
		return ""
	}
	if slices.ContainsFunc(r.to, func(pattern string) bool { return covers(pattern, imported) }) {
		return ""
	}
	allowed := "nothing of ours"
	if len(r.to) > 0 {
		allowed = strings.Join(r.to, ", ")
	}
	return fmt.Sprintf("%s imports %s: it may import %s; declare a port below and fill it in cmd/mlpromote", pkg, imported, allowed)
}

// nouns are the packages of the registry without I/O, which a rule allows together by the name "registry".
func nouns() []string {
	return []string{
		"registry", "registry/figure", "registry/artifact", "registry/imageform", "registry/evidence", "registry/restriction", "registry/trust", "registry/policy",
		"registry/readiness", "registry/history", "registry/storage",
	}
}

// groupsOfVerbs are the packages that only the table in cmd/mlpromote/groups.go imports.
func groupsOfVerbs() []string {
	var all []string
	for _, name := range []string{
		"building", "diagnosis", "drafting", "integration", "nodes", "operating", "policies", "promoting", "proving", "restricting", "upkeep",
	} {
		all = append(all, "cmd/mlpromote/internal/"+name)
	}
	return all
}

// roomOf reports whether imported lies in the folder internal of the command that pkg belongs to, or in that
// of all commands.
func roomOf(pkg, imported string) bool {
	command, _, internal := strings.Cut(imported, "/internal/")
	return internal && (pkg == command || strings.HasPrefix(pkg, command+"/"))
}

func ruleFor(rules []rule, pkg string) (rule, bool) {
	i := slices.IndexFunc(rules, func(r rule) bool { return covers(r.from, pkg) })
	if i < 0 {
		return rule{}, false
	}
	return rules[i], true
}

func covers(pattern, pkg string) bool {
	if below, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(pkg, below)
	}
	return pattern == pkg
}

// listImports gives what each package of the module imports of ours, tests left out.
func listImports(t *testing.T, env string) map[string][]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, module+"/...")
	cmd.Env = append(os.Environ(), env)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	house := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		var ours []string
		for _, path := range strings.Fields(line) {
			if path == module {
				ours = append(ours, ".")
			} else if inside, ok := strings.CutPrefix(path, module+"/"); ok {
				ours = append(ours, inside)
			}
		}
		house[ours[0]] = ours[1:]
	}
	if len(house) < 2 {
		t.Fatalf("go list names %d packages", len(house))
	}
	return house
}
