package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode/utf8"
)

// maxJSONDepth bounds how deep objects and arrays may nest in signed JSON.
const maxJSONDepth = 64

// DecodeSigned decodes signed JSON into the struct that into points to. It is strict, so that
// all readers see the same document in the same bytes. The JSON must pass [CheckJSON]. Keys
// must be spelled as in the struct's tags: it refuses a key that differs only in case, which
// encoding/json would accept. It ignores other unknown keys. Types that decode themselves must
// check their own values.
func DecodeSigned(data []byte, into any) error {
	if err := CheckJSON(data); err != nil {
		return err
	}
	if err := checkSpelling(data, reflect.TypeOf(into)); err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// CheckJSON checks that data is exactly one JSON object in UTF-8, that its nesting is limited,
// and that no object in it has a key twice.
func CheckJSON(data []byte) error {
	if !utf8.Valid(data) {
		return errors.New("it is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	token, err := d.Token()
	if err != nil {
		return fmt.Errorf("it is not JSON: %w", err)
	}
	if token != json.Delim('{') {
		return errors.New("it is not a JSON object")
	}
	if err := checkObject(d, 1); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON object")
	}
	return nil
}

// checkObject reads the rest of an object after its opening brace.
func checkObject(d *json.Decoder, depth int) error {
	seen := make(map[string]struct{})
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return err
		}
		key, ok := token.(string)
		if !ok {
			return fmt.Errorf("key %v is not a string", token)
		}
		if _, twice := seen[key]; twice {
			return fmt.Errorf("key %.80q is in one object twice", key)
		}
		seen[key] = struct{}{}
		if err := checkValue(d, depth); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

func checkArray(d *json.Decoder, depth int) error {
	for d.More() {
		if err := checkValue(d, depth); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

// checkValue reads one value inside depth objects and arrays.
func checkValue(d *json.Decoder, depth int) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return nil
	}
	if depth == maxJSONDepth {
		return fmt.Errorf("it nests deeper than %d", maxJSONDepth)
	}
	if delim == '{' {
		return checkObject(d, depth+1)
	}
	return checkArray(d, depth+1)
}

// checkSpelling compares the keys of objects with the fields of t, recursively. json.Unmarshal
// refuses values of other types.
func checkSpelling(data json.RawMessage, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return nil
	}
	switch t.Kind() {
	case reflect.Struct:
		return checkStructSpelling(data, t)
	case reflect.Map:
		return checkEach(valuesOf(data), t.Elem())
	case reflect.Slice, reflect.Array:
		var items []json.RawMessage
		_ = json.Unmarshal(data, &items)
		return checkEach(items, t.Elem())
	default:
		return nil
	}
}

func checkEach(values []json.RawMessage, t reflect.Type) error {
	for _, v := range values {
		if err := checkSpelling(v, t); err != nil {
			return err
		}
	}
	return nil
}

func valuesOf(data json.RawMessage) []json.RawMessage {
	var object map[string]json.RawMessage
	_ = json.Unmarshal(data, &object)
	values := make([]json.RawMessage, 0, len(object))
	for _, key := range sortedKeys(object) {
		values = append(values, object[key])
	}
	return values
}

func checkStructSpelling(data json.RawMessage, t reflect.Type) error {
	var object map[string]json.RawMessage
	_ = json.Unmarshal(data, &object)
	known := make(map[string]reflect.Type)
	addFields(known, t)
	for _, key := range sortedKeys(object) {
		if field, ok := known[key]; ok {
			if err := checkSpelling(object[key], field); err != nil {
				return err
			}
			continue
		}
		for name := range known {
			if strings.EqualFold(name, key) {
				return fmt.Errorf("key %.80q: want %q", key, name)
			}
		}
	}
	return nil
}

// addFields adds the keys of a struct, including those of embedded structs.
func addFields(known map[string]reflect.Type, t reflect.Type) {
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case !f.IsExported() || name == "-" || f.Anonymous && name == "":
		case name == "":
			known[f.Name] = f.Type
		default:
			known[name] = f.Type
		}
	}
}
