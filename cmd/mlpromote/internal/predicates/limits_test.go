package predicates

import (
	"encoding/json"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/typeschema"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
)

// Every limit is of a field that a predicate has: a field that is renamed takes its limit along.
func TestLimitsAreOfFields(t *testing.T) {
	t.Parallel()
	without := typeschema.Writer{Defs: make(object), Types: types()}
	with := typeschema.Writer{Defs: make(object), Types: types(), Fields: limits()}
	used := make(map[string]bool)
	for _, p := range All() {
		without.Of(p.of)
		with.Of(p.of)
	}
	for of, definition := range with.Defs {
		for key, schema := range definition.(object)["properties"].(object) {
			if !reflect.DeepEqual(schema, without.Defs[of].(object)["properties"].(object)[key]) {
				used[of+"."+key] = true
			}
		}
	}
	for _, field := range slices.Sorted(maps.Keys(limits())) {
		if !used[field] {
			t.Errorf("no predicate has the field %s, or its limit changes nothing", field)
		}
	}
}

// What the program can write is valid: a value of each type with all of its fields.
func TestSchemasAcceptWhatTypesWrite(t *testing.T) {
	t.Parallel()
	for _, p := range All() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			value := reflect.New(p.of).Elem()
			fill(value, 0)
			text, err := json.Marshal(value.Interface())
			if err != nil {
				t.Fatal(err)
			}
			if err := Check(evidence.Statement{PredicateType: p.Type, Predicate: text}); err != nil {
				t.Errorf("%v in\n%s", err, text)
			}
			read := reflect.New(p.of)
			if err := registry.DecodeSigned(text, read.Interface()); err != nil {
				t.Errorf("what it writes cannot be read: %v", err)
			}
		})
	}
}

const filledDigest = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

// fill sets everything in a value.
func fill(v reflect.Value, depth int) {
	switch x := v.Addr().Interface().(type) {
	case *registry.Digest:
		*x = filledDigest
	case *evidence.DigestSet:
		*x = evidence.NewDigestSet(filledDigest)
	case *evidence.Trial:
		*x = evidence.TrialCases
	case *evidence.Baseline:
		*x = evidence.BaselineGolden
	case *evidence.Verdict:
		*x = evidence.VerdictPass
	case *evidence.RestrictionKind:
		*x = evidence.RestrictSource
	case *evidence.Reproducibility:
		*x = evidence.ReproducibleBytes
	case *time.Time:
		*x = time.Date(2026, 11, 23, 10, 0, 0, 5, time.UTC)
	case *json.RawMessage:
		*x = json.RawMessage(`{}`)
	case *validators.Dim:
	default:
		fillKind(v, depth)
	}
}

// fillOneOf sets a text or number that is one of few, or the first of such texts in a list.
func fillOneOf(v reflect.Value, field string) {
	limit := limits()[field]
	if items, ok := limit["items"].(object); ok {
		limit, v = items, v.Index(0)
	}
	if values, ok := limit["enum"].([]string); ok {
		v.SetString(values[0])
	}
	switch value := limit["const"].(type) {
	case string:
		v.SetString(value)
	case int:
		v.SetInt(int64(value))
	}
}

func fillKind(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Pointer:
		if depth < 8 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() {
				fill(v.Field(i), depth+1)
				fillOneOf(v.Field(i), path.Base(v.Type().PkgPath())+"."+v.Type().Name()+"."+strings.Split(field.Tag.Get("json"), ",")[0])
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth+1)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, depth+1)
		fill(value, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("oci://local/prod/digits") // which every field accepts that has no list of values
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(3)
	case reflect.Uint64:
		v.SetUint(3)
	case reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Interface:
		v.Set(reflect.ValueOf("anything"))
	}
}
