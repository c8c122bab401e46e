package predicates_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/predicates"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

var root = filepath.Join("..", "..", "..", "..")

// The schemas that are published are those of the code.
func TestPublishedSchemas(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(root, "docs", "reference", "predicates")
	for _, name := range predicates.Names() {
		want, err := predicates.Schema(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(folder, name+".schema.json"))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s/%s.schema.json is not what the code says: run go generate ./cmd/mlpromote", folder, name)
		}
	}
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(files), len(predicates.Names()); got != want {
		t.Errorf("%s has %d files, want %d: one for each predicate", folder, got, want)
	}
	if _, err := predicates.Schema("../parity"); !registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("an unknown predicate: got %v, want code %s", err, registry.CodeInvalid)
	}
}

// Every type of predicate that the program defines has a schema, also one that is added later.
func TestEveryPredicateHasASchema(t *testing.T) {
	t.Parallel()
	have := make(map[string]bool)
	for _, p := range predicates.All() {
		have[p.Type] = true
	}
	defined := regexp.MustCompile(`\bPredicate\w+ += "(https://mlpromote\.dev/[^"]+)"`)
	found := 0
	for _, room := range []string{"registry", "pipeline", "signer", "cmd"} {
		err := filepath.WalkDir(filepath.Join(root, room), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, match := range defined.FindAllSubmatch(text, -1) {
				if found++; !have[string(match[1])] {
					t.Errorf("%s defines %s, which has no schema: add it to All", path, match[1])
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 5 {
		t.Errorf("found %d types of predicates in the code, want at least 5", found)
	}
}

// statement is one with a predicate of a type.
func statement(predicateType, predicate string) evidence.Statement {
	return evidence.Statement{Type: evidence.StatementType, PredicateType: predicateType, Predicate: json.RawMessage(predicate)}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	const (
		hex     = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
		summary = `{"verifier":{"id":"https://mlpromote.dev/service/local","version":{}},"timeVerified":"2026-11-23T10:00:00Z","resourceUri":"oci://local/prod/digits",
			"policy":{"uri":"environments.yaml#prod","digest":{"sha256":"` + hex + `"}},"verificationResult":"PASSED","verifiedLevels":["MLPROMOTE_PARITY"],"slsaVersion":"1.0",
			"mlpromote_promotion":{"from":"staging","tag":"1.0.0","sources":{"sha256":"` + hex + `"}}}`
		approval   = `{"resourceUri":"oci://local/prod/digits","comment":"fine","approvedOn":"2026-11-23T10:00:00Z"}`
		breakGlass = `{"resourceUri":"oci://local/prod/digits","skips":["parity"],"comment":"down","approvedOn":"2026-11-23T10:00:00Z","expiresOn":"2026-11-23T12:00:00Z"}`
	)
	for name, c := range map[string]struct {
		predicateType, predicate, old, new string
		want                               string // in the error; empty: it is valid
	}{
		"summary":                            {evidence.PredicateVSA, summary, "", "", ""},
		"summary without a destination":      {evidence.PredicateVSA, summary, `oci://local/prod/digits`, ``, "/resourceUri"},
		"summary without a verifier":         {evidence.PredicateVSA, summary, `"verifier"`, `"verified"`, "verifier"},
		"summary with another result":        {evidence.PredicateVSA, summary, `PASSED`, `passed`, "/verificationResult"},
		"summary without a level":            {evidence.PredicateVSA, summary, `["MLPROMOTE_PARITY"]`, `[]`, "/verifiedLevels"},
		"summary with half a digest":         {evidence.PredicateVSA, summary, hex, hex[:20], "/sha256"},
		"summary at no time":                 {evidence.PredicateVSA, summary, `2026-11-23T10:00:00Z`, `yesterday`, "/timeVerified"},
		"summary with a field of the future": {evidence.PredicateVSA, summary, `"slsaVersion"`, `"later":1,"slsaVersion"`, ""},
		"approval":                           {evidence.PredicateApproval, approval, "", "", ""},
		"approval without a comment":         {evidence.PredicateApproval, approval, `fine`, ``, "/comment"},
		"approval for anywhere":              {evidence.PredicateApproval, approval, `oci://local/prod/digits`, `*`, "/resourceUri"},
		"approval that accepts a number":     {evidence.PredicateApproval, approval, `"comment"`, `"accepts":[1],"comment"`, "/accepts/0"},
		"break-glass":                        {evidence.PredicateBreakGlass, breakGlass, "", "", ""},
		"break-glass of a signature":         {evidence.PredicateBreakGlass, breakGlass, `parity`, `signature`, "/skips/0"},
		"break-glass of nothing":             {evidence.PredicateBreakGlass, breakGlass, `["parity"]`, `[]`, "/skips"},
		"quarantine of an early version":     {evidence.PredicateQuarantine, `{}`, "", "", ""},
		"lift of something else":             {evidence.PredicateQuarantine, `{"reason":"r","lifts":["prod"]}`, "", "", "/lifts/0"},
		"report that is a list":              {evidence.PredicateParity, `[]`, "", "", "/"},
		"report without cases":               {evidence.PredicateParity, `{"verdict":"pass"}`, "", "", "cases"},
		"predicate of others":                {"https://example.com/x", `[]`, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := predicates.Check(statement(c.predicateType, strings.ReplaceAll(c.predicate, c.old, c.new)))
			switch {
			case c.want == "" && err != nil:
				t.Errorf("got %v, want it accepted", err)
			case c.want != "" && (!registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want an error with %q and code %s", err, c.want, registry.CodeInvalid)
			}
		})
	}
}

// What format 1 has stored is valid by the schemas of today.
func TestSchemasAcceptStoredEvidence(t *testing.T) {
	t.Parallel()
	checked := make(map[string]int)
	for _, s := range stored(t) {
		if err := predicates.Check(s); err != nil {
			t.Errorf("%v in\n%s", err, s.Predicate)
		}
		checked[s.PredicateType]++
	}
	for _, want := range []string{evidence.PredicateParity, evidence.PredicatePerformance,
		evidence.PredicateProvenance, evidence.PredicateVSA, evidence.PredicateTestResult} {
		if checked[want] == 0 {
			t.Errorf("found no %s in what is stored", want)
		}
	}
}

// stored are the statements in the data directory of format 1 that is kept as a sample.
func stored(t testing.TB) []evidence.Statement {
	t.Helper()
	var all []evidence.Statement
	for _, content := range storedDirectory(t) {
		var bundle struct {
			DSSE struct {
				Payload []byte `json:"payload"`
			} `json:"dsseEnvelope"`
		}
		var s evidence.Statement
		if json.Unmarshal(content, &bundle) == nil && registry.DecodeSigned(bundle.DSSE.Payload, &s) == nil {
			all = append(all, s)
		}
	}
	return all
}

// storedDirectory are the files of that directory.
func storedDirectory(t testing.TB) [][]byte {
	t.Helper()
	archive, err := os.Open(filepath.Join(root, "cmd", "mlpromote", "testdata", "format-1.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	unzipped, err := gzip.NewReader(archive)
	if err != nil {
		t.Fatal(err)
	}
	var all [][]byte
	for in := tar.NewReader(unzipped); ; {
		_, err := in.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, content)
	}
}

// What the check of a parity report costs, beside decoding it strictly.
func BenchmarkCheck(b *testing.B) {
	for _, s := range stored(b) {
		if s.PredicateType != evidence.PredicateParity {
			continue
		}
		b.Run("schema", func(b *testing.B) {
			for b.Loop() {
				if err := predicates.Check(s); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("decode", func(b *testing.B) {
			for b.Loop() {
				var report evidence.ParityReport
				if err := registry.DecodeSigned(s.Predicate, &report); err != nil {
					b.Fatal(err)
				}
			}
		})
		return
	}
	b.Fatal("found no parity report in what is stored")
}
