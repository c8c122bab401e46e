package toolchain

import (
	"encoding/json"
	"io/fs"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
)

// step is the record of a finished step.
type step struct {
	Key       registry.Digest `json:"key"`
	Verb      Verb            `json:"verb"`
	Tool      string          `json:"tool,omitempty"`
	Files     []stepFile      `json:"files"`
	Result    json.RawMessage `json:"result"`
	ElapsedNS int64           `json:"elapsed_ns"`
	Enforced  Enforced        `json:"enforced"`
	Origin    Origin          `json:"origin,omitzero"`
}

type stepFile struct {
	Name   string          `json:"name"`
	Digest registry.Digest `json:"digest"`
	Size   int64           `json:"size"`
}

func newRecord(about About, o Outcome) step {
	record := step{Key: o.Key, Verb: about.Verb, Tool: about.Tool, Result: o.Result,
		ElapsedNS: int64(o.Elapsed), Enforced: o.Enforced, Origin: o.Origin}
	for _, f := range o.Files {
		record.Files = append(record.Files, stepFile{f.Name, f.Digest, f.Size})
	}
	return record
}

// outcome returns the stored outcome, without the files.
func (s step) outcome() Outcome {
	return Outcome{
		Result: s.Result, Cached: true, Elapsed: time.Duration(s.ElapsedNS), Key: s.Key, Enforced: s.Enforced,
		Origin: s.Origin, about: About{s.Verb, s.Tool},
	}
}

// sealed is a step as it is written, with the digest of its text. So a flipped bit in a record
// is noticed, as it is in a file.
type sealed struct {
	Step json.RawMessage `json:"step"`
	Sum  registry.Digest `json:"sum"`
}

func seal(record step) ([]byte, error) {
	text, err := json.Marshal(record)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInternal, "record of step %s: %w", record.Key, err)
	}
	return json.Marshal(sealed{text, digest.FromBytes(text)})
}

// unseal reads a record, and reports whether it is intact and names no file outside the output
// directory.
func unseal(text []byte) (step, bool) {
	var outer sealed
	if json.Unmarshal(text, &outer) != nil || outer.Sum != digest.FromBytes(outer.Step) {
		return step{}, false
	}
	var record step
	if json.Unmarshal(outer.Step, &record) != nil {
		return step{}, false
	}
	return record, record.whole()
}

// MarshalStep returns the document that describes a finished step, for caches on other
// machines, and the files that it names, in the same order.
func MarshalStep(about About, o Outcome) ([]byte, error) {
	o.Origin = Origin{}
	return registry.CanonicalJSON(newRecord(about, o))
}

// UnmarshalStep reads the document of a finished step. The files of the outcome have no Path
// yet. Errors: CodeInvalid for an invalid document, or one that names a file outside the output
// directory.
func UnmarshalStep(text []byte) (Outcome, error) {
	var record step
	if err := json.Unmarshal(text, &record); err != nil || !record.whole() || record.Key.Validate() != nil {
		return Outcome{}, registry.Errorf(registry.CodeInvalid, "invalid record of a step: %v", err)
	}
	record.Origin = Origin{}
	outcome := record.outcome()
	for _, f := range record.Files {
		outcome.Files = append(outcome.Files, OutputFile{Name: f.Name, Digest: f.Digest, Size: f.Size})
	}
	return outcome, nil
}

// whole reports whether the record names each file once, all in the output directory.
func (s step) whole() bool {
	seen := make(map[string]bool, len(s.Files))
	for _, f := range s.Files {
		if !fs.ValidPath(f.Name) || f.Name == "." || f.Digest.Validate() != nil || f.Size < 0 || seen[f.Name] {
			return false
		}
		seen[f.Name] = true
	}
	return true
}
