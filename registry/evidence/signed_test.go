package evidence_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// inner and document are what the tests decode into.
type inner struct {
	Name string `json:"name"`
}

type document struct {
	inner
	Verdict evidence.Verdict  `json:"verdict"`
	List    []inner           `json:"list,omitempty"`
	Map     map[string]*inner `json:"map"`
	Figure  evidence.Figure   `json:"figure"`
	Skipped string            `json:"-"`
	Bare    string
}

func TestDecodeSigned(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{ // part of the error; empty: none
		`{}`:                          ``,
		`{"verdict":"fail"}`:          ``,
		`{"verdict":"pass","more":1}`: ``,
		`{"name":"a","list":[{"name":"b"}],"map":{"Name":{"name":"c"}},"figure":"inf","Bare":"d"}`: ``,
		`{"list":[{"more":{"Name":1,"name":2}}]}`:                                                  ``, // what is not known has no spelling
		`{"verdict":"fail","Verdict":"pass"}`:                                                      `key "Verdict": want "verdict"`,
		`{"Verdict":"pass"}`:                                                                       `key "Verdict": want "verdict"`,
		`{"NAME":"a"}`:                                                                             `want "name"`,
		`{"bare":"a"}`:                                                                             `want "Bare"`,
		`{"li` + "\u017f" + `t":[]}`:                                                               `want "list"`, // the long s folds to s
		`{"list":[{"nAme":"a"}]}`:                                                                  `want "name"`,
		`{"map":{"a":{"Name":"b"}}}`:                                                               `want "name"`,
		`{"verdict":"a","verdict":""}`:                                                             `twice`,
		`{"x":{"a":1,"\u0061":2}}`:                                                                 `twice`,
		`{"verdict":"passed"}`:                                                                     `verdict "passed"`,
		`{"verdict":1}`:                                                                            `cannot unmarshal`,
		`{"list":{}}`:                                                                              `cannot unmarshal`,
		`{"verdict":"pass"}{}`:                                                                     `follows`,
		`{"verdict":"pass"`:                                                                        `EOF`,
		`[]`:                                                                                       `not a JSON object`,
		`null`:                                                                                     `not a JSON object`,
		``:                                                                                         `not JSON`,
		"{\"verdict\":\"\xff\"}":                                                                   `UTF-8`,
		`{"a":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`: `deeper`,
	} {
		var d document
		err := registry.DecodeSigned([]byte(data), &d)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: error %v, want %q", data, err, want)
		}
	}
}

// FuzzCheckJSON compares with a slower check, by the tokens that encoding/json reads.
func FuzzCheckJSON(f *testing.F) {
	for _, seed := range []string{
		`{}`, ` { "a" : [ 1 , -2.5e3 , true , null , "\"" ] , "b" : { } } `,
		`{"a":1,"\u0061":2}`, `{"\ud800":1,"\udbff":2}`, `{"a":{"a":1},"b":[{"a":1},{"a":1}]}`,
		`{"a":"]}\\"}`, `{"":0,"":0}`, `{"a":[[{"b":1,"b":2}]]}`, `{}{}`, `[1]`, "{\"\xff\":1}", `{"a":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `}`,
		`{"a":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, want := registry.CheckJSON(data), checkTokens(data)
		if (got == nil) != (want == nil) {
			t.Errorf("%q: got error %v, want %v", data, got, want)
		}
	})
}

// checkTokens checks what CheckJSON does, token by token.
func checkTokens(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var check func(depth int) error
	check = func(depth int) error {
		token, err := d.Token()
		opening, isDelim := token.(json.Delim)
		if err != nil || !isDelim {
			return err
		}
		if depth == 64 {
			return errors.New("too deep")
		}
		seen := make(map[string]bool)
		for d.More() {
			if opening == '{' {
				token, err := d.Token()
				key, _ := token.(string)
				if err != nil || seen[key] {
					return fmt.Errorf("key %q: %w", key, err)
				}
				seen[key] = true
			}
			if err := check(depth + 1); err != nil {
				return err
			}
		}
		_, err = d.Token()
		return err
	}
	if err := check(0); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows")
	}
	if !utf8.Valid(data) || !bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) {
		return errors.New("no object in UTF-8")
	}
	return nil
}

// FuzzDecodeSigned looks for documents that two readers understand differently: what is
// taken must be what an exact reader takes, key by key, and come back when it is written.
func FuzzDecodeSigned(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"verdict":"fail","Verdict":"pass"}`, `{"limits":{"sha256":"ab"},"cases":{"ran":1,"count":2},"node":{"v":1,"cpu":{"arch":"amd64"}}}`,
		`{"reasons":[{"code":"shape","value":"inf"}],"startedOn":"2026-01-01T00:00:00Z"}`, `{"history":{"SHA256":"x"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got evidence.ParityReport
		if registry.DecodeSigned(data, &got) != nil {
			return
		}
		var object map[string]json.RawMessage
		if err := json.Unmarshal(data, &object); err != nil {
			t.Fatalf("%s was read, and is no object: %v", data, err)
		}
		var verdict evidence.Verdict
		if raw, ok := object["verdict"]; ok && json.Unmarshal(raw, &verdict) != nil || got.Verdict != verdict {
			t.Fatalf("%s: the verdict is %q, want %q", data, got.Verdict, verdict)
		}
		var cases evidence.CasesRun
		if raw, ok := object["cases"]; ok && json.Unmarshal(raw, &cases) != nil || !reflect.DeepEqual(got.Cases, cases) {
			t.Fatalf("%s: the cases are %+v, want %+v", data, got.Cases, cases)
		}
		written, err := registry.CanonicalJSON(got)
		if err != nil {
			return // numbers that RFC 8785 cannot write
		}
		var again evidence.ParityReport
		if err := registry.DecodeSigned(written, &again); err != nil {
			t.Fatalf("%s was written as %s, which is not read: %v", data, written, err)
		}
	})
}
