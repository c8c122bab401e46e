package server

import (
	"bytes"
	"reflect"
	"testing"

	"mlpromote.dev/mlpromote/registry"
)

func resolution() registry.Resolution {
	return registry.Resolution{
		Release: "sha256:a", Version: "1.0.0", Engine: &registry.Engine{Variant: "int8"}, Ref: "host/prod/m@sha256:b",
		Candidates: []registry.Candidate{{Engine: "sha256:b", Label: "x/int8", Chosen: true}, {Engine: "sha256:c", Label: "x/fp32", Reasons: []string{"one", "two"}}},
	}
}

// Two resolutions that differ in any field, also in one that is added later, have an encoding each.
func TestEncodingsTellResolutionsApart(t *testing.T) {
	t.Parallel()
	same := resolution()
	again := resolution()
	again.Engine = same.Engine
	if !sameResolution(same, again) {
		t.Error("the same resolution is taken for another")
	}
	check := func(what string, changed registry.Resolution) {
		t.Helper()
		e := newEncodings()
		if sameResolution(same, changed) {
			t.Errorf("with another %s, it is taken for the same", what)
		}
		if _, err := e.answer(same); err != nil {
			t.Fatal(err)
		}
		known, _ := e.known.Get(e.key(same))
		e.known.Put(e.key(changed), known, 1) // as if both had the same key
		got, err := e.answer(changed)
		if err != nil {
			t.Fatal(err)
		}
		if plain, _ := ok(changed); !bytes.Equal(got.body, plain.body) || got.tagOf("") != plain.tagOf("") {
			t.Errorf("with another %s: got %s, want %s", what, got.body, plain.body)
		}
	}
	for i := range reflect.TypeFor[registry.Resolution]().NumField() {
		changed := again
		changeField(t, reflect.ValueOf(&changed).Elem().Field(i))
		check(reflect.TypeFor[registry.Resolution]().Field(i).Name, changed)
	}
	for i := range reflect.TypeFor[registry.Candidate]().NumField() {
		changed := resolution()
		changed.Engine = same.Engine
		changeField(t, reflect.ValueOf(&changed.Candidates[1]).Elem().Field(i))
		check("candidate's "+reflect.TypeFor[registry.Candidate]().Field(i).Name, changed)
	}
}

// changeField gives a field another value.
func changeField(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Slice:
		v.Set(v.Slice(0, v.Len()-1))
	default:
		t.Fatalf("no other value for a %s is known", v.Type())
	}
}

// What is remembered has a limit.
func TestEncodingsAreBounded(t *testing.T) {
	t.Parallel()
	e := newEncodings()
	for i := range 200 {
		r := resolution()
		r.Ref = string(bytes.Repeat([]byte{'a' + byte(i%26)}, 20_000+i))
		if _, err := e.answer(r); err != nil {
			t.Fatal(err)
		}
	}
	if got := e.known.Bytes(); got == 0 || got > encodingBytes {
		t.Errorf("%d bytes are remembered, want at most %d, and some", got, encodingBytes)
	}
}
