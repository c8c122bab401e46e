package registry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// jsonSpace is what may stand between the tokens of JSON. Source: RFC 8259, section 2.
const jsonSpace = " \t\r\n"

// signedWalker goes once over JSON that [json.Valid] accepted, so that it needs to look for no error of
// syntax, and finds what encoding/json would accept without a word: keys that are in an object twice, or
// that differ from a field's name only in case.
type signedWalker struct {
	data []byte
	at   int
}

// value checks the next value, which depth objects and arrays contain, and the spelling of keys in it if t is
// the type that it is decoded into. json.Unmarshal refuses values of other types.
func (w *signedWalker) value(t reflect.Type, depth int) error {
	opening := w.next()
	if opening != '{' && opening != '[' {
		w.scalar()
		return nil
	}
	if depth == maxJSONDepth {
		return errTooDeep
	}
	s := shapeOf(t)
	w.at++
	if opening == '{' {
		return w.object(s, depth+1)
	}
	for w.next() != ']' {
		if err := w.value(s.item, depth+1); err != nil {
			return err
		}
	}
	w.at++
	return nil
}

// object checks the rest of an object after its opening brace.
func (w *signedWalker) object(s shape, depth int) error {
	seen := make(map[string]struct{})
	for w.next() != '}' {
		key := w.key()
		if _, twice := seen[key]; twice {
			return fmt.Errorf("key %.80q is in one object twice", key)
		}
		seen[key] = struct{}{}
		t, err := s.of(key)
		if err != nil {
			return err
		}
		if err := w.value(t, depth); err != nil {
			return err
		}
	}
	w.at++
	return nil
}

// next goes to the next token that is no separator.
func (w *signedWalker) next() byte {
	for {
		switch b := w.data[w.at]; b {
		case ' ', '\t', '\r', '\n', ',', ':':
			w.at++
		default:
			return b
		}
	}
}

// scalar goes to the end of a string, a number, true, false or null.
func (w *signedWalker) scalar() {
	if w.data[w.at] == '"' {
		w.text()
		return
	}
	w.at += bytes.IndexAny(w.data[w.at:], ",]}"+jsonSpace) // an object encloses it, so there is an end
}

// text goes to the end of a string, and returns it as it is written, with its quotes.
func (w *signedWalker) text() []byte {
	begin := w.at
	for w.at++; w.data[w.at] != '"'; w.at++ {
		if w.data[w.at] == '\\' {
			w.at++
		}
	}
	w.at++
	return w.data[begin:w.at]
}

// key goes to the end of a key, and returns it as encoding/json reads it.
func (w *signedWalker) key() string {
	written := w.text()
	if bytes.IndexByte(written, '\\') < 0 {
		return string(written[1 : len(written)-1])
	}
	var key string
	_ = json.Unmarshal(written, &key) // it is valid
	return key
}

// shape says what the values in an object or array are decoded into.
type shape struct {
	fields map[string]reflect.Type // of a struct: by key
	item   reflect.Type            // of a map or list; nil: nothing is known
}

// of returns the type of a key's value, nil if it is not decoded, and an error if a field has almost this key.
func (s shape) of(key string) (reflect.Type, error) {
	if t, ok := s.fields[key]; ok || s.fields == nil {
		if s.fields == nil {
			t = s.item
		}
		return t, nil
	}
	for name := range s.fields {
		if strings.EqualFold(name, key) {
			return nil, fmt.Errorf("key %.80q: want %q", key, name)
		}
	}
	return nil, nil //nolint:nilnil // a type that is not known is no error
}

// shapes are the shapes of types that were decoded before, since reflection takes longer than the check.
var shapes sync.Map

// shapeOf returns the shape of a type. That of nil, of a scalar and of a type that decodes itself knows nothing.
func shapeOf(t reflect.Type) shape {
	if t == nil {
		return shape{}
	}
	if known, ok := shapes.Load(t); ok {
		return known.(shape) //nolint:forcetypeassert // nothing else is stored
	}
	s := newShape(t)
	shapes.Store(t, s)
	return s
}

func newShape(t reflect.Type) shape {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return shape{}
	}
	switch t.Kind() {
	case reflect.Struct:
		fields := make(map[string]reflect.Type)
		addFields(fields, t)
		return shape{fields: fields}
	case reflect.Map, reflect.Slice, reflect.Array:
		return shape{item: t.Elem()}
	default:
		return shape{}
	}
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

// maxJSONDepth bounds how deep objects and arrays may nest in signed JSON.
const maxJSONDepth = 64

var errTooDeep = fmt.Errorf("it nests deeper than %d", maxJSONDepth)
