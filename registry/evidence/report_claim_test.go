package evidence_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// What the program adds to a document that it reads is no part of the document: a key of that name is one that is not known.
func TestReadReportIgnoresItsOwnFields(t *testing.T) {
	t.Parallel()
	for _, predicate := range []string{`{"verdict":"pass"}`, `{"verdict":"pass","Fault":"none"}`, `{"verdict":"pass","fault":1}`,
		`{"verdict":"pass","Claim":{"signer":"another"}}`, `{"verdict":"pass","claim":"of somebody"}`} {
		c := evidence.Claim{Signer: "one", Statement: evidence.Statement{PredicateType: evidence.PredicateParity, Predicate: json.RawMessage(predicate)}}
		if read, ok := evidence.ReadReport(c); !ok || read.Fault != nil || !read.Passes() || !reflect.DeepEqual(read.Claim, c) {
			t.Errorf("%s: read as %+v, fault %v", predicate, read.Claim, read.Fault)
		}
	}
}

// Facts that only rules use are in no answer.
func TestOwnFieldsAreNotWritten(t *testing.T) {
	t.Parallel()
	for _, v := range []any{evidence.GivenApproval{Recorded: 7}, artifact.Mismatch{Runtime: "onnxruntime"}} {
		text, err := json.Marshal(v)
		var fields map[string]any
		if err != nil || json.Unmarshal(text, &fields) != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"Recorded", "Runtime"} {
			if _, there := fields[name]; there {
				t.Errorf("%T is written with %s: %s", v, name, text)
			}
		}
	}
}
