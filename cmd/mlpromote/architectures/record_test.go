//go:build cgo && linux

package architectures

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
)

// record is what came of one engine.
type record struct {
	Architecture string           `json:"architecture"`
	Runtime      string           `json:"runtime"`
	Variant      string           `json:"variant"`
	Error        string           `json:"error,omitempty"` // it could not be built or verified
	Verdict      evidence.Verdict `json:"verdict,omitempty"`
	Reason       string           `json:"reason,omitempty"` // first one of a verdict that is no pass
	// Outputs has the figures of the parity report, and Checks what they were held to.
	Outputs map[string]evidence.OutputFigures `json:"outputs,omitempty"`
	Checks  []evidence.Check                  `json:"checks,omitempty"`
	P50Ns   int64                             `json:"p50Ns,omitempty"`
	Pulled  string                            `json:"pulled,omitempty"` // why it was not; "yes" if it was
	// Plain is what came of a plain load at each size of batch: empty if the outputs keep the limits.
	Plain map[int]string `json:"plain,omitempty"`
	// Torch has the figures of the plain load against torch's outputs, at batch 1.
	Torch map[string]plainFigures `json:"torch,omitempty"`
}

func (r record) built() bool { return r.Error == "" }

func (r record) verified() bool { return r.Verdict == evidence.VerdictPass }

func (r record) pulled() bool { return r.Pulled == "yes" }

// agrees says whether a plain load gave what torch gives at both sizes of batches.
func (r record) agrees() bool {
	for _, size := range batches {
		if said, ok := r.Plain[size]; !ok || said != "" {
			return false
		}
	}
	return true
}

// plainFigures are what testdata/load.py prints of an output.
type plainFigures struct {
	SNRdB     float64 `json:"snrDb"`
	MaxError  float64 `json:"maxError"`
	CaseError float64 `json:"caseError"`
	Top1      float64 `json:"top1"`
}

// kept reads the records of an architecture and a runtime that an earlier run left; nil for none.
func kept(t *testing.T, path string) []record {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	var all []record
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatalf("%s: %v: remove it to run this again", path, err)
	}
	return all
}

// keep writes records; they appear all at once.
func keep(t *testing.T, path string, all []record) {
	t.Helper()
	text, err := json.MarshalIndent(all, "", " ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = os.WriteFile(path+".part", text, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".part", path)
	}
	if err != nil {
		t.Fatal(err)
	}
}
