package strictyaml

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// Unmarshaler is a type that reads itself from a node: a quantity with a unit, or a
// mapping with a shorthand.
type Unmarshaler interface {
	// DecodeYAML sets the receiver from n and notes what is wrong with
	// [Node.Problemf]. For a type with a shorthand it looks at [Node.Kind] and hands a
	// part of itself to [Node.Decode].
	DecodeYAML(n *Node)
}

// Decode reads the node into the non-nil pointer into, as the function [Decode]
// does, and notes mistakes.
func (n *Node) Decode(into any) {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		n.Problemf("internal: cannot read into %T", into)
		return
	}
	n.decode(v.Elem())
}

// DecodeEither reads a scalar into one pointer and any other node into the other, for a
// type with a main value that may stand alone. Where its DecodeYAML
// calls this, the second is of a type without that method.
func (n *Node) DecodeEither(scalar, other any) {
	if n.kind == Scalar {
		n.Decode(scalar)
		return
	}
	n.Decode(other)
}

func (n *Node) decode(v reflect.Value) {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		n.decode(v.Elem())
		return
	}
	if u, ok := v.Addr().Interface().(Unmarshaler); ok {
		u.DecodeYAML(n)
		return
	}
	want := kindFor(v)
	if n.kind != want.kind {
		n.Problemf("found %s: want %s", n.describe(), want.what)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		n.decodeStruct(v)
	case reflect.Map:
		n.decodeMap(v)
	case reflect.Slice:
		n.decodeSlice(v)
	default:
		n.decodeScalar(v, want.what)
	}
}

type wanted struct {
	kind Kind
	what string
}

func kindFor(v reflect.Value) wanted {
	switch v.Kind() {
	case reflect.Struct:
		return wanted{Mapping, "a mapping with the keys " + strings.Join(Keys(v.Type()), ", ")}
	case reflect.Map:
		return wanted{Mapping, "a mapping"}
	case reflect.Slice:
		return wanted{Sequence, "a list"}
	case reflect.String:
		return wanted{Scalar, "text"}
	case reflect.Bool:
		return wanted{Scalar, "true or false"}
	case reflect.Int, reflect.Int64:
		return wanted{Scalar, "a whole number"}
	case reflect.Float64:
		return wanted{Scalar, "a number"}
	}
	return wanted{Scalar, "a value of a kind that can be read"}
}

// describe says what the node is, for "found ...".
func (n *Node) describe() string {
	if n.kind == Scalar {
		return strconv.Quote(shorten(n.text))
	}
	return n.kind.String()
}

func shorten(s string) string {
	if r := []rune(s); len(r) > maxQuoted {
		return string(r[:maxQuoted]) + "…"
	}
	return s
}

// field is a key of a struct.
type field struct {
	index    int
	key      string
	was      string // the key's earlier name; its use is an error that names the key
	required bool
}

// fields lists the keys of a struct type, in its order.
func fields(t reflect.Type) []field {
	var out []field
	for i := range t.NumField() {
		key, option, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		if key != "" && key != "-" && t.Field(i).IsExported() {
			out = append(out, field{i, key, t.Field(i).Tag.Get("was"), option == "required"})
		}
	}
	return out
}

// Keys lists the keys that a struct type has in YAML, in the order of its fields.
func Keys(t reflect.Type) []string {
	var keys []string
	for _, f := range fields(t) {
		keys = append(keys, f.key)
	}
	return keys
}

func (n *Node) decodeStruct(v reflect.Value) {
	known := fields(v.Type())
	seen := make(map[string]bool, len(n.entries))
	for _, e := range n.entries {
		seen[e.Key] = true
		at := -1
		for _, f := range known {
			if f.key == e.Key {
				at = f.index
			}
		}
		if key := renamed(known, e.Key); key != "" && at < 0 {
			seen[key] = true // one mistake is one problem
			e.Name.Problemf("key %q is now called %q", e.Key, key)
			continue
		}
		if at < 0 {
			keys := Keys(v.Type())
			seen[registry.Nearest(e.Key, keys)] = true // one mistake is one problem
			e.Name.Problemf("unknown key %q%s: want %s", shorten(e.Key), registry.Suggest(e.Key, keys), strings.Join(keys, ", "))
			continue
		}
		e.Value.decode(v.Field(at))
	}
	for _, f := range known {
		if f.required && !seen[f.key] {
			n.Problemf("key %q is missing", f.key)
		}
	}
}

// renamed returns the key that had the name was earlier, or "".
func renamed(known []field, was string) string {
	for _, f := range known {
		if f.was != "" && f.was == was {
			return f.key
		}
	}
	return ""
}

func (n *Node) decodeMap(v reflect.Value) {
	if v.Type().Key().Kind() != reflect.String {
		n.Problemf("internal: cannot read into %s", v.Type())
		return
	}
	v.Set(reflect.MakeMapWithSize(v.Type(), len(n.entries)))
	for _, e := range n.entries {
		value := reflect.New(v.Type().Elem()).Elem()
		e.Value.decode(value)
		v.SetMapIndex(reflect.ValueOf(e.Key).Convert(v.Type().Key()), value)
	}
}

func (n *Node) decodeSlice(v reflect.Value) {
	v.Set(reflect.MakeSlice(v.Type(), len(n.items), len(n.items)))
	for i, item := range n.items {
		item.decode(v.Index(i))
	}
}

func (n *Node) decodeScalar(v reflect.Value, want string) {
	ok := false
	switch v.Kind() {
	case reflect.String:
		ok = n.scalar == typeText
		v.SetString(n.text)
		if !ok {
			want += fmt.Sprintf(", so put it in quotes: \"%s\"", shorten(n.text))
		}
	case reflect.Bool:
		ok = n.scalar == typeBool && (n.text == "true" || n.text == "false")
		v.SetBool(n.text == "true")
	case reflect.Int, reflect.Int64:
		i, err := strconv.ParseInt(n.text, 10, v.Type().Bits())
		ok = err == nil && n.scalar == typeInt
		v.SetInt(i)
	case reflect.Float64:
		f, isNumber := n.Number()
		ok = isNumber
		v.SetFloat(f)
	}
	if !ok {
		n.Problemf("found %s: want %s", n.describe(), want)
	}
}

// Number is the value of a scalar that is an unquoted finite decimal number, also
// one such as 1e-4, which YAML's own grammar takes for text.
func (n *Node) Number() (float64, bool) {
	if n.kind != Scalar || n.quoted || strings.ContainsAny(n.text, "_xXpPnN") {
		return 0, false
	}
	f, err := strconv.ParseFloat(n.text, 64)
	return f, err == nil && !math.IsInf(f, 0) && !math.IsNaN(f)
}
