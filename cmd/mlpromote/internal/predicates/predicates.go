// Package predicates has the JSON Schemas of the predicates that mlpromote signs, and holds statements against them
// before they are signed and when others attach them.
//
// The schemas are of the Go types that write and read the predicates, so the two cannot differ. What the types
// do not say, such as which numbers cannot be negative, is in [limits].
package predicates

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/typeschema"
	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/toolchain/remotecache"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/trust"
)

// Predicate is a predicate that mlpromote signs.
type Predicate struct {
	Name  string // of its schema: "parity"
	Type  string // its URI
	Title string
	of    reflect.Type
}

// All lists the predicates by name. That of a cosign signature is missing: it is empty.
func All() []Predicate {
	return []Predicate{
		{"approval", evidence.PredicateApproval, "an approver agrees that a release is promoted to an environment", of[evidence.Approval]()},
		{"break-glass", evidence.PredicateBreakGlass, "an approver agrees that a promotion skips requirements in an emergency", of[evidence.BreakGlass]()},
		{"parity", evidence.PredicateParity, "what a verifier found when it compared an engine with the reference model", of[evidence.ParityReport]()},
		{"performance", evidence.PredicatePerformance, "the latency of an engine on one machine", of[evidence.PerformanceReport]()},
		{"provenance", evidence.PredicateProvenance,
			"how a builder made an engine: SLSA provenance, with the fields that mlpromote writes", of[build.Provenance]()},
		{"quarantine", evidence.PredicateQuarantine, "a release or an engine must not be used, or may be used again", of[evidence.Quarantine]()},
		{"restrictions", evidence.PredicateRestrictions,
			"what must not be used in an environment, nor what was made from it", of[evidence.RestrictionList]()},
		{"step", remotecache.PredicateStep, "a builder vouches for a finished step in a shared build cache", of[remotecache.Statement]()},
		{"test-result", evidence.PredicateTestResult,
			"a verification in short: in-toto test result, with the fields that mlpromote writes", of[verify.TestResult]()},
		{"trust-bundle", trust.PredicateTrustBundle,
			"by what to judge what a registry hands out: keys, restriction lists and a checkpoint, until it expires", of[trust.TrustBundle]()},
		{"verification-summary", evidence.PredicateVSA,
			"a promoter found that a release meets the policy of an environment: SLSA VSA, with the fields that mlpromote writes", of[evidence.VSA]()},
	}
}

func of[T any]() reflect.Type { return reflect.TypeFor[T]() }

// Names lists the names of all predicates.
func Names() []string {
	var names []string
	for _, p := range All() {
		names = append(names, p.Name)
	}
	return names
}

// own begins the types of predicates that mlpromote defines.
const own = "https://mlpromote.dev/"

// ID is the identifier of the schema.
func (p Predicate) ID() string {
	return own + "schema/predicates/" + p.Name + ".schema.json"
}

// Schema returns the JSON Schema of a predicate, as it is published. Errors: CodeInvalid for an unknown name.
func Schema(name string) ([]byte, error) {
	all := All()
	at := slices.IndexFunc(all, func(p Predicate) bool { return p.Name == name })
	if at < 0 {
		return nil, registry.Errorf(registry.CodeInvalid, "predicate %.100q is unknown: want one of %s", name, strings.Join(Names(), ", "))
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	err := encoder.Encode(all[at].schema())
	return out.Bytes(), err
}

// schema is open: later versions of a predicate can have more fields, which readers ignore.
func (p Predicate) schema() typeschema.Object {
	w := typeschema.Writer{Defs: make(typeschema.Object), Types: types(), Fields: limits(), Open: true}
	schema := w.Of(p.of)
	schema["$schema"], schema["$id"] = typeschema.Draft, p.ID()
	schema["title"], schema["description"] = p.Type, p.Title
	schema["$defs"] = w.Defs
	return schema
}

// compiled are the schemas of all predicates, by the type of the predicate. They are compiled at the first use.
var compiled = sync.OnceValues(func() (map[string]*jsonschema.Schema, error) {
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	all := make(map[string]*jsonschema.Schema)
	for _, p := range All() {
		text, err := Schema(p.Name)
		if err != nil {
			return nil, err
		}
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			return nil, err
		}
		if err := compiler.AddResource(p.ID(), document); err != nil {
			return nil, err
		}
		if all[p.Type], err = compiler.Compile(p.ID()); err != nil {
			return nil, err
		}
	}
	return all, nil
})

// Check holds the predicate of a statement against the schema of its type. It accepts predicates of other types: who
// may sign those is decided elsewhere. Errors: CodeInvalid, with the place in the predicate.
func Check(s evidence.Statement) error {
	schemas, err := compiled()
	if err != nil {
		return err
	}
	schema, ok := schemas[s.PredicateType]
	if !ok {
		return nil
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(s.Predicate))
	if err != nil {
		return registry.Errorf(registry.CodeInvalid, "predicate %s: %w", s.PredicateType, err)
	}
	var invalid *jsonschema.ValidationError
	if err := schema.Validate(value); errors.As(err, &invalid) {
		return registry.Errorf(registry.CodeInvalid, "predicate %s: %s", s.PredicateType, why(invalid))
	} else if err != nil {
		return err
	}
	return nil
}

// CheckNew is [Check] of evidence that somebody attaches, for the predicates that mlpromote defines. Those that
// others define, such as provenance, can come from other programs that write other fields. Errors: CodeInvalid.
func CheckNew(s evidence.Statement) error {
	if !strings.HasPrefix(s.PredicateType, own) {
		return nil
	}
	return Check(s)
}

// CheckText is [Check] of a statement as it is signed. Errors: CodeInvalid.
func CheckText(statement []byte) error {
	var s evidence.Statement
	if err := registry.DecodeSigned(statement, &s); err != nil {
		return registry.Errorf(registry.CodeInvalid, "statement: %w", err)
	}
	return Check(s)
}

// why names a place at which a predicate is not what its schema says. The message quotes the predicate, which
// others wrote.
func why(e *jsonschema.ValidationError) string {
	for len(e.Causes) > 0 {
		e = e.Causes[0]
	}
	return registry.PlainText(e.Error())
}
